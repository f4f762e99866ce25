#include "http/influx_query.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "http/influx_answer.h"
#include "http/influx_show.h"
#include "http/refusal.h"
#include "http/running_queries.h"
#include "influxql/executor.h"
#include "wire/json_values.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

using influxql::Cell;
using influxql::Statement;
using influxql::Verb;

// What InfluxQL has and this does not, by what it is called; empty: it is offered.
std::string name_of_refused(const Statement& statement) {
  const influxql::Policy& policy = statement.policy;
  switch (statement.verb) {
    case Verb::Select: return statement.select->into ? "SELECT INTO" : "";
    case Verb::Explain:
    case Verb::ExplainAnalyze: return "EXPLAIN";
    case Verb::CreateDatabase:
      if (policy.duration_ns || policy.shard_duration_ns || !policy.name.empty() ||
          policy.replication.value_or(1) != 1)
        return "CREATE DATABASE with a retention policy";
      return "";
    case Verb::CreateRetentionPolicy: return "CREATE RETENTION POLICY";
    case Verb::AlterRetentionPolicy: return "ALTER RETENTION POLICY";
    case Verb::DropRetentionPolicy: return "DROP RETENTION POLICY";
    case Verb::Delete: return "DELETE";
    case Verb::DropSeries: return "DROP SERIES";
    case Verb::DropMeasurement: return "DROP MEASUREMENT";
    case Verb::KillQuery: return statement.name.empty() ? "" : "KILL QUERY with ON";
    case Verb::NotOffered: return statement.name;
    default: return "";
  }
}

Status refusal_of(const Statement& statement) {
  const std::string name = name_of_refused(statement);
  if (name.empty()) return ok();
  return unsupported(name + " is not offered here, and nothing was done of it");
}

bool only_reads(const Statement& statement) {
  return statement.verb == Verb::Select || is_listing(statement.verb) ||
         statement.verb == Verb::ShowDatabases || statement.verb == Verb::ShowRetentionPolicies;
}

// A few rows that are there at once.
class FewRows final : public influxql::RowSource {
 public:
  FewRows(influxql::SeriesHead head, std::vector<std::vector<Cell>> rows)
      : head_(std::move(head)), rows_(std::move(rows)) {}

  Result<bool> next_series(influxql::SeriesHead& head) override {
    if (std::exchange(has_begun_, true)) return false;
    head = head_;
    return true;
  }
  Result<bool> next_row(std::vector<Cell>& row) override {
    if (next_ == rows_.size()) return false;
    row = std::move(rows_[next_++]);
    return true;
  }

 private:
  const influxql::SeriesHead head_;
  std::vector<std::vector<Cell>> rows_;
  bool has_begun_ = false;
  std::size_t next_ = 0;
};

Cell text_cell(std::string text) {
  Cell cell;
  cell.kind = Cell::Kind::Text;
  cell.text = std::move(text);
  return cell;
}

Cell whole_cell(Cell::Kind kind, std::int64_t number) {
  Cell cell;
  cell.kind = kind;
  cell.integer = number;
  return cell;
}

