#include "http/influx_query.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using influxql::Cell;
using influxql::SeriesHead;

constexpr std::int64_t kMinuteSeconds = 60;
constexpr std::int64_t kHourSeconds = 3600;

// "1.5e+00": digits with a point, an exponent with its sign and two digits or more.
std::string_view scientific(double value, char (&text)[40]) {
  const auto end =
      std::to_chars(std::begin(text), std::end(text), value, std::chars_format::scientific);
  return {text, static_cast<std::size_t>(end.ptr - text)};
}

// What append_go_number() appends; returns its end.
constexpr std::size_t kGoNumberBytesMax = 40;
char* write_go_number(double value, char* out) {
  // The shortest digits, without zeros that they do not have.
  constexpr double kFixedMin = 1e-6, kFixedMax = 1e15;
  const double size = std::abs(value);
  if (size >= kFixedMin && size < kFixedMax)
    return std::to_chars(out, out + kGoNumberBytesMax, value, std::chars_format::fixed).ptr;
  std::string text;
  append_go_number(value, text);
  return std::copy(text.begin(), text.end(), out);
}

// Decimals of few places look alike in every form.
void append_float(double value, wire::DoublePrinter& printer,
                  void (&otherwise)(double value, std::string& out), std::string& out) {
  char text[wire::DoublePrinter::kBytesMax];
  char* const end = printer.write_decimal(value, text);
  if (end == nullptr) return otherwise(value, out);
  out.append(text, end);
}

// JSON in pieces, with Go's indentation or none.
class JsonText {
 public:
  explicit JsonText(bool is_pretty) : is_pretty_(is_pretty) {}

  void open(char bracket, std::string& out) {
    separate(out);
    out += bracket;
    ++depth_;
    is_first_ = true;
  }
  void close(char bracket, std::string& out) {
    --depth_;
    if (!is_first_) break_line(out);
    out += bracket;
    is_first_ = false;
  }
  void key(std::string_view name, std::string& out) {
    separate(out);
    wire::append_json_string(name, out);
    out += is_pretty_ ? ": " : ":";
    is_behind_key_ = true;
  }
  void text(std::string_view value, std::string& out) {
    separate(out);
    wire::append_json_string(value, out);
  }
  void literal(std::string_view value, std::string& out) {
    separate(out);
    out += value;
  }
  // Before a value or a key that the caller writes.
  void separate(std::string& out) {
    if (std::exchange(is_behind_key_, false)) return;
    if (!is_first_) out += ',';
    if (depth_ > 0) break_line(out);
    is_first_ = false;
  }
  void end_document(std::string& out) {
    out += '\n';
    is_first_ = true;
  }

 private:
  void break_line(std::string& out) const {
    if (!is_pretty_) return;
    out += '\n';
    out.append(depth_ * 4, ' ');
  }

  const bool is_pretty_;
  std::size_t depth_ = 0;
  bool is_first_ = true;  // of what is in the brackets at hand
  bool is_behind_key_ = false;
};

// Row by row, as cells.
void append_cells(InfluxText& text, const influxql::NumberRows& rows, std::size_t first,
                  std::size_t last, const influxql::RowSource& zone, std::string& out) {
  std::vector<Cell> cells(rows.columns.size() + 1);
  cells[0].kind = Cell::Kind::Time;
  for (std::size_t row = first; row < last; ++row) {
    cells[0].integer = rows.times_ns[row];
    for (std::size_t i = 0; i < rows.columns.size(); ++i) rows.columns[i].get(row, cells[i + 1]);
    text.row(cells, zone, out);
  }
}

class InfluxJson final : public InfluxText {
 public:
  explicit InfluxJson(const InfluxShape& shape) : shape_(shape), json_(shape.is_pretty) {}

