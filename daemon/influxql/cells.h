// Arithmetic of single values, for functions. No state; any thread.
#pragma once

#include <cstdint>

#include "edgecase/iterator.h"
#include "influxql/rows.h"
#include "wire/reading.h"

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
// Null: bytes.
void set_cell(const wire::Value& value, Cell& cell);
// A value as another type: numbers become each other; what cannot be is null. InfluxDB's casts.
void cast_cell(Cell& cell, Cell::Kind kind);

}  // namespace edgecase::influxql
