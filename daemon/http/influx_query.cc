#include "http/influx_query.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "edgecase/machine.h"
#include "http/lanes.h"
#include "http/request_head.h"
#include "influxql/executor.h"
#include "influxql/series_view.h"
#include "wire/contract.h"
#include "wire/json_text.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using influxql::Cell;
using influxql::Statement;
using influxql::Verb;

// What InfluxQL has and this does not, by what it is called; empty: it is offered.
std::string name_of_refused(const Statement& statement) {
  switch (statement.verb) {
    case Verb::Select:
    case Verb::Explain:
    case Verb::ExplainAnalyze: return statement.select->into ? "SELECT INTO" : "";
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
  return statement.verb == Verb::Select || statement.verb == Verb::Explain ||
         statement.verb == Verb::ExplainAnalyze || is_listing(statement.verb) ||
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

// No rows, and something that is said beside them.
class NoRows final : public influxql::RowSource {
 public:
  explicit NoRows(std::string notice) : notice_(std::move(notice)) {}
  Result<bool> next_series(influxql::SeriesHead& /*head*/) override { return false; }
  Result<bool> next_row(std::vector<Cell>& /*row*/) override { return false; }
  std::string notice() const override { return notice_; }

 private:
  const std::string notice_;
};

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
      has_rows_ = has_rows_ || planned[i].rows != nullptr;
    }
    asked_.reach.withheld = withheld;
    return planned;
  }
  // What the audit log is to say of it beside its devices; empty: nothing.
  std::string detail() const {
    if (is_denied_) return "a statement was denied";
    return change_;
  }
  // The one database that they speak of; "*" where there are several.
  const std::string& database() const { return database_; }

 private:
  using Rows = std::unique_ptr<influxql::RowSource>;

  Result<Rows> plan_one(Statement statement, bool is_first);
  Result<Rows> change(const Statement& statement);
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
  bool has_rows_ = false;  // a statement before
  std::string change_;     // what one did; empty: nothing
  bool is_denied_ = false;
};