  void begin_series(std::size_t statement, const SeriesHead& head, std::string& out) override {
    open_result(statement, out);
    if (!std::exchange(has_series_, true)) {
      json_.key("series", out);
      json_.open('[', out);
    }
    json_.open('{', out);
    if (!head.name.empty()) {
      json_.key("name", out);
      json_.text(head.name, out);
    }
    if (!head.tags.empty()) {
      json_.key("tags", out);
      json_.open('{', out);
      for (const auto& [key, value] : head.tags) {
        json_.key(key, out);
        json_.text(value, out);
      }
      json_.close('}', out);
    }
    json_.key("columns", out);
    json_.open('[', out);
    for (const std::string& column : head.columns) json_.text(column, out);
    json_.close(']', out);
  }

  void row(const std::vector<Cell>& cells, const influxql::RowSource& zone,
           std::string& out) override {
    if (!std::exchange(has_rows_, true)) {
      json_.key("values", out);
      json_.open('[', out);
    }
    json_.open('[', out);
    for (const Cell& cell : cells) {
      json_.separate(out);
      append_cell(cell, zone, out);
    }
    json_.close(']', out);
  }

  void rows(const influxql::NumberRows& rows, std::size_t first, std::size_t last,
            const influxql::RowSource& zone, std::string& out) override {
    // The first row of all opens the list.
    const std::size_t begin =
        !shape_.is_pretty && shape_.epoch_ns > 0 && !has_rows_ ? std::min(first + 1, last) : first;
    const bool is_compact = !shape_.is_pretty && shape_.epoch_ns > 0;
    append_cells(*this, rows, first, is_compact ? begin : last, zone, out);
    if (!is_compact || begin == last) return;
    // A string would fill with zeros what it grows by.
    const std::size_t row_bytes = kTimeBytesMax + rows.columns.size() * kCellBytesMax;
    if (row_bytes > row_bytes_) row_ = std::make_unique_for_overwrite<char[]>(row_bytes);
    row_bytes_ = std::max(row_bytes, row_bytes_);
    for (std::size_t row = begin; row < last; ++row)
      out.append(row_.get(), write_row(rows, row, row_.get()));
  }

  void end_series(bool goes_on, bool more, std::string& out) override {
    if (std::exchange(has_rows_, false)) json_.close(']', out);
    if (goes_on) {
      json_.key("partial", out);
      json_.literal("true", out);
    }
    json_.close('}', out);
    if (shape_.chunk_rows == 0) return;
    close_result({}, {}, more, out);
    close_document(out);
  }

  void end_statement(std::size_t statement, std::string_view error, std::string_view notice,
                     std::string& out) override {
    const bool is_told = was_told_ && statement == statement_;
    if (shape_.chunk_rows > 0 && is_told && error.empty() && notice.empty()) return;
    open_result(statement, out);
    close_result(error, notice, false, out);
    if (shape_.chunk_rows > 0) close_document(out);
  }

  void end(std::string& out) override {
    if (shape_.chunk_rows > 0) return;
    open_document(out);
    close_document(out);
  }

 private:
  void open_document(std::string& out) {
    if (std::exchange(is_document_open_, true)) return;
    json_.open('{', out);
    json_.key("results", out);
    json_.open('[', out);
  }
  void close_document(std::string& out) {
    json_.close(']', out);
    json_.close('}', out);
    json_.end_document(out);
    is_document_open_ = false;
  }
  void open_result(std::size_t statement, std::string& out) {
    if (std::exchange(is_result_open_, true)) return;
    open_document(out);
    json_.open('{', out);
    json_.key("statement_id", out);
    json_.literal(std::to_string(statement), out);
    statement_ = statement;
    was_told_ = true;
  }
  void close_result(std::string_view error, std::string_view notice, bool more, std::string& out) {
    if (std::exchange(has_series_, false)) json_.close(']', out);
    if (!notice.empty()) {
      json_.key("messages", out);
      json_.open('[', out);
      json_.open('{', out);
      json_.key("level", out);
      json_.text("warning", out);
      json_.key("text", out);
      json_.text(notice, out);
      json_.close('}', out);
      json_.close(']', out);
    }
    if (more) {
      json_.key("partial", out);
      json_.literal("true", out);
    }
    if (!error.empty()) {
      json_.key("error", out);
      json_.text(error, out);
    }
    json_.close('}', out);
    is_result_open_ = false;
  }
  // With brackets, commas and a sign.
  static constexpr std::size_t kTimeBytesMax = 24, kCellBytesMax = 1 + kGoNumberBytesMax;

