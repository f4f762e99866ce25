#include "reading_table.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "json_text.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"
#include "wire/window_columns.h"

namespace edgecase::cli {
namespace {

std::vector<Table::Column> columns_of(bool with_namespace, bool with_age) {
  std::vector<Table::Column> columns;
  if (with_namespace) columns.push_back({"NAMESPACE", Align::Left});
  columns.push_back({"SERIES", Align::Left});
  columns.push_back({"TIME", Align::Left});
  columns.push_back({"VALUE", Align::Right});
  if (with_age) columns.push_back({"AGE", Align::Right});
  return columns;
}

// "mean 21.5 of 60 in 1m"; text is counted, no more.
std::string window_of(const nlohmann::json& reading, const std::string& length) {
  std::string text, count;
  for (const auto& [name, value] : reading.items()) {
    if (name.ends_with(wire::column_suffix(wire::WindowColumn::Count))) count = value.dump();
    if (!name.ends_with(wire::column_suffix(wire::WindowColumn::Mean)) || !value.is_number())
      continue;
    text = "mean ";
    wire::append_double(value.get<double>(), text);
    text += " of ";
  }
  return text + count + " in " + length;
}

std::string value_of(const nlohmann::json& reading) {
  if (const std::string window = text_field(reading, "window"); !window.empty())
    return window_of(reading, window);
  const auto value = reading.find("value");
  if (value == reading.end()) return "-";
  // A window that cannot be answered: "unavailable", "damaged".
  if (value->is_null()) return text_field(reading, "type");
  if (text_field(reading, "type") == "bytes" && value->is_string()) {
    const std::string& base64 = value->get_ref<const std::string&>();
    std::size_t bytes = base64.size() / 4 * 3;
    if (base64.ends_with("==")) {
      bytes -= 2;
    } else if (base64.ends_with("=")) {
      bytes -= 1;
    }
    std::string text = "(" + wire::format_size(bytes);
    if (const std::string type = text_field(reading, "content_type"); !type.empty()) {
      text += ", " + type;
    }
    return text + ")";
  }
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_float()) {
    std::string text;
    wire::append_double(value->get<double>(), text);
    return text;
  }
  return value->dump();
}

}  // namespace

ReadingTable::ReadingTable(NamespaceColumn namespaces, std::optional<std::uint64_t> row_limit,
                           std::optional<std::int64_t> now_ns, std::FILE* out, Zone zone)
    : with_namespace_(namespaces == NamespaceColumn::Shown),
      row_limit_(row_limit),
      now_ns_(now_ns),
      zone_(std::move(zone)),
      table_(columns_of(with_namespace_, now_ns.has_value()), out) {}

bool ReadingTable::push(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      rest_ += piece;
      return true;
    }
    rest_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    const std::string line = std::exchange(rest_, {});
    if (!line.empty() && !take_line(line)) return false;
  }
  return true;
}

bool ReadingTable::take_line(std::string_view line) {
  if (row_limit_.has_value() && table_.rows() >= *row_limit_) {
    limit_reached_ = true;
    return false;
  }
  const nlohmann::json reading = nlohmann::json::parse(line, nullptr, false);
  if (!reading.is_object()) {
    status_ = io_error("the daemon's answer is no list of readings");
    return false;
  }
  std::vector<std::string> cells;
  if (with_namespace_) cells.push_back(text_field(reading, "namespace"));
  cells.push_back(text_field(reading, "device") + "/" + text_field(reading, "sensor"));
  const Result<std::int64_t> time = wire::parse_rfc3339_ns(text_field(reading, "time"));
  cells.push_back(time.ok() ? short_time(*time, zone_.get()) : text_field(reading, "time"));
  cells.push_back(value_of(reading));
  if (now_ns_.has_value()) cells.push_back(time.ok() ? age_text(*now_ns_ - *time) : "");
  table_.row(std::move(cells));
  return true;
}

Status ReadingTable::finish() {
  table_.flush();
  EC_TRY(status_);
  if (!rest_.empty() && !limit_reached_) return io_error("the daemon's answer broke off");
  return ok();
}

}  // namespace edgecase::cli
