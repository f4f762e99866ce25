#include "http/influx_query.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "influxql/parser.h"
#include "wire/identity.h"
#include "wire/json_values.h"
#include "wire/reading.h"

namespace edgecase::http {
namespace {

enum class Verb : unsigned char {
  CreateDatabase,
  DropDatabase,
  ShowDatabases,
  ShowRetentionPolicies,
  ShowMeasurements,
  NotOffered,
};

struct Statement {
  Verb verb = Verb::NotOffered;
  std::string name;  // the database; NotOffered: what it is called
  std::size_t offset = 0;
  std::size_t limit = SIZE_MAX;
};

// What there is, by what it is called, of all that the grammar has.
std::string_view name_of(influxql::Verb verb) {
  using influxql::Verb;
  switch (verb) {
    case Verb::Select: return "SELECT";
    case Verb::Explain:
    case Verb::ExplainAnalyze: return "EXPLAIN";
    case Verb::ShowSeries:
    case Verb::ShowSeriesCardinality: return "SHOW SERIES";
    case Verb::ShowMeasurements: return "SHOW MEASUREMENTS with a condition";
    case Verb::ShowMeasurementCardinality: return "SHOW MEASUREMENT CARDINALITY";
    case Verb::ShowTagKeys:
    case Verb::ShowTagKeyCardinality: return "SHOW TAG KEYS";
    case Verb::ShowTagValues:
    case Verb::ShowTagValuesCardinality: return "SHOW TAG VALUES";
    case Verb::ShowFieldKeys:
    case Verb::ShowFieldKeyCardinality: return "SHOW FIELD KEYS";
    case Verb::ShowQueries: return "SHOW QUERIES";
    case Verb::CreateDatabase: return "CREATE DATABASE with a retention policy";
    case Verb::CreateRetentionPolicy: return "CREATE RETENTION POLICY";
    case Verb::AlterRetentionPolicy: return "ALTER RETENTION POLICY";
    case Verb::DropRetentionPolicy: return "DROP RETENTION POLICY";
    case Verb::Delete: return "DELETE";
    case Verb::DropSeries: return "DROP SERIES";
    case Verb::DropMeasurement: return "DROP MEASUREMENT";
    case Verb::KillQuery: return "KILL QUERY";
    default: return "this statement";
  }
}

// What is left of a statement is nothing that is done here: to pass it over would be to say yes.
Statement statement_of(const influxql::Statement& parsed, std::string_view database) {
  const std::string named = parsed.database.empty() ? std::string(database) : parsed.database;
  const influxql::Policy& policy = parsed.policy;
  switch (parsed.verb) {
    case influxql::Verb::CreateDatabase:
      if (policy.duration_ns || policy.shard_duration_ns || !policy.name.empty() ||
          policy.replication.value_or(1) != 1)
        break;
      return {Verb::CreateDatabase, parsed.name};
    case influxql::Verb::DropDatabase: return {Verb::DropDatabase, parsed.name};
    case influxql::Verb::ShowDatabases: return {Verb::ShowDatabases, {}};
    case influxql::Verb::ShowRetentionPolicies: return {Verb::ShowRetentionPolicies, named};
    case influxql::Verb::ShowMeasurements:
      if (parsed.match.op != influxql::Operator::None || parsed.where || parsed.is_descending)
        break;
      return {Verb::ShowMeasurements, named, static_cast<std::size_t>(parsed.offset),
              parsed.limit == 0 ? SIZE_MAX : static_cast<std::size_t>(parsed.limit)};
    case influxql::Verb::NotOffered: return {Verb::NotOffered, parsed.name};
    default: break;
  }
  return {Verb::NotOffered, std::string(name_of(parsed.verb))};
}

std::string not_offered_message(const Statement& statement) {
  const std::string_view instead = statement.name == "SELECT" ? ": use GET /api/v1/query" : "";
  return statement.name + " is not offered here, and nothing was done of it" + std::string(instead);
}

// One after another, as the reader takes them. Of a listing no more is held than a part of its
// names, however long it is.
class InfluxAnswer final : public PieceSource {
 public:
  InfluxAnswer(std::vector<Statement> statements, auth::Principal principal,
               catalog::Catalog& catalog)
      : statements_(std::move(statements)), principal_(std::move(principal)), catalog_(catalog) {}

  Result<bool> fill(std::string& piece) override {
    if (next_ == 0 && !is_listing_) piece += "{\"results\":[";
    while (piece.size() < kPieceBytes) {
      if (is_listing_) {
        list_some(piece);
      } else if (next_ == statements_.size()) {
        piece += "]}\n";
        return false;
      } else {
        if (next_ > 0) piece += ',';
        piece += "{\"statement_id\":" + std::to_string(next_);
        answer(statements_[next_], piece);
      }
      if (is_listing_) return true;  // a look through the catalog is enough for one piece
      piece += '}';
      ++next_;
    }
    return true;
  }

 private:
  void answer(const Statement& statement, std::string& piece);
  void show_databases(std::string& piece) const;
  void list_some(std::string& piece);
  std::set<std::string> names_after(const std::optional<std::string>& last, bool& is_all) const;
  Status check_database(const std::string& name) const;