Result<Planner::Rows> Planner::plan_one(Statement statement, bool is_first) {
  EC_TRY(asked_.running->go_on());
  EC_TRY(refusal_of(statement));
  if (changes_schema(statement.verb)) return change(statement);
  switch (statement.verb) {
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
  asking.policy = question_.policy;
  asking.purpose = question_.purpose;
  asking.reach = &asked_.reach;
  asking.now_ns = context_.parts.clock.wall_ns();
  asking.limits = context_.parts.query.limits();
  if (is_listing(statement.verb))
    return show_names(std::move(statement), std::move(asking), context_.parts.query, is_first);
  if (statement.verb == Verb::Explain || statement.verb == Verb::ExplainAnalyze) {
    return influxql::explain_select(std::move(statement.select), asking, context_.parts.query,
                                    statement.verb == Verb::ExplainAnalyze);
  }
  if (statement.verb != Verb::Select) return unsupported("this statement is not offered here");
  return influxql::run_select(std::move(statement.select), asking, context_.parts.query);
}

Result<Planner::Rows> Planner::change(const Statement& statement) {
  // What stands before is read later, while the answer leaves.
  if (has_rows_ && statement.verb != Verb::CreateDatabase) {
    return unsupported(
        "a statement that erases or alters stands before those that read, or alone; nothing was "
        "done of it");
  }
  const bool names_one =
      statement.verb == Verb::CreateDatabase || statement.verb == Verb::DropDatabase;
  std::string database = names_one ? statement.name : take_database(statement);
  EC_ASSIGN_OR_RETURN(std::string notice, change_schema(context_, call_, statement, database));
  const bool creates = statement.verb == Verb::CreateDatabase;
  change_ = creates && change_.empty() ? "makes a namespace" : "changes what there is";
  if (notice.empty()) return Rows();
  return Rows(std::make_unique<NoRows>(std::move(notice)));
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

// How long a namespace's readings are kept where no other rule says more, and its tiers.
Result<Planner::Rows> Planner::show_policies(const std::string& database) const {
  const bool is_there =
      !database.starts_with('_') &&
      (database == wire::kDefaultNamespace || context_.parts.catalog.has_namespace(database)) &&
      auth::allows_namespace(call_.principal(), database);
  if (!is_there) return not_found("database not found: " + database);
  const std::int64_t kept_ns = context_.parts.retention.namespace_ns(database);
  std::vector<std::vector<Cell>> rows;
  const auto add = [&rows](std::string name, std::int64_t keep_ns) {
    const bool is_default = rows.empty();
    rows.push_back({text_cell(std::move(name)),
                    text_cell(keep_ns == kRetentionForever ? "0s" : go_duration(keep_ns)),
                    text_cell(shard_text(keep_ns)), whole_cell(Cell::Kind::Integer, 1),
                    whole_cell(Cell::Kind::Bool, is_default ? 1 : 0)});
  };
  add(std::string(influxql::kPolicyOfReadings), kept_ns);
  for (const wire::Tier& tier : context_.parts.retention.tiers_of(database))
    add(wire::format_duration(tier.every_ns), tier.keep_ns);
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
  asked->reach.second_turn = call.exchange.second_turn;
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

namespace {

// Looking at the clock for every row would cost as much as writing one.
constexpr int kStepsPerClockLook = 8;
// Rows that one step writes, where they are at hand.
constexpr std::size_t kRowsAtOnce = 64;

}  // namespace

Result<bool> InfluxAnswer::fill(std::string& piece) {
  if (is_in_rows_ && (rows().is_given_revoked() || of_many_.is_revoked()))
    return not_found("a reading was erased while it was sent");
  if (is_in_rows_) {
    const Status asked = query_->go_on();
    if (!asked.ok()) {
      text_->end_series(false, false, piece);
      end_statement(asked, piece);
    }
  }
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (int i = 1; piece.size() < kPieceBytes; ++i) {
    if (!step(piece)) return false;
    // What is given of one statement is taken before that of the next.
    if (!given_.empty() && statement_ < statements_.size()) break;
    const bool looks = i % kStepsPerClockLook == 0;
    if (looks && system_clock().boot_ns() - begin_ns > kPieceNs) break;
  }
  return true;
}

void InfluxAnswer::let_go() {
  for (PlannedStatement& each : statements_) {
    if (each.rows != nullptr) each.rows->let_go();
  }
}

query::GivenReadings InfluxAnswer::take_given() {
  if (given_.empty() && is_in_rows_) {
    query::GivenReadings given = rows().take_given();
    given.add(of_many_);
    // What is not written yet is given with the next piece as well.
    of_many_ = next_of_many_ < many_.size() ? given : query::GivenReadings();
    return given;
  }
  return std::exchange(given_, {});
}

// False: that was all.
bool InfluxAnswer::step(std::string& piece) {
  if (is_in_rows_) {
    next_row(piece);
  } else if (statement_ < statements_.size()) {
    begin_statement(piece);
  } else {
    text_->end(piece);
    return false;
  }
  return true;
}

void InfluxAnswer::begin_statement(std::string& piece) {
  const PlannedStatement& planned = statements_[statement_];
  if (has_failed_) return end_statement(busy("not executed"), piece);
  if (!planned.status.ok() || planned.rows == nullptr) return end_statement(planned.status, piece);
  if (const Status asked = query_->go_on(); !asked.ok()) return end_statement(asked, piece);
  const auto has_series = rows().next_series(head_);
  if (!has_series.ok() || !*has_series) return end_statement(has_series.status(), piece);
  begin_series(piece);
}

void InfluxAnswer::begin_series(std::string& piece) {
  is_in_rows_ = true;
  rows_in_chunk_ = 0;
  text_->begin_series(statement_, head_, piece);
}

// The next rows, of which many are at hand. False: there are none, or something has failed.
Result<bool> InfluxAnswer::next_rows(std::string& piece) {
  if (next_of_many_ == many_.size()) {
    next_of_many_ = 0;
    many_.clear();
    EC_ASSIGN_OR_RETURN(const bool has_any, rows().next_rows(many_));
    if (!has_any) return false;
  }
  end_full_chunk(piece);
  std::size_t count = std::min(kRowsAtOnce, many_.size() - next_of_many_);
  if (chunk_rows_ > 0) count = std::min(count, chunk_rows_ - rows_in_chunk_);
  text_->rows(many_, next_of_many_, next_of_many_ + count, rows(), piece);
  next_of_many_ += count;
  rows_in_chunk_ += count;
  return true;
}

void InfluxAnswer::end_full_chunk(std::string& piece) {
  if (chunk_rows_ == 0 || rows_in_chunk_ < chunk_rows_) return;
  text_->end_series(true, true, piece);
  begin_series(piece);
}

void InfluxAnswer::next_row(std::string& piece) {
  auto has_row = next_rows(piece);
  if (has_row.ok() && *has_row) return;
  if (has_row.ok()) has_row = rows().next_row(row_);
  if (has_row.ok() && *has_row) {
    end_full_chunk(piece);
    ++rows_in_chunk_;
    return text_->row(row_, rows(), piece);
  }
  // What ends a chunk says whether another one follows.
  const auto has_series = has_row.ok() ? rows().next_series(head_) : has_row;
  const bool more = has_series.ok() && *has_series;
  text_->end_series(false, more, piece);
  if (more) return begin_series(piece);
  end_statement(has_series.status(), piece);
}

void InfluxAnswer::end_statement(const Status& status, std::string& piece) {
  PlannedStatement& ended = statements_[statement_];
  const std::string notice = ended.rows == nullptr ? std::string() : ended.rows->notice();
  const std::string error = status.ok() ? std::string() : status.message();
  text_->end_statement(statement_, error, notice, piece);
  has_failed_ = has_failed_ || !status.ok();
  is_in_rows_ = false;
  ++statement_;
  if (ended.rows != nullptr) given_ = ended.rows->take_given();
  given_.add(std::exchange(of_many_, {}));
  ended.rows = nullptr;
}

}  // namespace edgecase::http
