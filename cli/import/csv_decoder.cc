#include "import/csv_decoder.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "command_options.h"
#include "wire/authority.h"
#include "wire/decimal.h"
#include "wire/encoding.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::array<std::string_view, 6> kColumnNames = {"namespace", "device", "sensor",
                                                          "time",      "value",  "type"};

// How R, pandas and spreadsheets write a cell without a value. Only they do, and without quotes.
bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 6> kMissing = {"NA", "N/A", "n/a", "#N/A", "<NA>", "None"};
  return std::find(kMissing.begin(), kMissing.end(), wire::trimmed_text(text)) != kMissing.end();
}

// A date with slashes or points, a day's number with a fraction, digits cut by an exponent.
bool is_rewritten(std::string_view text) {
  if (text.empty() || !wire::is_digit(text.front())) return false;
  const bool has_iso_date = text.size() >= 10 && text[4] == '-' && text[7] == '-';
  return text.find_first_of("/.,eE") != std::string_view::npos ? !has_iso_date
                                                               : text.find(' ') != text.npos;
}

Result<std::int64_t> parse_time(std::string_view given, const Zone& zone) {
  const std::string_view text = wire::trimmed_text(given);
  if (text.empty()) return invalid_argument("is empty; a time is as 2026-11-20T14:00:00Z");
  Result<std::int64_t> parsed = wire::parse_absolute_time_ns(text, zone.get());
  if (parsed.ok()) return parsed;
  std::string why = parsed.status().message();
  if (zone == nullptr && wire::depends_on_zone(text)) {
    why += "; or say whose clock it is: --tz ZONE, --local";
  } else if (is_rewritten(text)) {
    why +=
        "; a spreadsheet has re-written it: import the file that it was made from, or give the "
        "column the format text before it is opened";
  }
  return invalid_argument(why);
}

// `type` as "bytes;image/jpeg".
Result<wire::Value> parse_bytes(std::string_view text, std::string_view type,
                                wire::ReadingBatch& batch) {
  EC_ASSIGN_OR_RETURN(const std::string bytes, wire::decode_base64(text));
  std::string_view content_type = wire::kDefaultContentType;
  if (const std::size_t mark = type.find(';'); mark != std::string_view::npos) {
    content_type = type.substr(mark + 1);
  }
  return wire::Value::of_bytes(batch.keep(bytes), content_type);
}

}  // namespace

Result<CsvDecoder> CsvDecoder::create(std::string_view body, std::string_view default_namespace,
                                      std::size_t error_limit, const CsvForm& form) {
  if (body.starts_with("\xff\xfe") || body.starts_with("\xfe\xff")) {
    return invalid_argument("is UTF-16; save it as CSV in UTF-8");
  }
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  CsvDecoder decoder(body, default_namespace, error_limit, form);
  EC_TRY(decoder.take_header());
  return decoder;
}

Status CsvDecoder::take_header() {
  wire::ReadingBatch batch;
  if (rest_.empty()) return invalid_argument("empty; the first line names the columns");
  // Spreadsheets write and obey a first line that names the separator.
  if (rest_.starts_with("sep=") && rest_.size() > 5 && rest_.find_first_of("\r\n") == 5) {
    form_.delimiter = rest_[4];
    rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
    ++line_;
  }
  EC_TRY(take_record(batch));
  columns_.fill(SIZE_MAX);
  column_count_ = fields_.size();
  return form_.is_foreign() ? take_foreign_header() : take_own_header();
}

bool CsvDecoder::is_own_wide() const {
  return fields_.size() > 1 && fields_[0] == "time" &&
         std::all_of(fields_.begin() + 1, fields_.end(), [](std::string_view name) {
           return name.find('/') != std::string_view::npos;
         });
}

