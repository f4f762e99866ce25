#include "forward/asking.h"

#include <algorithm>
#include <map>

#include "wire/contract.h"
#include "wire/escaping.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

}  // namespace

std::string InfluxAsker::name_text(std::string_view name) {
  return in_marks(name, '"');
}

Answer InfluxAsker::query(const std::string& database, const std::string& statement,
                          InfluxRows& rows) {
  rows = {};
  HttpAnswer http;
  const std::string path = std::string(wire::routes::kInfluxQuery) +
                           "?epoch=ns&db=" + wire::percent_encode(database) +
                           "&q=" + wire::percent_encode(statement);
  Answer answer = asked_.ask("POST", path, http);
  if (answer.verdict != Verdict::Taken) return answer;
  rows.is_refused = http.status == 403;
  rows.is_cut = http.is_cut;
  if (rows.is_refused) return {};
  if (rows.is_cut) return later("its answer is longer than is taken", http.status);
  const Json json = parsed(http);
  if (http.status != 200 || !json.is_object() || !json.contains("results") ||
      !json["results"].is_array() || json["results"].empty() || !json["results"][0].is_object() ||
      json["results"][0].contains("error")) {
    return later("it answers a statement with an error", http.status);
  }
  const Json& result = json["results"][0];
  if (!result.contains("series") || !result["series"].is_array() || result["series"].empty())
    return {};
  const Json& series = result["series"][0];
  for (const Json& each : series.value("columns", Json::array()))
    rows.columns.push_back(text_of(each));
  for (const Json& row : series.value("values", Json::array())) {
    std::vector<std::string>& values = rows.values.emplace_back();
    for (const Json& each : row) values.push_back(text_of(each));
  }
  return {};
}

Answer InfluxAsker::find_database(const std::string& database, bool& is_there, bool& is_refused) {
  InfluxRows rows;
  Answer answer = query(database, "SHOW DATABASES", rows);
  is_refused = rows.is_refused;
  is_there = std::any_of(rows.values.begin(), rows.values.end(), [&database](const auto& row) {
    return !row.empty() && row[0] == database;
  });
  return answer;
}

Answer InfluxAsker::series_condition(const std::string& database, const std::string& measurement,
                                     const wire::Identity::Tags& tags, std::string& condition,
                                     bool& is_refused) {
  InfluxRows rows;
  Answer answer = query(database, "SHOW TAG KEYS FROM " + name_text(measurement), rows);
  is_refused = rows.is_refused;
  // A series without a tag is told from those with it.
  std::map<std::string, std::string> all;
  for (const auto& row : rows.values)
    if (!row.empty()) all[row[0]] = "";
  for (const auto& [key, value] : tags) all[key] = value;
  condition.clear();
  for (const auto& [key, value] : all) {
    condition +=
        (condition.empty() ? " WHERE " : " AND ") + name_text(key) + " = " + in_marks(value, '\'');
  }
  return answer;
}

}  // namespace edgecase::forward
