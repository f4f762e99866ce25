// The rows of one group: what the fields of a SELECT come to for each point, LIMIT and OFFSET, and
// what fill() puts in place of nothing where there is no function. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "influxql/formula.h"
#include "influxql/points.h"
#include "influxql/units.h"

namespace edgecase::influxql {

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
