// Makes sources of points: of the fields of a tag set; of several units, in the order of time; of
// those for which WHERE holds; of the rows that the fields of a SELECT come to. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "influxql/formula.h"
#include "influxql/points.h"
#include "influxql/units.h"

namespace edgecase::influxql {

// The fields of one tag set, joined by their times; `tags`: of columns that are no tags null.
// `columns` outlive it.
std::unique_ptr<PointSource> join_fields(std::vector<FeedPart> parts,
                                         const std::vector<Column>& columns, std::vector<Cell> tags,
                                         bool is_descending);
// Points of one instant in the order of `sources`.
std::unique_ptr<PointSource> merge_points(std::vector<std::unique_ptr<PointSource>> sources,
                                          bool is_descending);
// Only the points of the first instant at which the column has a value, the last one first where
// `are_turned`: all that first() and last() need.
std::unique_ptr<PointSource> edge_points(std::unique_ptr<PointSource> points, std::size_t column,
                                         bool are_turned);
// `where` outlives it.
std::unique_ptr<PointSource> filter_points(std::unique_ptr<PointSource> points,
                                           const Formula& where);

// The rows of one group: what the fields of a SELECT come to for each point, LIMIT and OFFSET, and
// what fill() puts in place of nothing where there is no function.
struct RowShape {
  std::vector<Formula> fields;         // over the cells of a point
  std::int64_t limit = 0, offset = 0;  // 0: none
  // What stands for nothing where there are no functions: previous or a number, in these columns.
  Fill fill = Fill::Null;
  Cell fill_value;
  std::vector<Column> columns;
};

// Points with a cell for each field; `shape` outlives it.
std::unique_ptr<PointSource> make_rows(std::unique_ptr<PointSource> points, const RowShape& shape);

}  // namespace edgecase::influxql
