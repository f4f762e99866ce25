#include "http/influx_query.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "wire/reading.h"

namespace edgecase::http {
namespace {

using Json = nlohmann::ordered_json;

struct Word {
  std::string text;
  bool quoted = false;
};
using Statement = std::vector<Word>;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

// Splits into statements at `;`, and these into words: quoted ones, and runs of anything else.
Result<std::vector<Statement>> split(std::string_view text) {
  if (text.size() > kInfluxQueryMaxBytes) {
    return invalid_argument("error parsing query: more than " +
                            std::to_string(kInfluxQueryMaxBytes) + " bytes");
  }
  std::vector<Statement> statements(1);
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (is_blank(c)) {
      ++i;
    } else if (c == ';') {
      if (!statements.back().empty()) statements.emplace_back();
      ++i;
    } else if (c == '"' || c == '\'') {
      Word word{"", true};
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        word.text.push_back(text[i]);
      }
      if (i++ >= text.size()) return invalid_argument("error parsing query: unterminated string");
      statements.back().push_back(std::move(word));
    } else {
      const std::size_t end = std::min(text.find_first_of(" \t\r\n;\"'", i), text.size());
      statements.back().push_back({std::string(text.substr(i, end - i)), false});
      i = end;
    }
  }
  if (statements.back().empty()) statements.pop_back();
  if (statements.empty()) return invalid_argument("missing required parameter \"q\"");
  if (statements.size() > kInfluxStatementsMax) {
    return invalid_argument("error parsing query: more than " +
                            std::to_string(kInfluxStatementsMax) + " statements");
  }
  return statements;
}

bool begins(const Statement& statement, std::initializer_list<const char*> keywords) {
  std::size_t i = 0;
  for (const char* keyword : keywords) {
    if (i >= statement.size() || statement[i].quoted || upper(statement[i].text) != keyword) {
      return false;
    }
    ++i;
  }
  return true;
}

Json with_series(const char* name, Json columns, Json values) {
  Json series = {{"columns", std::move(columns)}};
  if (*name != '\0') series = {{"name", name}, {"columns", series["columns"]}};
  if (!values.empty()) series["values"] = std::move(values);
  return {{"series", Json::array({std::move(series)})}};
}

Json with_error(const std::string& message) {
  return {{"error", message}};
}

Json create_database(const Statement& statement, const auth::Principal& principal,
                     catalog::Catalog& catalog) {
  if (statement.size() < 3) return with_error("CREATE DATABASE needs a name");
  if (const Status status = auth::authorize_creation(principal, statement[2].text); !status.ok()) {
    return with_error(status.message());
  }
  const auto created = catalog.ensure_namespace(statement[2].text);
  return created.ok() ? Json::object() : with_error(created.status().message());
}

// Loaders begin by dropping what may not be there.
Json drop_database(const Statement& statement, const catalog::Catalog& catalog) {
  if (statement.size() < 3) return with_error("DROP DATABASE needs a name");
  const std::vector<std::string> names = catalog.namespaces();
  if (std::find(names.begin(), names.end(), statement[2].text) == names.end()) {
    return Json::object();
  }
  return with_error("a namespace is dropped with edgecase namespace drop, not by this statement");
}

Json show_databases(const auth::Principal& principal, const catalog::Catalog& catalog) {
  Json values = Json::array();
  for (const std::string& name : catalog.namespaces()) {
    if (!name.starts_with('_') && auth::allows_namespace(principal, name))
      values.push_back(Json::array({name}));
  }
  return with_series("databases", Json::array({"name"}), std::move(values));
}

Json show_retention_policies() {
  return with_series("",
                     Json::array({"name", "duration", "shardGroupDuration", "replicaN", "default"}),
                     Json::array({Json::array({"autogen", "0s", "168h0m0s", 1, true})}));
}

// What the line protocol put first into a sensor's name.
Json show_measurements(const Statement& statement, std::string_view database,
                       const auth::Principal& principal, const catalog::Catalog& catalog) {
  std::string name(database.empty() ? wire::kDefaultNamespace : database);
  if (statement.size() >= 4 && upper(statement[2].text) == "ON") name = statement[3].text;
  if (name.starts_with('_')) return with_error("database not found: " + name);
  std::set<std::string> measurements;
  for (const catalog::SeriesEntry& entry : catalog.select(name, wire::Selector{})) {
    if (!auth::allows(auth::Operation::Read, principal, name, entry.device, entry.sensor)) continue;
    measurements.insert(entry.sensor.substr(0, entry.sensor.find('.')));
  }
  if (measurements.empty()) return Json::object();
  Json values = Json::array();
  for (const std::string& measurement : measurements) values.push_back(Json::array({measurement}));
  return with_series("measurements", Json::array({"name"}), std::move(values));
}

Result<Json> answer_statement(const Statement& statement, std::string_view database,
                              const auth::Principal& principal, catalog::Catalog& catalog) {
  if (begins(statement, {"CREATE", "DATABASE"})) {
    return create_database(statement, principal, catalog);
  }
  if (begins(statement, {"DROP", "DATABASE"})) return drop_database(statement, catalog);
  if (begins(statement, {"SHOW", "DATABASES"})) return show_databases(principal, catalog);
  if (begins(statement, {"SHOW", "RETENTION", "POLICIES"})) return show_retention_policies();
  if (begins(statement, {"SHOW", "MEASUREMENTS"})) {
    return show_measurements(statement, database, principal, catalog);
  }
  if (begins(statement, {"SELECT"})) {
    return with_error("InfluxQL queries are not offered: use GET /api/v1/query");
  }
  for (const char* verb :
       {"ALTER", "CREATE", "DELETE", "DROP", "EXPLAIN", "GRANT", "KILL", "REVOKE", "SET", "SHOW"}) {
    if (begins(statement, {verb})) {
      return with_error(
          "this statement is not offered; what is: CREATE DATABASE, SHOW DATABASES, "
          "SHOW RETENTION POLICIES, SHOW MEASUREMENTS");
    }
  }
  return invalid_argument("error parsing query: found " + statement.front().text.substr(0, 64));
}

}  // namespace

Result<std::string> answer_influx_query(std::string_view text, std::string_view database,
                                        const auth::Principal& principal,
                                        catalog::Catalog& catalog) {
  EC_ASSIGN_OR_RETURN(const std::vector<Statement> statements, split(text));
  Json results = Json::array();
  for (const Statement& statement : statements) {
    EC_ASSIGN_OR_RETURN(const Json answer,
                        answer_statement(statement, database, principal, catalog));
    Json result = {{"statement_id", results.size()}};
    result.update(answer);
    results.push_back(std::move(result));
  }
  const Json body = {{"results", std::move(results)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace edgecase::http