// DEVICE/SENSOR, or NAMESPACE/DEVICE/SENSOR: names have no slash.
Status CsvDecoder::take_own_wide_header() {
  is_own_wide_ = true;
  time_columns_ = {0};
  if (fields_.size() - 1 > kValueColumnsMax) {
    return invalid_argument(std::to_string(fields_.size() - 1) + " columns of values, at most " +
                            std::to_string(kValueColumnsMax));
  }
  for (std::size_t i = 1; i < fields_.size(); ++i) {
    ValueColumn column{i, ""};
    std::string_view rest = fields_[i];
    const auto slashes = std::count(rest.begin(), rest.end(), '/');
    const auto next = [&rest] {
      const std::string_view name = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      return std::string(name);
    };
    column.namespace_name = slashes > 1 ? next() : std::string(default_namespace_);
    column.device = next();
    column.sensor = std::string(rest);
    EC_TRY(wire::check_name("namespace", column.namespace_name));
    EC_TRY(wire::check_name("device", column.device));
    EC_TRY(wire::check_name("sensor", column.sensor));
    value_columns_.push_back(std::move(column));
  }
  return ok();
}

Status CsvDecoder::take_own_header() {
  if (is_own_wide()) return take_own_wide_header();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto known = std::find(kColumnNames.begin(), kColumnNames.end(), fields_[i]);
    const std::string name = "\"" + std::string(fields_[i].substr(0, wire::kNameMaxBytes)) + "\"";
    if (fields_[i].empty()) continue;  // nothing below it either, or it is no reading
    if (known == kColumnNames.end()) return unknown_column(name);
    std::size_t& column = columns_[static_cast<std::size_t>(known - kColumnNames.begin())];
    if (column != SIZE_MAX) return invalid_argument("column " + name + " comes twice");
    column = i;
  }
  for (const Column needed : {kDevice, kSensor, kTime, kValue}) {
    if (columns_[needed] == SIZE_MAX) {
      return invalid_argument("the first line names no column " +
                              std::string(kColumnNames[needed]));
    }
  }
  time_columns_ = {columns_[kTime]};
  return ok();
}

// Which columns are what, by the form; what it does not say is as export has it.
Status CsvDecoder::take_foreign_header() {
  for (const std::string& name : form_.time_columns) {
    EC_TRY(find_column(name, time_columns_.emplace_back()));
  }
  if (time_columns_.empty()) EC_TRY(find_column("time", time_columns_.emplace_back()));
  if (form_.device.empty()) {
    const bool is_named = !form_.device_column.empty();
    const Status found = find_column(is_named ? form_.device_column : "device", columns_[kDevice]);
    if (!found.ok())
      return is_named ? found : found.with_context("", "; or name it: --device NAME");
  }
  std::size_t sensor = SIZE_MAX;
  if (!form_.sensor_column.empty()) {
    EC_TRY(find_column(form_.sensor_column, columns_[kSensor]));
  } else if (form_.value_columns.empty() && find_column("sensor", sensor).ok() &&
             find_column("value", columns_[kValue]).ok()) {
    columns_[kSensor] = sensor;
  }
  if (columns_[kSensor] != SIZE_MAX) {
    if (form_.value_columns.size() > 1) {
      return invalid_argument("a file with a column for the sensor has one for the value alone");
    }
    return find_column(form_.value_columns.empty() ? "value" : form_.value_columns[0],
                       columns_[kValue]);
  }
  const auto is_taken = [&](std::size_t i) {
    return i == columns_[kDevice] ||
           std::find(time_columns_.begin(), time_columns_.end(), i) != time_columns_.end();
  };
  const bool takes_all =
      form_.value_columns.empty() || form_.value_columns == std::vector<std::string>{"*"};
  for (const std::string& name : takes_all ? std::vector<std::string>() : form_.value_columns) {
    std::size_t index = 0;
    EC_TRY(find_column(name, index));
    value_columns_.push_back({index, name});
  }
  for (std::size_t i = 0; takes_all && i < fields_.size(); ++i) {
    const std::string_view name = wire::trimmed_text(fields_[i]);
    if (!name.empty() && !is_taken(i)) value_columns_.push_back({i, std::string(name)});
  }
  if (value_columns_.empty()) return invalid_argument("the first line names no column of values");
  if (value_columns_.size() > kValueColumnsMax) {
    return invalid_argument(std::to_string(value_columns_.size()) + " columns of values, at most " +
                            std::to_string(kValueColumnsMax));
  }
  for (const ValueColumn& column : value_columns_) {
    EC_TRY(wire::check_name("column", column.sensor));
    const auto same = [&](const ValueColumn& other) { return other.sensor == column.sensor; };
    if (std::count_if(value_columns_.begin(), value_columns_.end(), same) > 1) {
      return invalid_argument("column \"" + column.sensor + "\" comes twice");
    }
  }
  return ok();
}

