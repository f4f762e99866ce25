// Arithmetic of single values, for functions. No state; any thread.
#pragma once

#include <cstdint>

#include "edgecase/iterator.h"
#include "influxql/rows.h"

namespace edgecase::influxql {

Cell integer_cell(std::int64_t value);
Cell float_cell(double value);
// A number of a summary.
Cell number_cell(const NumberSummary& summary, std::uint64_t bits);
// Takes integers and floats.
double as_number(const Cell& cell);
// Both are of one kind. False before true.
bool is_less(const Cell& a, const Cell& b);

// Integers wrap, as in InfluxDB.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b);
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b);
// Towards zero; what does not fit is INT64_MIN.
std::int64_t whole_of(double number);

}  // namespace edgecase::influxql
