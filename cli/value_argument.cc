#include "command_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "wire/decimal.h"
#include "wire/names.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::optional<bool> parse_bool(std::string_view text, const ValueSpelling& spelling) {
  std::string word(wire::trimmed_text(text));
  if (spelling.any_case_of_bools) {
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  if (word == "true") return true;
  if (word == "false") return false;
  return std::nullopt;
}

// With `other` = `,`: `1,5` and `1,234.5` are numbers to whoever wrote them, but which?
bool is_number_with(char other, std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t first = text.find(other);
  if (first == 0 || first == std::string_view::npos) return false;
  if (text.find_first_not_of("0123456789,.") != std::string_view::npos) return false;
  if (text.find(other, first + 1) == std::string_view::npos) return true;
  // Several are thousands.
  for (std::size_t at = first; at != std::string_view::npos; at = text.find(other, at + 1)) {
    const std::size_t end = std::min(text.find_first_of(",.", at + 1), text.size());
    if (end - at - 1 != 3) return false;
  }
  return true;
}

Result<std::int64_t> parse_int(std::string_view given, const std::string& number) {
  std::string_view digits = number;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  // `5.0`, as spreadsheets write a 5. With an exponent its last digits may be gone.
  if (const std::size_t point = digits.find('.'); point != std::string_view::npos && point > 0) {
    const std::size_t rest = digits.find_first_not_of('0', point + 1);
    if (rest == std::string_view::npos) digits = digits.substr(0, point);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  return invalid_argument(quoted(given) + " is no whole number of 64 bits, use one as in -42");
}

}  // namespace

Result<std::optional<wire::Value>> parse_value(std::string_view text, std::string_view type,
                                               const ValueSpelling& spelling) {
  using wire::Value;
  if (type == "bytes") return std::optional(Value::of_bytes(text, ""));
  if (type == "text") {
    if (!wire::is_valid_utf8(text)) {
      return invalid_argument("the value is not UTF-8 text, use --type bytes");
    }
    return std::optional(Value::of_text(text));
  }
  if (!type.empty() && type != "float" && type != "int" && type != "bool") {
    return invalid_argument(quoted(type) + " is no type, use float, int, bool, text or bytes");
  }
  const char other_mark = spelling.decimal_mark == '.' ? ',' : '.';
  const std::string_view trimmed = wire::trimmed_text(text);
  std::string number(trimmed);
  double float64 = 0;
  wire::NumberText kind = wire::NumberText::Other;
  if (spelling.decimal_mark == '.' || trimmed.find('.') == std::string_view::npos) {
    std::replace(number.begin(), number.end(), spelling.decimal_mark, '.');
    kind = wire::read_number(number, float64);
  }
  if (kind == wire::NumberText::NoValue) return std::optional<Value>();
  if (type == "int") {
    EC_ASSIGN_OR_RETURN(const std::int64_t integer, parse_int(text, number));
    return std::optional(Value::of_int64(integer));
  }
  const std::optional<bool> boolean = parse_bool(text, spelling);
  if (type == "bool") {
    if (!boolean) return invalid_argument(quoted(text) + " is neither true nor false");
    return std::optional(Value::of_bool(*boolean));
  }
  if (kind == wire::NumberText::Number) return std::optional(Value::of_float64(float64));
  if (kind == wire::NumberText::TooLarge || type == "float") {
    return invalid_argument(wire::number_problem(text) + ", use one as in -21.5 or 1e3");
  }
  if (boolean) return std::optional(Value::of_bool(*boolean));
  if (is_number_with(other_mark, trimmed)) {
    return invalid_argument(quoted(text) + " is a number whose decimal mark is not `" +
                            spelling.decimal_mark + "`; as a text it needs the type text");
  }
  if (!wire::is_valid_utf8(text)) {
    return invalid_argument("the value is not UTF-8 text, use --type bytes");
  }
  return std::optional(Value::of_text(text));
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
