// The fields of a tag set as points; the points of several units as one, in the order of time; and
// of these those for which WHERE holds. One thread.
#pragma once

#include <memory>
#include <vector>

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

}  // namespace edgecase::influxql
