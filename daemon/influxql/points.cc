#include "influxql/points.h"

#include <bit>
#include <string>

#include "query/query_limits.h"

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

}  // namespace edgecase::influxql