Status CsvDecoder::find_column(std::string_view name, std::size_t& index) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(), [&](std::string_view field) {
    return wire::trimmed_text(field) == name;
  });
  if (found != fields_.end()) {
    index = static_cast<std::size_t>(found - fields_.begin());
    return ok();
  }
  constexpr std::size_t kShownMax = 12;
  std::string message = "the first line names no column \"" + std::string(name) + "\"; it has";
  for (std::size_t i = 0; i < std::min(fields_.size(), kShownMax); ++i) {
    message += (i == 0 ? " " : ", ") + std::string(fields_[i].substr(0, wire::kNameMaxBytes));
  }
  if (fields_.size() > kShownMax) {
    message += " and " + std::to_string(fields_.size() - kShownMax) + " more";
  }
  const std::string other = other_delimiter();
  return invalid_argument(other.empty() ? message : message + "; " + other);
}

// What to do where the first line is one column, which holds what may separate several; or "".
std::string CsvDecoder::other_delimiter() const {
  if (fields_.size() != 1) return "";
  struct Case {
    char character;
    const char* what;
  };
  for (const auto& [character, what] :
       {Case{';', "`;`: add --delimiter ';', and --decimal ',' where numbers have a comma"},
        Case{'\t', "tabs: add --delimiter tab"}, Case{'|', "`|`: add --delimiter '|'"},
        Case{',', "`,`: leave out --delimiter"}}) {
    if (character != form_.delimiter && fields_[0].find(character) != std::string_view::npos)
      return std::string("the columns are separated by ") + what;
  }
  return "";
}

Status CsvDecoder::unknown_column(std::string_view name) const {
  if (name == "\"window\"") {
    return invalid_argument(
        "windows of tiers are imported from ndjson or line: export --tiers --format ndjson");
  }
  if (const std::string other = other_delimiter(); !other.empty()) return invalid_argument(other);
  return invalid_argument("unknown column " + std::string(name) +
                          " in the first line; known are namespace device sensor time value type; "
                          "for a file that export did not write: --time-column, --device, "
                          "--value-columns");
}

// An empty line, or one of separators alone, which spreadsheets leave behind.
bool CsvDecoder::is_blank_record() const {
  return std::all_of(fields_.begin(), fields_.end(),
                     [](std::string_view text) { return text.empty(); });
}

bool CsvDecoder::next(wire::ReadingBatch& batch) {
  while (!rest_.empty() && batch.readings.size() < kReadingsPerSlice) {
    const std::uint64_t line = line_;
    Status status = take_record(batch);
    if (status.ok() && is_blank_record()) continue;
    if (status.ok()) status = add_readings(line, batch);
    if (!status.ok()) tell(line, status);
  }
  return !batch.readings.empty();
}

void CsvDecoder::tell(std::uint64_t line, const Status& why) {
  ++bad_lines_;
  if (errors_.size() < error_limit_) errors_.push_back({line, why.message()});
}

