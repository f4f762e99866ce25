// Columns of a window of readings, and their names: `temp_count`, `temp_min` and so on. Tiers of
// retention keep windows so, and forwarding sends them so.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace edgecase::wire {

enum class WindowColumn : std::uint8_t { Count, Min, Max, Sum, Mean, First, Last };

inline constexpr std::array kWindowColumns = {
    WindowColumn::Count, WindowColumn::Min,   WindowColumn::Max, WindowColumn::Sum,
    WindowColumn::Mean,  WindowColumn::First, WindowColumn::Last};

// "_count": what follows the field's or the sensor's name.
constexpr std::string_view column_suffix(WindowColumn column) {
  constexpr std::array<std::string_view, kWindowColumns.size()> kSuffixes = {
      "_count", "_min", "_max", "_sum", "_mean", "_first", "_last"};
  return kSuffixes[static_cast<std::size_t>(column)];
}

inline std::string column_name(std::string_view field, WindowColumn column) {
  return std::string(field) + std::string(column_suffix(column));
}

// A column's name taken apart; the field is what it began with, and not empty.
struct ColumnName {
  std::string_view field;
  WindowColumn column = WindowColumn::Count;
};
inline std::optional<ColumnName> parse_column_name(std::string_view name) {
  for (const WindowColumn column : kWindowColumns) {
    const std::string_view suffix = column_suffix(column);
    if (name.size() > suffix.size() && name.ends_with(suffix))
      return ColumnName{name.substr(0, name.size() - suffix.size()), column};
  }
  return std::nullopt;
}

}  // namespace edgecase::wire