// As Go prints a duration, to the second, or below one to its largest unit: "1h0m5s", "12ms".
std::string go_duration(std::int64_t ns) {
  struct Unit {
    std::int64_t ns;
    const char* name;
  };
  for (const Unit& unit : {Unit{1'000'000, "ms"}, Unit{1'000, "µs"}, Unit{1, "ns"}}) {
    if (ns < wire::kNanosecondsPerSecond && ns >= unit.ns)
      return std::to_string(ns / unit.ns) + unit.name;
  }
  const std::int64_t seconds = ns / wire::kNanosecondsPerSecond;
  constexpr std::int64_t kMinute = 60, kHour = 3600;
  std::string text;
  if (seconds >= kHour) text += std::to_string(seconds / kHour) + "h";
  if (seconds >= kMinute) text += std::to_string(seconds % kHour / kMinute) + "m";
  return text + std::to_string(seconds % kMinute) + "s";
}

// What the statements of a request are planned with, and answered.
struct Asked {
  query::Reach reach;
  std::shared_ptr<RunningQuery> running;
};

// Plans the statements of one request, and does those that have no rows.
class Planner {
 public:
  Planner(HttpContext& context, Call& call, const InfluxQuestion& question, Asked& asked)
      : context_(context), call_(call), question_(question), asked_(asked) {}

  // What stands behind one that fails is not planned.
  std::vector<PlannedStatement> plan(std::vector<Statement> statements) {
    std::vector<PlannedStatement> planned(statements.size());
    std::uint64_t withheld = 0;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      asked_.reach.withheld = 0;
      auto rows = plan_one(std::move(statements[i]), i == 0);
      withheld = std::max(withheld, asked_.reach.withheld);
      planned[i].status = rows.status();
      is_denied_ = is_denied_ || rows.status().code() == StatusCode::NotAllowed;
      if (!rows.ok()) break;
      planned[i].rows = std::move(rows).value();
    }
    asked_.reach.withheld = withheld;
    return planned;
  }
  // What the audit log is to say of it beside its devices; empty: nothing.
  std::string detail() const {
    if (is_denied_) return "a statement was denied";
    return has_changed_ ? "makes a namespace" : "";
  }
  // The one database that they speak of; "*" where there are several.
  const std::string& database() const { return database_; }

 private:
  using Rows = std::unique_ptr<influxql::RowSource>;

  Result<Rows> plan_one(Statement statement, bool is_first);
  Result<Rows> create_database(const std::string& name);
  Status drop_database(const std::string& name) const;
  Result<Rows> show_databases() const;
  Result<Rows> show_policies(const std::string& database) const;
  Result<Rows> show_queries() const;

  std::string take_database(const Statement& statement) {
    std::string name = statement.database.empty() ? question_.database : statement.database;
    const bool is_another = !database_.empty() && database_ != name;
    database_ = is_another ? "*" : name;
    return name;
  }

  HttpContext& context_;
  Call& call_;
  const InfluxQuestion& question_;
  Asked& asked_;
  std::string database_;
  bool has_changed_ = false;
  bool is_denied_ = false;
};

Result<Planner::Rows> Planner::plan_one(Statement statement, bool is_first) {
  EC_TRY(asked_.running->go_on());
  EC_TRY(refusal_of(statement));
  switch (statement.verb) {
    case Verb::CreateDatabase: return create_database(statement.name);
    case Verb::DropDatabase: EC_TRY(drop_database(statement.name)); return Rows();
    case Verb::ShowDatabases: return show_databases();
    case Verb::ShowQueries: return show_queries();
    case Verb::KillQuery:
      EC_TRY(context_.running_queries.kill(statement.number, call_.principal()));
      return Rows();
    default: break;
  }
  const std::string database = take_database(statement);
  if (statement.verb == Verb::ShowRetentionPolicies) return show_policies(database);
  influxql::Asking asking;
  asking.principal = call_.principal();
  asking.database = database;
  asking.purpose = question_.purpose;
  asking.reach = &asked_.reach;
  asking.now_ns = context_.parts.clock.wall_ns();
  asking.limits = context_.parts.query.limits();
  if (is_listing(statement.verb))
    return show_names(std::move(statement), std::move(asking), context_.parts.query, is_first);
  if (statement.verb != Verb::Select) return unsupported("this statement is not offered here");
  return influxql::run_select(std::move(statement.select), asking, context_.parts.query);
}

Result<Planner::Rows> Planner::create_database(const std::string& name) {
  EC_TRY(auth::authorize_creation(call_.principal(), name));
  EC_TRY(context_.parts.catalog.ensure_namespace(name).status());
  has_changed_ = true;
  return Rows();
}

Status Planner::drop_database(const std::string& name) const {
  // Loaders begin by dropping what may not be there.
  if (!context_.parts.catalog.has_namespace(name)) return ok();
  return unsupported("a namespace is dropped with edgecase namespace drop, not by this statement");
}

Result<Planner::Rows> Planner::show_databases() const {
  std::vector<std::vector<Cell>> rows;
  for (std::string& name : context_.parts.catalog.namespaces()) {
    if (name.starts_with('_') || !auth::allows_namespace(call_.principal(), name)) continue;
    rows.push_back({text_cell(std::move(name))});
  }
  return Rows(
      std::make_unique<FewRows>(influxql::SeriesHead{"databases", {}, {"name"}}, std::move(rows)));
}

// One policy: how long a namespace's readings are kept where no other rule says more.
Result<Planner::Rows> Planner::show_policies(const std::string& database) const {
  const bool is_there =
      !database.starts_with('_') &&
      (database == wire::kDefaultNamespace || context_.parts.catalog.has_namespace(database)) &&
      auth::allows_namespace(call_.principal(), database);
  if (!is_there) return not_found("database not found: " + database);
  const std::int64_t kept_ns = context_.parts.retention.namespace_ns(database);
  std::vector<std::vector<Cell>> rows;
  rows.push_back(
      {text_cell("autogen"), text_cell(kept_ns == kRetentionForever ? "0s" : go_duration(kept_ns)),
       text_cell("168h0m0s"), whole_cell(Cell::Kind::Integer, 1), whole_cell(Cell::Kind::Bool, 1)});
  return Rows(std::make_unique<FewRows>(
      influxql::SeriesHead{
          {}, {}, {"name", "duration", "shardGroupDuration", "replicaN", "default"}},
      std::move(rows)));
}

Result<Planner::Rows> Planner::show_queries() const {
  std::vector<std::vector<Cell>> rows;
  const std::int64_t now_ns = context_.parts.clock.boot_ns();
  for (const auto& each : context_.running_queries.tell(call_.principal(), now_ns)) {
    rows.push_back({whole_cell(Cell::Kind::Integer, static_cast<std::int64_t>(each.id)),
                    text_cell(each.text), text_cell(each.database),
                    text_cell(go_duration(each.running_ns)),
                    text_cell(each.is_killed ? "killed" : "running")});
  }
  return Rows(std::make_unique<FewRows>(
      influxql::SeriesHead{{}, {}, {"qid", "query", "database", "duration", "status"}},
      std::move(rows)));
}

Result<std::vector<Statement>> parse(const InfluxQuestion& question, std::size_t statements_max) {
  if (question.text.size() > kInfluxQueryMaxBytes) {
    return invalid_argument("error parsing query: more than " +
                            std::to_string(kInfluxQueryMaxBytes) + " bytes");
  }
  EC_ASSIGN_OR_RETURN(
      std::vector<Statement> statements,
      influxql::parse_statements(question.text, statements_max, question.parameters));
  if (statements.empty()) return invalid_argument("missing required parameter \"q\"");
  return statements;
}

}  // namespace

