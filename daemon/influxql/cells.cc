#include "influxql/cells.h"

#include <bit>

namespace edgecase::influxql {

Cell integer_cell(std::int64_t value) {
  Cell cell;
  cell.kind = Cell::Kind::Integer;
  cell.integer = value;
  return cell;
}

Cell float_cell(double value) {
  Cell cell;
  cell.kind = Cell::Kind::Float;
  cell.number = value;
  return cell;
}

Cell number_cell(const NumberSummary& summary, std::uint64_t bits) {
  return summary.type == NumberType::Integer ? integer_cell(static_cast<std::int64_t>(bits))
                                             : float_cell(std::bit_cast<double>(bits));
}

double as_number(const Cell& cell) {
  return cell.kind == Cell::Kind::Float ? cell.number : static_cast<double>(cell.integer);
}

bool is_less(const Cell& a, const Cell& b) {
  switch (a.kind) {
    case Cell::Kind::Float: return a.number < b.number;
    case Cell::Kind::Text: return a.text < b.text;
    default: return a.integer < b.integer;
  }
}

std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::int64_t whole_of(double number) {
  const bool fits = number >= -0x1p63 && number < 0x1p63;
  return fits ? static_cast<std::int64_t>(number) : INT64_MIN;
}

}  // namespace edgecase::influxql
