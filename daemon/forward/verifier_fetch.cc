// Verifier: what a target holds of a series, in its own words, and the same of what is here.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "forward/eraser.h"
#include "forward/forwarding.h"
#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/json_text.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMillisecondNs = 1'000'000;

Status may_not_read() {
  return not_allowed("the target lets this token not read; to do: give it `read` there");
}

// What is the same number has the same text, however the target writes it.
std::string number_text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string row_text(std::int64_t time_ns, const std::string& value) {
  return std::to_string(time_ns) + " " + value;
}

// The part of a reading's line that is the same under every name.
std::string_view behind_names(std::string_view line) {
  return line.substr(std::min(line.find(",\"time\":\""), line.size()));
}

}  // namespace

bool Verifier::describe(const Series& series, const wire::Reading& given, std::string& text) {
  wire::Reading reading = given;
  reading.namespace_name = namespace_.empty() ? std::string_view(series.entry.namespace_name)
                                              : std::string_view(namespace_);
  reading.device = series.entry.device;
  reading.sensor = series.entry.sensor;
  wire::SeriesIdentity identity;
  identity.body = series.entry.identity;
  if (!identity.body.empty()) reading.identity = &identity;
  if (kind_.kind() == Eraser::Kind::EdgeCase) {
    std::string line;
    objects_.reading(reading, line);
    if (line.ends_with('\n')) line.pop_back();
    text = behind_names(line);
    return true;
  }
  const wire::Value& value = reading.value;
  const bool is_number = value.type == wire::ValueType::Float64 ||
                         value.type == wire::ValueType::Int64 ||
                         value.type == wire::ValueType::Bool;
  std::string line;
  lines_.reading(reading, line);
  if (line.starts_with('#')) return false;
  if (kind_.kind() == Eraser::Kind::Victoria) {
    text = std::to_string(window_begin_ns(*reading.time_ns, kMillisecondNs) / kMillisecondNs);
    return is_number;
  }
  std::string value_text;
  switch (value.type) {
    case wire::ValueType::Float64: value_text = number_text(value.float64); break;
    case wire::ValueType::Int64: value_text = std::to_string(value.int64); break;
    case wire::ValueType::Bool: value_text = value.boolean ? "true" : "false"; break;
    case wire::ValueType::Text: value_text = value.text; break;
    case wire::ValueType::Bytes: return false;
  }
  text = row_text(*reading.time_ns, value_text);
  return true;
}

Result<Verifier::Answered> Verifier::fetch(const Series& series, std::int64_t first_ns,
                                           std::int64_t last_ns) {
  switch (kind_.kind()) {
    case Eraser::Kind::EdgeCase: return fetch_edgecase(series, first_ns, last_ns);
    case Eraser::Kind::Influx1: return fetch_influx(series, first_ns, last_ns);
    default: return fetch_victoria(series, first_ns, last_ns);
  }
}

Result<Verifier::Answered> Verifier::fetch_edgecase(const Series& series, std::int64_t first_ns,
                                                    std::int64_t last_ns) {
  const std::string select =
      wire::escape_name(series.entry.device) + "/" + wire::escape_name(series.entry.sensor);
  std::string path =
      std::string(wire::routes::kQuery) + "?format=ndjson&ns=" +
      wire::percent_encode(namespace_.empty() ? series.entry.namespace_name : namespace_) +
      "&select=" + wire::percent_encode(select) +
      "&from=" + wire::percent_encode(wire::time_text(first_ns));
  // The last instant of time has none behind it.
  if (last_ns != INT64_MAX) path += "&to=" + wire::percent_encode(wire::time_text(last_ns + 1));
  HttpAnswer http;
  const Answer answer = asked_.ask("GET", path, http);
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (http.status == 403) return may_not_read();
  std::set<std::string> lines;
  if (http.status == 404) return Answered(std::move(lines));
  if (http.status != 200)
    return unavailable("the target answers " + std::to_string(http.status) + " to a query");
  if (http.is_cut) return Answered();
  std::string_view rest = http.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace(behind_names(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Answered(std::move(lines));
}

Result<Verifier::Answered> Verifier::fetch_influx(const Series& series, std::int64_t first_ns,
                                                  std::int64_t last_ns) {
  InfluxAsker influx(asked_);
  const std::string database = database_.empty() ? series.entry.namespace_name : database_;
  std::set<std::string> found;
  bool is_there = false, is_refused = false;
  std::string which;
  Answer answer = influx.find_database(database, is_there, is_refused);
  if (answer.verdict == Verdict::Taken && is_there && !is_refused) {
    answer = influx.series_condition(database, series.identity.measurement, series.identity.tags,
                                     which, is_refused);
  }
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (is_refused) return may_not_read();
  if (!is_there) return Answered(std::move(found));
  InfluxRows rows;
  answer = influx.query(database,
                        "SELECT " + InfluxAsker::name_text(series.identity.field) + " FROM " +
                            InfluxAsker::name_text(series.identity.measurement) + which +
                            (which.empty() ? " WHERE " : " AND ") + "time >= " +
                            std::to_string(first_ns) + " AND time <= " + std::to_string(last_ns),
                        rows);
  if (rows.is_cut) return Answered();
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (rows.is_refused) return may_not_read();
  for (const auto& row : rows.values) {
    if (row.size() < 2) continue;
    found.insert(row[0] + " " + row[1]);
    // A float without decimals, or with other ones.
    double number = 0;
    const char* const end = row[1].data() + row[1].size();
    const auto read = std::from_chars(row[1].data(), end, number);
    if (read.ec == std::errc() && read.ptr == end) found.insert(row[0] + " " + number_text(number));
  }
  return Answered(std::move(found));
}

Result<Verifier::Answered> Verifier::fetch_victoria(const Series& series, std::int64_t first_ns,
                                                    std::int64_t last_ns) {
  const std::string& measurement = series.identity.measurement;
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : series.identity.tags) labels[key] = value;
  labels["db"] = database_.empty() ? series.entry.namespace_name : database_;
  labels["__name__"] =
      measurement.empty() ? series.identity.field : measurement + "_" + series.identity.field;
  std::string selector;
  for (const auto& [key, value] : labels)
    selector += (selector.empty() ? "{" : ",") + label_text(key, value);
  const auto seconds = [](std::int64_t time_ns) {
    const std::int64_t ms = window_begin_ns(time_ns, kMillisecondNs) / kMillisecondNs;
    return std::to_string(ms / 1000) + "." + std::to_string(1000 + ms % 1000).substr(1);
  };
  HttpAnswer http;
  const Answer answer =
      asked_.ask("GET",
                 "/api/v1/export?start=" + seconds(first_ns) + "&end=" + seconds(last_ns) +
                     "&match[]=" + wire::percent_encode(selector + "}"),
                 http);
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (http.status == 403) return may_not_read();
  if (http.status != 200)
    return unavailable("the target answers " + std::to_string(http.status) + " to an export");
  if (http.is_cut) return Answered();
  std::set<std::string> times;
  std::string_view rest = http.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const Json json = Json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Other series may have these labels and more.
    if (!json.is_object() || !json.contains("metric") || json["metric"].size() != labels.size() ||
        !json.contains("timestamps")) {
      continue;
    }
    for (const Json& each : json["timestamps"])
      if (each.is_number_integer()) times.insert(std::to_string(each.get<std::int64_t>()));
  }
  return Answered(std::move(times));
}

}  // namespace edgecase::forward
