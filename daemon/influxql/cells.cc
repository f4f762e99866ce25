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

void set_cell(const wire::Value& value, Cell& cell) {
  cell.kind = Cell::Kind::Null;
  switch (value.type) {
    case wire::ValueType::Float64:
      cell.kind = Cell::Kind::Float;
      cell.number = value.float64;
      return;
    case wire::ValueType::Int64:
      cell.kind = Cell::Kind::Integer;
      cell.integer = value.int64;
      return;
    case wire::ValueType::Bool:
      cell.kind = Cell::Kind::Bool;
      cell.integer = value.boolean ? 1 : 0;
      return;
    case wire::ValueType::Text:
      cell.kind = Cell::Kind::Text;
      cell.text = value.text;
      return;
    case wire::ValueType::Bytes: return;
  }
}

void cast_cell(Cell& cell, Cell::Kind kind) {
  if (cell.kind == kind) return;
  if (kind == Cell::Kind::Float && cell.kind == Cell::Kind::Integer) {
    cell.number = static_cast<double>(cell.integer);
  } else if (kind == Cell::Kind::Integer && cell.kind == Cell::Kind::Float) {
    cell.integer = whole_of(cell.number);
  } else {
    kind = Cell::Kind::Null;
  }
  cell.kind = kind;
}

}  // namespace edgecase::influxql
