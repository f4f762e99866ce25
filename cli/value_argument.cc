#include "value_argument.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "wire/names.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

bool parse_float(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

}  // namespace

Result<wire::Value> parse_value(std::string_view text, std::string_view type) {
  if (type == "bytes") return wire::Value::of_bytes(text, "");
  if (type == "text" || type.empty()) {
    double number = 0;
    if (type.empty() && parse_float(text, number)) return wire::Value::of_float64(number);
    if (type.empty() && (text == "true" || text == "false")) {
      return wire::Value::of_bool(text == "true");
    }
    if (!wire::is_valid_utf8(text)) {
      return invalid_argument("the value is not UTF-8 text, use --type bytes");
    }
    return wire::Value::of_text(text);
  }
  if (type == "float") {
    double number = 0;
    if (!parse_float(text, number)) {
      return invalid_argument(quoted(text) + " is no finite number, use one as in -21.5 or 1e3");
    }
    return wire::Value::of_float64(number);
  }
  if (type == "int") {
    std::int64_t number = 0;
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return invalid_argument(quoted(text) + " is no whole number of 64 bits, use one as in -42");
    }
    return wire::Value::of_int64(number);
  }
  if (type == "bool") {
    if (text != "true" && text != "false") {
      return invalid_argument(quoted(text) + " is neither true nor false");
    }
    return wire::Value::of_bool(text == "true");
  }
  return invalid_argument(quoted(type) + " is no type, use float, int, bool, text or bytes");
}

std::string_view content_type_of_file(std::string_view path) {
  using Row = std::pair<std::string_view, std::string_view>;
  constexpr std::array kTypes = {Row{".jpg", "image/jpeg"},       Row{".jpeg", "image/jpeg"},
                                 Row{".png", "image/png"},        Row{".gif", "image/gif"},
                                 Row{".webp", "image/webp"},      Row{".json", "application/json"},
                                 Row{".txt", "text/plain"},       Row{".csv", "text/csv"},
                                 Row{".html", "text/html"},       Row{".xml", "application/xml"},
                                 Row{".pdf", "application/pdf"},  Row{".wav", "audio/wav"},
                                 Row{".mp3", "audio/mpeg"},       Row{".mp4", "video/mp4"},
                                 Row{".cbor", "application/cbor"}};
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::string reading_json(std::string_view namespace_name, std::string_view device,
                         std::string_view sensor, std::string_view time, const wire::Value& value) {
  std::string out = "{\"namespace\":";
  wire::append_json_string(namespace_name, out);
  out += ",\"device\":";
  wire::append_json_string(device, out);
  out += ",\"sensor\":";
  wire::append_json_string(sensor, out);
  if (!time.empty()) {
    out += ",\"time\":";
    wire::append_json_string(time, out);
  }
  out += ",\"value\":";
  switch (value.type) {
    case wire::ValueType::Float64:
      wire::append_double(value.float64, out);
      out += ",\"type\":\"float\"";
      break;
    case wire::ValueType::Int64: out += std::to_string(value.int64) + ",\"type\":\"int\""; break;
    case wire::ValueType::Bool:
      out += value.boolean ? "true" : "false";
      out += ",\"type\":\"bool\"";
      break;
    case wire::ValueType::Text:
    case wire::ValueType::Bytes:
      wire::append_json_string(value.text, out);
      out += ",\"type\":\"text\"";
      break;
  }
  return out + "}";
}

}  // namespace edgecase::cli
