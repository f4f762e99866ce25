#include "influxql/points.h"

#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#include "query/query_service.h"

namespace edgecase::influxql {

void NumberRows::Column::add(const Cell& cell) {
  const bool is_number = cell.kind == kind;
  const bool is_float = kind == Cell::Kind::Float;
  bits.push_back(!is_number ? 0
                 : is_float ? std::bit_cast<std::uint64_t>(cell.number)
                            : static_cast<std::uint64_t>(cell.integer));
  has.push_back(is_number ? 1 : 0);
}

void NumberRows::Column::get(std::size_t row, Cell& cell) const {
  cell.kind = is_alike() || has[row] != 0 ? kind : Cell::Kind::Null;
  if (is_alike()) {
    if (kind == Cell::Kind::Text) cell.text = text;
    return;
  }
  if (kind == Cell::Kind::Float) {
    cell.number = std::bit_cast<double>(bits[row]);
  } else {
    cell.integer = static_cast<std::int64_t>(bits[row]);
  }
}

void NumberRows::clear() {
  times_ns.clear();
  for (Column& column : columns) {
    column.bits.clear();
    column.has.clear();
  }
}

void NumberRows::drop(std::size_t count) {
  const auto drop_of = [&](auto& values) {
    values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (count == 0) return;
  drop_of(times_ns);
  for (Column& column : columns) {
    if (column.is_alike()) continue;
    drop_of(column.bits);
    drop_of(column.has);
  }
}

void NumberRows::keep(const std::vector<std::uint32_t>& rows) {
  if (rows.size() == size()) return;
  const auto keep_of = [&](auto& values) {
    for (std::size_t i = 0; i < rows.size(); ++i) values[i] = values[rows[i]];
    values.resize(rows.size());
  };
  keep_of(times_ns);
  for (Column& column : columns) {
    if (column.is_alike()) continue;
    keep_of(column.bits);
    keep_of(column.has);
  }
}

Status Spending::add_windows(std::uint64_t count) {
  windows_ += count;
  if (windows_ <= windows_max_) return ok();
  return query::check_limit(query::kWindowsLimit, windows_, windows_max_);
}

Status Spending::expect_windows(std::uint64_t count) const {
  if (windows_ <= windows_max_ && count <= windows_max_ - windows_) return ok();
  const std::uint64_t all = count > UINT64_MAX - windows_ ? UINT64_MAX : windows_ + count;
  return query::check_limit(query::kWindowsLimit, all, windows_max_);
}

Status Spending::hold(std::uint64_t bytes) {
  if (bytes > held_bytes_max_ - held_bytes_)
    return limit_reached("a statement may hold " + std::to_string(held_bytes_max_) +
                         " bytes of values at once: ask for fewer series or a shorter time");
  held_bytes_ += bytes;
  return ok();
}

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

std::optional<NumberSummary> summary_of(const query::TierWindow& window, std::int64_t last_ns,
                                        Cell::Kind kind) {
  if (!window.min || !window.max || !window.sum || !window.first || !window.last)
    return std::nullopt;
  NumberSummary summary;
  summary.type = kind == Cell::Kind::Float ? NumberType::Float : NumberType::Integer;
  const auto bits_of = [&](const wire::Value& value) -> std::optional<std::uint64_t> {
    const bool is_float = value.type == wire::ValueType::Float64;
    if (!is_float && value.type != wire::ValueType::Int64) return std::nullopt;
    if (summary.type == NumberType::Float) {
      const double number = is_float ? value.float64 : static_cast<double>(value.int64);
      return std::bit_cast<std::uint64_t>(number);
    }
    if (is_float) return std::nullopt;
    return static_cast<std::uint64_t>(value.int64);
  };
  const auto min = bits_of(*window.min), max = bits_of(*window.max), sum = bits_of(*window.sum);
  const auto first = bits_of(*window.first), last = bits_of(*window.last);
  if (!min || !max || !sum || !first || !last) return std::nullopt;
  summary.count = window.numbers;
  summary.first_ordinal = wire::ordinal_of_time(window.begin_ns);
  summary.last_ordinal = wire::ordinal_of_time(last_ns);
  summary.first = *first;
  summary.last = *last;
  summary.min = *min;
  summary.max = *max;
  summary.sum = *sum;
  return summary;
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

Status HeldBytes::hold(std::uint64_t bytes) {
  EC_TRY(spending_.hold(bytes));
  held_ += bytes;
  return ok();
}

void HeldBytes::release(std::uint64_t bytes) {
  spending_.release(bytes);
  held_ -= bytes;
}

std::uint64_t bytes_of(const Sample& sample) {
  std::uint64_t bytes = sizeof(Sample) + sample.value.text.size();
  for (const Cell& cell : sample.beside) bytes += sizeof(Cell) + cell.text.size();
  return bytes;
}

Status SampleQueue::push(Sample sample) {
  EC_TRY(held_.hold(bytes_of(sample)));
  samples_.push_back(std::move(sample));
  return ok();
}

bool SampleQueue::pop(Sample& sample) {
  if (samples_.empty()) return false;
  held_.release(bytes_of(samples_.front()));
  sample = std::move(samples_.front());
  samples_.pop_front();
  return true;
}

}  // namespace edgecase::influxql