void answer_influx_question(HttpContext& context, Call& call, const InfluxQuestion& question) {
  auto statements = parse(question, context.parts.settings.limits.query_statements);
  if (!statements.ok()) return call.answer_error(statements.status());
  // A client that looks at the status alone is not to take it for a yes.
  const auto is_refused = [](const Statement& each) { return !refusal_of(each).ok(); };
  if (std::all_of(statements->begin(), statements->end(), is_refused)) {
    // Some clients look for a statement's error, some at the status alone.
    const Status refused = refusal_of(statements->front());
    wire::Json body = wire::Json::parse(error_body(wire::routes::kInfluxQuery, refused));
    body["results"] = {{{"statement_id", 0}, {"error", refused.message()}}};
    return call.answer_json(400, wire::dump(body));
  }
  call.only_read = std::all_of(statements->begin(), statements->end(), only_reads);
  auto asked = std::make_shared<Asked>();
  asked->running =
      context.running_queries.begin(question.text, question.database, call.principal(),
                                    call.exchange.patience, context.parts.clock.boot_ns());
  asked->reach.patience = asked->running.get();
  asked->reach.counts_once = true;
  Planner planner(context, call, question, *asked);
  std::vector<PlannedStatement> planned = planner.plan(std::move(statements).value());
  if (asked->reach.withheld > 0) {
    call.response.set_header(wire::routes::kWithheldHeader, std::to_string(asked->reach.withheld));
  }
  AuditNote& note = call.exchange.audit;
  note.reach = asked->reach;
  note.namespace_name = planner.database();
  note.detail = planner.detail();
  const char* const type = question.shape.is_csv ? "text/csv" : "application/json";
  std::shared_ptr<Patience> running = asked->running;
  answer_in_pieces(call, type,
                   std::make_shared<InfluxAnswer>(std::move(planned), std::move(asked),
                                                  std::move(running), question.shape));
}

}  // namespace edgecase::http