  char* write_row(const influxql::NumberRows& rows, std::size_t row, char* at) {
    *at++ = ',';
    *at++ = '[';
    at = wire::write_int(rows.times_ns[row] / shape_.epoch_ns, at);
    for (const influxql::NumberRows::Column& column : rows.columns) {
      *at++ = ',';
      if (column.has[row] == 0) {
        at = std::copy_n("null", 4, at);
      } else if (column.kind == Cell::Kind::Integer) {
        at = wire::write_int(static_cast<std::int64_t>(column.bits[row]), at);
      } else {
        const auto number = std::bit_cast<double>(column.bits[row]);
        char* const end = floats_.write_decimal(number, at);
        at = end != nullptr ? end : write_go_number(number, at);
      }
    }
    *at++ = ']';
    return at;
  }

  void append_cell(const Cell& cell, const influxql::RowSource& zone, std::string& out) {
    switch (cell.kind) {
      case Cell::Kind::Null: out += "null"; return;
      case Cell::Kind::Integer: out += std::to_string(cell.integer); return;
      case Cell::Kind::Float: return append_float(cell.number, floats_, append_go_number, out);
      case Cell::Kind::Bool: out += cell.integer != 0 ? "true" : "false"; return;
      case Cell::Kind::Text: return wire::append_json_string(cell.text, out);
      case Cell::Kind::Time: break;
    }
    if (shape_.epoch_ns > 0) {
      out += std::to_string(cell.integer / shape_.epoch_ns);
      return;
    }
    out += '"';
    append_go_time(cell.integer, zone.offset_s(cell.integer), out);
    out += '"';
  }

  const InfluxShape shape_;
  wire::DoublePrinter floats_;
  JsonText json_;
  bool is_document_open_ = false, is_result_open_ = false;
  bool has_series_ = false, has_rows_ = false;  // their lists are open
  std::size_t statement_ = 0;
  bool was_told_ = false;        // something of statement_
  std::unique_ptr<char[]> row_;  // room for one of row_bytes_
  std::size_t row_bytes_ = 0;
};

// As Go's encoding/csv: quotes only where they must be.
void append_csv(std::string_view text, std::string& out) {
  const bool is_quoted = text.find_first_of(",\"\r\n") != std::string_view::npos || text == "\\." ||
                         text.starts_with(' ') || text.starts_with('\t');
  if (!is_quoted) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

// As tags stand in line protocol.
void append_escaped_tag(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c == ',' || c == '=' || c == ' ') out += '\\';
    out += c;
  }
}

class InfluxCsv final : public InfluxText {
 public:
  explicit InfluxCsv(const InfluxShape& shape) : shape_(shape) {}

  void begin_series(std::size_t statement, const SeriesHead& head, std::string& out) override {
    const bool is_new = !is_any_ || statement != statement_;
    if (is_new || head.columns != columns_) {
      if (is_any_) out += '\n';
      out += "name,tags";
      for (const std::string& column : head.columns) {
        out += ',';
        append_csv(column, out);
      }
      out += '\n';
    }
    is_any_ = true;
    statement_ = statement;
    columns_ = head.columns;
    line_head_.clear();
    append_csv(head.name, line_head_);
    line_head_ += ',';
    std::string tags;
    for (const auto& [key, value] : head.tags) {
      if (value.empty()) continue;
      if (!tags.empty()) tags += ',';
      append_escaped_tag(key, tags);
      tags += '=';
      append_escaped_tag(value, tags);
    }
    append_csv(tags, line_head_);
  }
  void row(const std::vector<Cell>& cells, const influxql::RowSource& /*zone*/,
           std::string& out) override {
    out += line_head_;
    for (const Cell& cell : cells) {
      out += ',';
      append_cell(cell, out);
    }
    out += '\n';
  }
  void rows(const influxql::NumberRows& rows, std::size_t first, std::size_t last,
            const influxql::RowSource& zone, std::string& out) override {
    append_cells(*this, rows, first, last, zone, out);
  }
  void end_series(bool /*goes_on*/, bool /*more*/, std::string& /*out*/) override {}
  // InfluxDB says nothing of an error here; an answer that lacks something is none.
  void end_statement(std::size_t statement, std::string_view error, std::string_view notice,
                     std::string& out) override {
    if (!notice.empty()) append_words(statement, "warning", notice, out);
    if (!error.empty()) append_words(statement, "error", error, out);
  }
  void end(std::string& /*out*/) override {}