Status CsvDecoder::take_record(wire::ReadingBatch& batch) {
  fields_.clear();
  are_quoted_.clear();
  const std::array<char, 2> end_characters = {form_.delimiter, '\n'};
  const std::string_view ends(end_characters.data(), end_characters.size());
  const std::string_view begin = rest_;
  const std::uint64_t begin_line = line_;
  while (true) {
    std::string_view text;
    are_quoted_.push_back(rest_.starts_with('"'));
    if (are_quoted_.back()) {
      if (const Status status = take_quoted_field(text, batch); !status.ok()) {
        // Only the line that it began in is given up.
        rest_ = begin.substr(std::min(begin.find('\n'), begin.size() - 1) + 1);
        line_ = begin_line + 1;
        return status;
      }
    } else {
      const std::size_t end = std::min(rest_.find_first_of(ends), rest_.size());
      text = rest_.substr(0, end);
      rest_.remove_prefix(end);
      const bool last = !rest_.starts_with(form_.delimiter);
      if (last && text.ends_with('\r')) text.remove_suffix(1);
    }
    fields_.push_back(text);
    if (rest_.starts_with(form_.delimiter)) {
      rest_.remove_prefix(1);
      continue;
    }
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    ++line_;
    return ok();
  }
}

Status CsvDecoder::take_quoted_field(std::string_view& text, wire::ReadingBatch& batch) {
  bool has_quotes = false;
  std::size_t end = 1;
  while (true) {
    end = rest_.find('"', end);
    if (end == std::string_view::npos) return invalid_argument("a quote is never closed");
    if (end + 1 == rest_.size() || rest_[end + 1] != '"') break;
    has_quotes = true;
    end += 2;
  }
  text = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  if (!rest_.empty() && rest_.front() != form_.delimiter && rest_.front() != '\n') {
    return invalid_argument("text behind a closing quote");
  }
  line_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  if (!has_quotes) return ok();
  std::string single;
  for (std::size_t i = 0; i < text.size(); ++i) {
    single += text[i];
    if (text[i] == '"') ++i;
  }
  text = batch.keep(single);
  return ok();
}

std::string_view CsvDecoder::field(Column column) const {
  return columns_[column] == SIZE_MAX ? std::string_view() : fields_[columns_[column]];
}

Status CsvDecoder::add_own_wide_readings(std::uint64_t line, wire::ReadingBatch& batch) {
  if (fields_.size() != column_count_) {
    return invalid_argument(std::to_string(fields_.size()) + " fields where the first line names " +
                            std::to_string(column_count_));
  }
  const Result<std::int64_t> time_ns = time_of_record();
  if (!time_ns.ok()) return invalid_argument("column time: " + time_ns.status().message());
  for (const ValueColumn& column : value_columns_) {
    if (fields_[column.index].empty() && !are_quoted_[column.index]) continue;
    const auto value = build_own_cell(column, batch);
    Status status = value.status();
    if (status.ok() && *value) status = wire::check_value(**value);
    if (!status.ok()) {
      tell(line, status.with_context("column " + column.device + "/" + column.sensor + ": "));
      continue;
    }
    if (!*value) {
      ++no_values_;
      continue;
    }
    wire::Reading reading;
    reading.namespace_name = column.namespace_name;
    reading.device = column.device;
    reading.sensor = column.sensor;
    reading.time_ns = *time_ns;
    reading.value = **value;
    batch.readings.push_back(reading);
  }
  return ok();
}

// `base64:DATA` or `base64;TYPE:DATA`; a number without a point or an exponent is an int.
Result<std::optional<wire::Value>> CsvDecoder::build_own_cell(const ValueColumn& column,
                                                              wire::ReadingBatch& batch) const {
  const std::string_view text = fields_[column.index];
  if (are_quoted_[column.index]) return parse_value(text, "text");
  constexpr std::string_view kBytesMark = "base64";
  const std::size_t colon = text.find(':');
  if (text.starts_with(kBytesMark) && colon != std::string_view::npos) {
    std::string_view type = text.substr(kBytesMark.size(), colon - kBytesMark.size());
    if (type.empty() || type.starts_with(';')) {
      std::string named = "bytes";
      if (!type.empty()) named += ";" + wire::percent_decode(type.substr(1));
      EC_ASSIGN_OR_RETURN(const wire::Value value,
                          parse_bytes(text.substr(colon + 1), batch.keep(named), batch));
      return std::optional(value);
    }
  }
  const bool is_int = text.find_first_not_of("-0123456789") == std::string_view::npos;
  return parse_value(text, is_int ? "int" : "", {form_.decimal_mark, true});
}

