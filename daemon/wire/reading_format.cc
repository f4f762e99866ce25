#include "wire/reading_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "wire/encoding.h"
#include "wire/line_protocol.h"
#include "wire/reading.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::wire {
namespace {

constexpr std::array<std::string_view, 4> kFormatNames = {"csv", "ndjson", "json", "line"};
constexpr std::string_view kCsvHeader = "namespace,device,sensor,time,value,type";
// Behind a reading, in place of a window's columns.
constexpr std::string_view kCsvNoWindow = ",,,,,,,,,";
static_assert(kCsvNoWindow.size() == kWindowColumns.size() + 2);

void append_int(std::int64_t number, std::string& out) {
  std::array<char, 20> text;
  out.append(text.data(), write_int(number, text.data()));
}

std::string_view content_type_or_default(const Value& value) {
  return value.content_type.empty() ? kDefaultContentType : value.content_type;
}

void append_csv_quoted(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
}

// Up to the end of the line, or to what follows of windows.
void append_csv_type(const Value& value, std::string& out) {
  out.push_back(',');
  if (value.type == ValueType::Bytes && content_type_or_default(value) != kDefaultContentType) {
    append_csv_field("bytes;" + std::string(value.content_type), out);
  } else {
    out.append(value_type_name(value.type));
  }
}

void append_csv_names(const Reading& reading, std::string& out) {
  append_csv_field(reading.namespace_name, out);
  out.push_back(',');
  append_csv_field(reading.device, out);
  out.push_back(',');
  append_csv_field(reading.sensor, out);
  out.push_back(',');
}

void append_csv_begin(const Reading& reading, std::string& out) {
  append_csv_names(reading, out);
  append_time(reading.time_ns.value_or(0), out);
  out.push_back(',');
}

void append_csv_value(const Value& value, std::string& out) {
  switch (value.type) {
    case ValueType::Float64: append_double(value.float64, out); break;
    case ValueType::Int64: append_int(value.int64, out); break;
    case ValueType::Bool: out.append(value.boolean ? "true" : "false"); break;
    case ValueType::Text: append_csv_field(value.text, out); break;
    case ValueType::Bytes: append_base64(value.text, out); break;
  }
  append_csv_type(value, out);
}

// Behind the quote that ends a text or bytes.
void append_json_end(const Value& value, std::string& out) {
  if (value.type == ValueType::Bytes) {
    out.append(",\"type\":\"bytes\",\"content_type\":");
    append_json_string(content_type_or_default(value), out);
  }
  out.push_back('}');
}

constexpr std::string_view kJsonInt = ",\"type\":\"int\"";

void append_json_value(const Value& value, std::string& out) {
  switch (value.type) {
    case ValueType::Float64: append_double(value.float64, out); break;
    case ValueType::Int64:
      append_int(value.int64, out);
      out.append(kJsonInt);
      break;
    case ValueType::Bool: out.append(value.boolean ? "true" : "false"); break;
    case ValueType::Text: append_json_string(value.text, out); break;
    case ValueType::Bytes:
      out.push_back('"');
      append_base64(value.text, out);
      out.push_back('"');
      break;
  }
  append_json_end(value, out);
}

void append_json_identity(const Identity& identity, std::string& out) {
  out.append(",\"measurement\":");
  append_json_string(identity.measurement, out);
  out.append(",\"tags\":{");
  const char* between = "";
  for (const auto& [key, value] : identity.tags) {
    out.append(std::exchange(between, ","));
    append_json_string(key, out);
    out.push_back(':');
    append_json_string(value, out);
  }
  out.append("},\"field\":");
  append_json_string(identity.field, out);
}

constexpr std::string_view kBehindJsonTime = "\",\"value\":";

// All before the time. `identity`: null, it is that of the names.
void append_json_names(const Reading& reading, const Identity* identity, std::string& out) {
  out.append("{\"namespace\":");
  append_json_string(reading.namespace_name, out);
  out.append(",\"device\":");
  append_json_string(reading.device, out);
  out.append(",\"sensor\":");
  append_json_string(reading.sensor, out);
  if (identity != nullptr) append_json_identity(*identity, out);
  out.append(",\"time\":\"");
}

void append_json_begin(const Reading& reading, const Identity* identity, std::string& out) {
  append_json_names(reading, identity, out);
  append_time(reading.time_ns.value_or(0), out);
  out.append(kBehindJsonTime);
}

void append_json(const Reading& reading, const Identity* identity, std::string& out) {
  if (reading.window != nullptr) {
    append_json_names(reading, identity, out);
    append_time(reading.time_ns.value_or(0), out);
    out.append("\",\"window\":\"").append(format_duration(reading.window->every_ns)) += '"';
    append_json_columns(*reading.window,
                        identity == nullptr ? kValueField : std::string_view(identity->field), out);
    out.push_back('}');
    return;
  }
  append_json_begin(reading, identity, out);
  if (reading.lack != Lack::Nothing) {
    out.append("null,\"type\":\"").append(lack_name(reading.lack)).append("\"}");
    return;
  }
  append_json_value(reading.value, out);
}

// A `\` before each of `special`; other `\` stand for themselves in line protocol.
void append_line_name(std::string_view name, std::string_view special, std::string& out) {
  for (const char c : name) {
    if (special.find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
}

// Behind a name comes `,`, `=` or a space, which a `\` at its end would escape.
bool has_line_form(std::string_view name) {
  return !name.empty() && !name.ends_with('\\') && name.find('\n') == std::string_view::npos;
}

bool has_line_form(const Identity& identity) {
  return has_line_form(identity.measurement) && has_line_form(identity.field) &&
         std::all_of(identity.tags.begin(), identity.tags.end(), [](const auto& tag) {
           return has_line_form(tag.first) && has_line_form(tag.second);
         });
}

// Why there is no line form, or null.
const char* no_line_form(const Reading& reading, const Identity* identity) {
  if (reading.lack != Lack::Nothing) return "a window without a value";
  if (reading.window == nullptr && reading.value.type == ValueType::Bytes) return "bytes";
  const std::string_view measurement = identity == nullptr ? reading.sensor : identity->measurement;
  if (measurement.starts_with('#')) return "a measurement beginning with #";
  const bool has_form = identity == nullptr
                            ? has_line_form(reading.sensor) && has_line_form(reading.device)
                            : has_line_form(*identity);
  return has_form ? nullptr : "a name that is empty, ends in a backslash or has several lines";
}

// False: it has no line form, and a comment stands in its place.
bool append_line_begin(const Reading& reading, const Identity* identity, std::string& out) {
  const char* const missing = no_line_form(reading, identity);
  if (missing != nullptr) {
    // Names hold no line breaks, so the comment is one line.
    out.append("# ").append(reading.device).append("/").append(reading.sensor).append(" ");
    append_time(reading.time_ns.value_or(0), out);
    out.append(": line protocol has no form for ").append(missing).append("\n");
    return false;
  }
  append_line_name(identity == nullptr ? reading.sensor : std::string_view(identity->measurement),
                   ", ", out);
  const auto append_field = [&](std::string_view field) {
    out.push_back(' ');
    std::string name;
    append_line_name(field, ",= ", name);
    if (reading.window != nullptr) {
      append_line_columns(*reading.window, name, out);
    } else {
      out.append(name).push_back('=');
    }
  };
  if (identity == nullptr) {
    out.append(",device=");
    append_line_name(reading.device, ",= ", out);
    append_field(kValueField);
    return true;
  }
  for (const auto& [key, value] : identity->tags) {
    out.push_back(',');
    append_line_name(key, ",= ", out);
    out.push_back('=');
    append_line_name(value, ",= ", out);
  }
  append_field(identity->field);
  return true;
}

void append_line_text(std::string_view text, std::string& out) {
  append_line_name(text, "\"\\", out);
}

void append_line_end(const Reading& reading, std::string& out) {
  out.push_back(' ');
  append_int(reading.time_ns.value_or(0), out);
  out.push_back('\n');
}

void append_line(const Reading& reading, const Identity* identity, std::string& out) {
  if (!append_line_begin(reading, identity, out)) return;
  if (reading.window != nullptr) return append_line_end(reading, out);
  switch (reading.value.type) {
    case ValueType::Float64: append_double(reading.value.float64, out); break;
    case ValueType::Int64:
      append_int(reading.value.int64, out);
      out.push_back('i');
      break;
    case ValueType::Bool: out.append(reading.value.boolean ? "true" : "false"); break;
    case ValueType::Text:
      out.push_back('"');
      append_line_text(reading.value.text, out);
      out.push_back('"');
      break;
    case ValueType::Bytes: break;
  }
  append_line_end(reading, out);
}

}  // namespace

std::string_view lack_name(Lack lack) {
  switch (lack) {
    case Lack::Unavailable: return "unavailable";
    case Lack::Damaged: return "damaged";
    case Lack::Nothing: break;
  }
  return "";
}

Result<ReadingFormat> parse_reading_format(std::string_view name) {
  for (std::size_t i = 0; i < kFormatNames.size(); ++i) {
    if (kFormatNames[i] == name) return static_cast<ReadingFormat>(i);
  }
  return invalid_argument("unknown format \"" + std::string(name.substr(0, 64)) +
                          "\"; one of csv ndjson json line, of queries also parquet arrow");
}

std::string_view content_type_of(ReadingFormat format) {
  switch (format) {
    case ReadingFormat::Csv: return "text/csv; charset=utf-8";
    case ReadingFormat::Ndjson: return "application/x-ndjson";
    case ReadingFormat::Json: return "application/json";
    case ReadingFormat::Line: return "text/plain; charset=utf-8";
  }
  return kDefaultContentType;
}

void append_line_context(std::string_view namespace_name, std::string& out) {
  out.append(kLineContext).append(" ").append(namespace_name).append("\n");
}

void ReadingFormatter::begin(std::string& out) {
  first_ = true;
  if (format_ == ReadingFormat::Csv) {
    out.append(kCsvHeader);
    if (tells_windows_) out.append(kCsvWindowColumns);
    out.push_back('\n');
  }
  if (format_ == ReadingFormat::Json) out.push_back('[');
  if (tells_namespaces_) out.append("# DML\n");
}

void ReadingFormatter::tell_namespace(const Reading& reading, std::string& out) {
  if (!tells_namespaces_ || reading.namespace_name == told_) return;
  told_ = reading.namespace_name;
  append_line_context(told_, out);
}

// Lines below it are windows of that length, or, without one, readings.
void ReadingFormatter::tell_window(const Reading& reading, std::string& out) {
  const std::int64_t every_ns = reading.window == nullptr ? 0 : reading.window->every_ns;
  if (every_ns == std::exchange(told_window_ns_, every_ns)) return;
  out.append(kLineWindow).append(every_ns == 0 ? "" : " " + format_duration(every_ns)) += '\n';
}

void ReadingFormatter::append_csv(const Reading& reading, std::string& out) {
  append_csv_begin(reading, out);
  if (reading.lack != Lack::Nothing) {
    out.append(",").append(lack_name(reading.lack));
  } else if (reading.window != nullptr) {
    out.push_back(',');
  } else {
    append_csv_value(reading.value, out);
  }
  if (tells_windows_ && reading.window != nullptr) append_csv_columns(*reading.window, out);
  if (tells_windows_ && reading.window == nullptr) out.append(kCsvNoWindow);
  out.push_back('\n');
}

void ReadingFormatter::reading(const Reading& reading, std::string& out) {
  switch (format_) {
    case ReadingFormat::Csv: append_csv(reading, out); return;
    case ReadingFormat::Ndjson:
      append_json(reading, identity_of_reading(reading), out);
      out.push_back('\n');
      return;
    case ReadingFormat::Json:
      open_object(out);
      append_json(reading, identity_of_reading(reading), out);
      return;
    case ReadingFormat::Line:
      tell_namespace(reading, out);
      tell_window(reading, out);
      append_line(reading, identity_of_reading(reading), out);
      return;
  }
}

void ReadingFormatter::numbers(const Reading& of, const Numbers& numbers, std::string& out) {
  if (numbers.empty()) return;
  Reading each = of;
  const auto format_one = [&](std::size_t i) {
    each.time_ns = numbers.times_ns[i];
    each.value = numbers.value(i);
    reading(each, out);
  };
  if (format_ == ReadingFormat::Line) {
    for (std::size_t i = 0; i < numbers.size(); ++i) format_one(i);
    return;
  }
  if (format_ == ReadingFormat::Json && first_) {
    format_one(0);
    return this->numbers(of, numbers.from(1), out);
  }
  // What stands before and behind the time of each, and behind its value.
  std::string before, behind;
  std::string_view between = ",";
  if (format_ == ReadingFormat::Csv) {
    append_csv_names(of, before);
    append_csv_type(numbers.value(0), behind);
    if (tells_windows_) behind.append(kCsvNoWindow);
    behind.push_back('\n');
  } else {
    const bool is_array = format_ == ReadingFormat::Json;
    if (is_array) before = ",\n";
    append_json_names(of, identity_of_reading(of), before);
    between = kBehindJsonTime;
    if (!numbers.is_float) behind = kJsonInt;
    behind += is_array ? "}" : "}\n";
  }
  const std::size_t row_bytes = before.size() + TimePrinter::kBytes + between.size() +
                                DoublePrinter::kBytesMax + behind.size();
  std::size_t size = out.size();
  const auto append = [](std::string_view text, char* at) {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
  };
  constexpr std::size_t kRowsAtOnce = 64;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t end = std::min(numbers.size(), i + kRowsAtOnce);
    out.resize(size + (end - i) * row_bytes);
    char* at = out.data() + size;
    for (; i < end; ++i) {
      at = append(before, at);
      times_.write(numbers.times_ns[i], at);
      at = append(between, at + TimePrinter::kBytes);
      at = numbers.is_float ? doubles_.write(numbers.float64(i), at)
                            : write_int(numbers.int64(i), at);
      at = append(behind, at);
    }
    size = static_cast<std::size_t>(at - out.data());
    out.resize(size);
  }
}

// Null: that of the names.
const Identity* ReadingFormatter::identity_of_reading(const Reading& reading) {
  if (reading.identity == nullptr) return nullptr;
  const SeriesIdentity& given = *reading.identity;
  const bool is_told = identity_ && identity_->device == reading.device &&
                       identity_->sensor == reading.sensor &&
                       identity_->measurement_bytes == given.measurement_bytes &&
                       identity_->device_keys == given.device_keys && identity_->body == given.body;
  if (!is_told) {
    identity_ =
        Told{std::string(reading.device),    std::string(reading.sensor),
             std::string(given.device_keys), std::string(given.body),
             given.measurement_bytes,        identity_of(given, reading.device, reading.sensor)};
  }
  return &identity_->identity;
}

void ReadingFormatter::begin_column(const Reading& of, std::string& out) {
  append_json_names(of, identity_of_reading(of), out);
}

void ReadingFormatter::open_object(std::string& out) {
  out.append(first_ ? "\n" : ",\n");
  first_ = false;
}

bool ReadingFormatter::begin_text(const Reading& reading, std::string& out) {
  const bool is_text = reading.value.type == ValueType::Text;
  switch (format_) {
    case ReadingFormat::Csv: append_csv_begin(reading, out); break;
    case ReadingFormat::Json: open_object(out); [[fallthrough]];
    case ReadingFormat::Ndjson:
      append_json_begin(reading, identity_of_reading(reading), out);
      break;
    case ReadingFormat::Line:
      tell_namespace(reading, out);
      tell_window(reading, out);
      if (!append_line_begin(reading, identity_of_reading(reading), out)) return false;
      break;
  }
  if (is_text || format_ != ReadingFormat::Csv) out.push_back('"');
  return true;
}

void ReadingFormatter::text(const Reading& reading, std::string_view piece, std::string& out) {
  if (format_ == ReadingFormat::Line) {
    append_line_text(piece, out);
  } else if (reading.value.type == ValueType::Bytes) {
    base64_.append(piece, out);
  } else if (format_ == ReadingFormat::Csv) {
    append_csv_quoted(piece, out);
  } else {
    append_json_escaped(piece, out);
  }
}

void ReadingFormatter::end_text(const Reading& reading, std::string& out) {
  const bool is_text = reading.value.type == ValueType::Text;
  base64_.finish(out);
  switch (format_) {
    case ReadingFormat::Csv:
      if (is_text) out.push_back('"');
      append_csv_type(reading.value, out);
      if (tells_windows_) out.append(kCsvNoWindow);
      out.push_back('\n');
      return;
    case ReadingFormat::Ndjson:
    case ReadingFormat::Json:
      out.push_back('"');
      append_json_end(reading.value, out);
      if (format_ == ReadingFormat::Ndjson) out.push_back('\n');
      return;
    case ReadingFormat::Line:
      out.push_back('"');
      append_line_end(reading, out);
      return;
  }
}

void ReadingFormatter::end(std::string& out) {
  if (format_ == ReadingFormat::Json) out.append(first_ ? "]\n" : "\n]\n");
}

void append_csv_field(std::string_view text, std::string& out) {
  const bool outer_space = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!text.empty() && !outer_space && text.find_first_of(",\"\r\n\t") == std::string_view::npos) {
    out.append(text);
    return;
  }
  out.push_back('"');
  append_csv_quoted(text, out);
  out.push_back('"');
}

}  // namespace edgecase::wire