 private:
  void append_words(std::size_t statement, std::string_view column, std::string_view words,
                    std::string& out) {
    if (is_any_) out += '\n';
    out.append(column) += '\n';
    append_csv(words, out);
    out += '\n';
    is_any_ = true;
    statement_ = statement;
    columns_.clear();
  }
  void append_cell(const Cell& cell, std::string& out) {
    switch (cell.kind) {
      case Cell::Kind::Null: return;
      case Cell::Kind::Integer: out += std::to_string(cell.integer); return;
      case Cell::Kind::Float: return append_float(cell.number, floats_, append_plain_number, out);
      case Cell::Kind::Bool: out += cell.integer != 0 ? "true" : "false"; return;
      case Cell::Kind::Text: return append_csv(cell.text, out);
      case Cell::Kind::Time:
        out += std::to_string(cell.integer / std::max<std::int64_t>(shape_.epoch_ns, 1));
        return;
    }
  }

  const InfluxShape shape_;
  wire::DoublePrinter floats_;
  bool is_any_ = false;  // something was written
  std::size_t statement_ = 0;
  std::vector<std::string> columns_;
  std::string line_head_;  // name and tags of the series at hand
};

void append_two(std::int64_t number, std::string& out) {
  out += static_cast<char>('0' + number / 10);
  out += static_cast<char>('0' + number % 10);
}

}  // namespace

std::unique_ptr<InfluxText> make_influx_text(const InfluxShape& shape) {
  if (shape.is_csv) return std::make_unique<InfluxCsv>(shape);
  return std::make_unique<InfluxJson>(shape);
}

void append_plain_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    return;
  }
  char buffer[40];
  std::string_view text = scientific(value, buffer);
  if (text.starts_with('-')) {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t letter = text.find('e');
  const char* from = text.data() + letter + (text[letter + 1] == '+' ? 2 : 1);
  int exponent = 0;
  std::from_chars(from, text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (letter > 2) digits += text.substr(2, letter - 2);
  if (exponent < 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-exponent - 1), '0');
    out += digits;
    return;
  }
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  out.append(digits, 0, whole);
  if (digits.size() == whole) return;
  out += '.';
  out.append(digits, whole);
}

void append_go_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const double size = std::abs(value);
  if (size == 0 || (size >= 1e-6 && size < 1e21)) return append_plain_number(value, out);
  char buffer[40];
  const std::string_view text = scientific(value, buffer);
  out += text;
  // Go has e-7 where C has e-07.
  const std::size_t tail = out.size() - 4;
  if (text.size() >= 4 && out[tail] == 'e' && out[tail + 1] == '-' && out[tail + 2] == '0')
    out.erase(tail + 2, 1);
}

void append_go_time(std::int64_t time_ns, std::int64_t offset_s, std::string& out) {
  // The sum may be beyond what a time can be: then it is told in UTC.
  std::int64_t local_ns = 0;
  if (__builtin_add_overflow(time_ns, offset_s * wire::kNanosecondsPerSecond, &local_ns)) {
    local_ns = time_ns;
    offset_s = 0;
  }
  std::string text;
  wire::append_time(local_ns, text);  // with nine digits and a Z
  text.pop_back();
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  out += text;
  if (offset_s == 0) {
    out += 'Z';
    return;
  }
  out += offset_s < 0 ? '-' : '+';
  const std::int64_t size_s = std::abs(offset_s);
  append_two(size_s / kHourSeconds, out);
  out += ':';
  append_two(size_s % kHourSeconds / kMinuteSeconds, out);
}

}  // namespace edgecase::http