  const std::vector<Statement> statements_;
  const auth::Principal principal_;
  catalog::Catalog& catalog_;
  std::size_t next_ = 0;  // statement
  // The SHOW MEASUREMENTS at hand.
  bool is_listing_ = false;
  std::set<std::string> names_;  // that come next
  bool is_all_ = true;           // and no others behind them
  std::optional<std::string> last_name_;
  std::size_t named_ = 0, passed_ = 0;
};

void append_error(const Status& status, std::string& piece) {
  piece += ",\"error\":";
  wire::append_json_string(status.message(), piece);
}

void begin_series(std::string_view name, std::string& piece) {
  piece += ",\"series\":[{\"name\":\"";
  piece += name;
  piece += "\",\"columns\":[\"name\"],\"values\":[";
}

void append_row(std::string_view name, std::string& piece) {
  piece += '[';
  wire::append_json_string(name, piece);
  piece += ']';
}

Status InfluxAnswer::check_database(const std::string& name) const {
  const bool is_there = !name.starts_with('_') &&
                        (name == wire::kDefaultNamespace || catalog_.has_namespace(name)) &&
                        auth::allows_namespace(principal_, name);
  return is_there ? ok() : not_found("database not found: " + name);
}

void InfluxAnswer::answer(const Statement& statement, std::string& piece) {
  Status status;
  switch (statement.verb) {
    case Verb::CreateDatabase:
      status = auth::authorize_creation(principal_, statement.name);
      if (status.ok()) status = catalog_.ensure_namespace(statement.name).status();
      break;
    case Verb::DropDatabase:
      // Loaders begin by dropping what may not be there.
      if (catalog_.has_namespace(statement.name))
        status = unsupported(
            "a namespace is dropped with edgecase namespace drop, not by this statement");
      break;
    case Verb::ShowDatabases: return show_databases(piece);
    case Verb::ShowRetentionPolicies:
      status = check_database(statement.name);
      if (!status.ok()) break;
      piece +=
          R"(,"series":[{"columns":["name","duration","shardGroupDuration","replicaN","default"],)"
          R"("values":[["autogen","0s","168h0m0s",1,true]]}])";
      return;
    case Verb::ShowMeasurements:
      status = check_database(statement.name);
      is_listing_ = status.ok();
      break;
    case Verb::NotOffered: status = unsupported(not_offered_message(statement)); break;
  }
  if (!status.ok()) append_error(status, piece);
}

void InfluxAnswer::show_databases(std::string& piece) const {
  begin_series("databases", piece);
  bool is_first = true;
  for (const std::string& name : catalog_.namespaces()) {
    if (name.starts_with('_') || !auth::allows_namespace(principal_, name)) continue;
    if (!std::exchange(is_first, false)) piece += ',';
    append_row(name, piece);
  }
  piece += "]}]";
}

// The first of them behind `last`, as many as may be held.
std::set<std::string> InfluxAnswer::names_after(const std::optional<std::string>& last,
                                                bool& is_all) const {
  // A node, a string and what the allocator has around them.
  constexpr std::size_t kNodeBytes = 96;
  std::set<std::string> names;
  std::size_t bytes = 0;
  is_all = true;
  const std::string& database = statements_[next_].name;
  for (const catalog::SeriesRow row : catalog_.select_rows(database, wire::Selector{})) {
    const auto entry = catalog_.series_at(row);
    if (!entry.ok()) continue;
    const auto identity = wire::decode_identity(entry->identity);
    const std::string_view name = identity.ok() ? identity->measurement : entry->sensor;
    if (last && name <= *last) continue;
    if (!is_all && name > *names.rbegin()) continue;
    if (!auth::allows(auth::Operation::Read, principal_, database, entry->device, entry->sensor))
      continue;
    if (!names.emplace(name).second) continue;
    bytes += name.size() + kNodeBytes;
    while (bytes > kMeasurementsHeldBytes && names.size() > 1) {
      is_all = false;
      bytes -= names.rbegin()->size() + kNodeBytes;
      names.erase(std::prev(names.end()));
    }
  }
  return names;
}

// InfluxDB lists them in order, each once.
void InfluxAnswer::list_some(std::string& piece) {
  const Statement& statement = statements_[next_];
  if (names_.empty()) names_ = names_after(last_name_, is_all_);
  while (!names_.empty() && named_ < statement.limit && piece.size() < kPieceBytes) {
    last_name_ = std::move(names_.extract(names_.begin()).value());
    if (passed_ < statement.offset) {
      ++passed_;
      continue;
    }
    if (named_++ == 0) {
      begin_series("measurements", piece);
    } else {
      piece += ',';
    }
    append_row(*last_name_, piece);
  }
  if (named_ < statement.limit && (!names_.empty() || !is_all_)) return;
  if (named_ > 0) piece += "]}]";
  is_listing_ = false;
  names_.clear();
  last_name_.reset();
  named_ = passed_ = 0;
}

}  // namespace

Result<std::shared_ptr<PieceSource>> answer_influx_query(const InfluxQuestion& question,
                                                         catalog::Catalog& catalog) {
  if (question.text.size() > kInfluxQueryMaxBytes) {
    return invalid_argument("error parsing query: more than " +
                            std::to_string(kInfluxQueryMaxBytes) + " bytes");
  }
  EC_ASSIGN_OR_RETURN(const std::vector<influxql::Statement> parsed,
                      influxql::parse_statements(question.text, question.statements_max));
  if (parsed.empty()) return invalid_argument("missing required parameter \"q\"");
  const std::string_view database =
      question.database.empty() ? wire::kDefaultNamespace : question.database;
  std::vector<Statement> statements;
  for (const influxql::Statement& each : parsed) statements.push_back(statement_of(each, database));
  // A client that looks at the status alone is not to take it for a yes.
  if (std::all_of(statements.begin(), statements.end(),
                  [](const Statement& each) { return each.verb == Verb::NotOffered; })) {
    return unsupported(not_offered_message(statements.front()));
  }
  return std::shared_ptr<PieceSource>(
      std::make_shared<InfluxAnswer>(std::move(statements), question.principal, catalog));
}

}  // namespace edgecase::http