Status CsvDecoder::add_readings(std::uint64_t line, wire::ReadingBatch& batch) {
  if (is_own_wide_) return add_own_wide_readings(line, batch);
  EC_ASSIGN_OR_RETURN(wire::Reading reading, begin_reading());
  if (value_columns_.empty()) {
    reading.sensor = field(kSensor);
    EC_TRY(wire::check_name("sensor", reading.sensor));
    const Status added = add_reading(reading, field(kValue), batch);
    return added.ok() ? added : added.with_context("column value: ");
  }
  for (const ValueColumn& column : value_columns_) {
    if (!are_quoted_[column.index] && is_missing(fields_[column.index])) {
      ++no_values_;
      continue;
    }
    reading.sensor = column.sensor;
    const Status added = add_reading(reading, fields_[column.index], batch);
    if (!added.ok()) tell(line, added.with_context("column " + column.sensor + ": "));
  }
  return ok();
}

Result<wire::Reading> CsvDecoder::begin_reading() {
  // R writes the names of rows in a column that the first line does not name.
  if (form_.is_foreign() && fields_.size() == column_count_ + 1) {
    fields_.erase(fields_.begin());
    are_quoted_.erase(are_quoted_.begin());
  }
  if (fields_.size() != column_count_) {
    return invalid_argument(std::to_string(fields_.size()) + " fields where the first line names " +
                            std::to_string(column_count_));
  }
  wire::Reading reading;
  reading.namespace_name = field(kNamespace).empty() ? default_namespace_ : field(kNamespace);
  reading.device = form_.device.empty() ? field(kDevice) : std::string_view(form_.device);
  EC_TRY(wire::check_name("namespace", reading.namespace_name));
  EC_TRY(wire::check_name("device", reading.device));
  const Result<std::int64_t> time_ns = time_of_record();
  if (!time_ns.ok()) return invalid_argument("column time: " + time_ns.status().message());
  reading.time_ns = *time_ns;
  return reading;
}

Result<std::int64_t> CsvDecoder::time_of_record() {
  std::string joined;
  std::string_view text = fields_[time_columns_[0]];
  if (time_columns_.size() > 1) {
    for (const std::size_t column : time_columns_) {
      joined.append(joined.empty() ? "" : " ").append(wire::trimmed_text(fields_[column]));
    }
    text = joined;
  }
  if (form_.time_format) {
    Result<std::int64_t> time_ns = form_.time_format->read(text, form_.zone.get());
    const bool may_need_zone = form_.zone == nullptr && form_.time_format->unit_ns() == 0;
    if (time_ns.ok() || !may_need_zone) return time_ns;
    return time_ns.status().with_context("", "; without an offset add --tz ZONE or --local");
  }
  counts_times_ = counts_times_ || std::all_of(text.begin(), text.end(), wire::is_digit);
  return parse_time(text, form_.zone);
}

Status CsvDecoder::add_reading(wire::Reading reading, std::string_view text,
                               wire::ReadingBatch& batch) {
  EC_ASSIGN_OR_RETURN(const std::optional<wire::Value> value, build_value(text, batch));
  if (!value) {
    ++no_values_;
    return ok();
  }
  reading.value = *value;
  EC_TRY(wire::check_value(reading.value));
  batch.readings.push_back(reading);
  return ok();
}

Result<std::optional<wire::Value>> CsvDecoder::build_value(std::string_view text,
                                                           wire::ReadingBatch& batch) const {
  const std::string_view type = field(kType);
  if (type == "bytes" || type.starts_with("bytes;")) {
    EC_ASSIGN_OR_RETURN(const wire::Value value, parse_bytes(text, type, batch));
    return std::optional(value);
  }
  Result<std::optional<wire::Value>> value = parse_value(text, type, {form_.decimal_mark, true});
  if (value.ok() || form_.decimal_mark != '.' || type == "bool" ||
      text.find(',') == std::string_view::npos) {
    return value;
  }
  return invalid_argument(value.status().message() + "; for a decimal comma add --decimal ','");
}

}  // namespace edgecase::cli
