#include "http/influx_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wire/json_values.h"
#include "wire/reading.h"

namespace edgecase::http {
namespace {

struct Word {
  std::string text;
  bool quoted = false;
};
using Words = std::vector<Word>;

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

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

Status parse_error(const std::string& what) {
  return invalid_argument("error parsing query: " + what);
}

// Past a comment at `i`, if there is one; npos: it has no end.
std::size_t past_comment(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("--")) return std::min(text.find('\n', i), text.size());
  if (!rest.starts_with("/*")) return i;
  const std::size_t end = text.find("*/", i + 2);
  return end == std::string_view::npos ? end : end + 2;
}

// The word between `text[i]` and the next such character that has no `\` before it.
Result<Word> quoted_word(std::string_view text, std::size_t& i) {
  const char quote = text[i++];
  Word word{"", true};
  for (; i < text.size() && text[i] != quote; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    word.text.push_back(text[i]);
  }
  if (i++ >= text.size()) return parse_error("unterminated string");
  return word;
}

// Splits into statements at `;`, and these into words: what is quoted, regular expressions, and
// runs of anything else. Comments are none.
Result<std::vector<Words>> split(std::string_view text) {
  std::vector<Words> statements(1);
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t behind = past_comment(text, i);
    if (behind == std::string_view::npos) return parse_error("unterminated comment");
    if (is_blank(c)) {
      ++i;
    } else if (behind != i) {
      i = behind;
    } else if (c == ';') {
      if (!statements.back().empty()) statements.emplace_back();
      ++i;
    } else if (c == '"' || c == '\'' || c == '/') {
      EC_ASSIGN_OR_RETURN(Word word, quoted_word(text, i));
      statements.back().push_back(std::move(word));
    } else {
      std::size_t end = std::min(text.find_first_of(" \t\r\n;\"'", i), text.size());
      for (const char* comment : {"--", "/*"}) end = std::min(end, text.find(comment, i));
      statements.back().push_back({std::string(text.substr(i, end - i)), false});
      i = end;
    }
  }
  if (statements.back().empty()) statements.pop_back();
  if (statements.empty()) return invalid_argument("missing required parameter \"q\"");
  return statements;
}

// Reads the words of one statement from the left.
class WordReader {
 public:
  explicit WordReader(const Words& words) : words_(words) {}

  bool at_end() const { return next_ == words_.size(); }
  // Takes these keywords, if all of them come next.
  bool take(std::initializer_list<const char*> keywords) {
    std::size_t i = next_;
    for (const char* keyword : keywords) {
      if (i == words_.size() || words_[i].quoted || upper(words_[i].text) != keyword) return false;
      ++i;
    }
    next_ = i;
    return true;
  }
  Result<std::string> take_name(const char* of) {
    if (at_end() || words_[next_].text.empty())
      return parse_error(std::string(of) + " needs a name");
    return words_[next_++].text;
  }
  Result<std::size_t> take_number(const char* of) {
    std::size_t number = 0;
    const std::string text = at_end() || words_[next_].quoted ? "" : words_[next_].text;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || stop != text.data() + text.size())
      return parse_error(std::string(of) + " needs a whole number");
    ++next_;
    return number;
  }
  // What is left is nothing that is done here: to pass it over would be to say yes to it.
  Status expect_end() const {
    if (at_end()) return ok();
    return parse_error("found " + words_[next_].text.substr(0, 64) + " behind \"" + begin() +
                       "\", which takes nothing more here");
  }
  // The words before that, as keywords are written.
  std::string begin() const {
    std::string text;
    for (std::size_t i = 0; i < next_; ++i) {
      if (i > 0) text += ' ';
      text += words_[i].quoted ? words_[i].text : upper(words_[i].text);
    }
    return text;
  }

 private:
  const Words& words_;
  std::size_t next_ = 0;
};

// What InfluxQL has and this does not, by its first words; the longest come first.
constexpr std::array kNotOffered = {"CREATE RETENTION POLICY",
                                    "CREATE CONTINUOUS QUERY",
                                    "CREATE SUBSCRIPTION",
                                    "CREATE USER",
                                    "ALTER RETENTION POLICY",
                                    "DROP RETENTION POLICY",
                                    "DROP CONTINUOUS",
                                    "DROP SERIES",
                                    "DROP MEASUREMENT",
                                    "DROP SHARD",
                                    "DROP SUBSCRIPTION",
                                    "DROP USER",
                                    "SHOW TAG KEYS",
                                    "SHOW TAG KEY",
                                    "SHOW TAG VALUES",
                                    "SHOW FIELD KEYS",
                                    "SHOW FIELD KEY",
                                    "SHOW SERIES",
                                    "SHOW MEASUREMENT",
                                    "SHOW QUERIES",
                                    "SHOW STATS",
                                    "SHOW DIAGNOSTICS",
                                    "SHOW SHARDS",
                                    "SHOW SHARD GROUPS",
                                    "SHOW USERS",
                                    "SHOW GRANTS",
                                    "SHOW CONTINUOUS",
                                    "SHOW SUBSCRIPTIONS",
                                    "SELECT",
                                    "DELETE",
                                    "EXPLAIN",
                                    "GRANT",
                                    "REVOKE",
                                    "KILL QUERY",
                                    "SET PASSWORD"};

std::optional<std::string> not_offered(const Words& words) {
  std::string begin;
  for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 3); ++i) {
    if (words[i].quoted) break;
    begin += upper(words[i].text) + ' ';
  }
  for (const std::string_view each : kNotOffered) {
    // `SELECT*` is one word here.
    const bool is_verb = each == "SELECT" && begin.starts_with(each);
    if (is_verb || begin.starts_with(std::string(each) + ' ')) return std::string(each);
  }
  return std::nullopt;
}

Result<Statement> parse_show_measurements(WordReader& words, std::string_view database) {
  Statement made{Verb::ShowMeasurements, std::string(database)};
  if (words.take({"ON"})) {
    EC_ASSIGN_OR_RETURN(made.name, words.take_name("ON"));
  }
  if (words.take({"LIMIT"})) {
    EC_ASSIGN_OR_RETURN(made.limit, words.take_number("LIMIT"));
  }
  if (words.take({"OFFSET"})) {
    EC_ASSIGN_OR_RETURN(made.offset, words.take_number("OFFSET"));
  }
  if (made.limit == 0) made.limit = SIZE_MAX;  // as there: none
  return made;
}

Result<Statement> parse(const Words& given, std::string_view database) {
  WordReader words(given);
  Statement made;
  if (words.take({"CREATE", "DATABASE"})) {
    made.verb = Verb::CreateDatabase;
    words.take({"IF", "NOT", "EXISTS"});
    EC_ASSIGN_OR_RETURN(made.name, words.take_name("CREATE DATABASE"));
    words.take({"WITH", "REPLICATION", "1"});  // which is what there is
  } else if (words.take({"DROP", "DATABASE"})) {
    made.verb = Verb::DropDatabase;
    words.take({"IF", "EXISTS"});
    EC_ASSIGN_OR_RETURN(made.name, words.take_name("DROP DATABASE"));
  } else if (words.take({"SHOW", "DATABASES"})) {
    made.verb = Verb::ShowDatabases;
  } else if (words.take({"SHOW", "RETENTION", "POLICIES"})) {
    made = {Verb::ShowRetentionPolicies, std::string(database)};
    if (words.take({"ON"})) {
      EC_ASSIGN_OR_RETURN(made.name, words.take_name("ON"));
    }
  } else if (words.take({"SHOW", "MEASUREMENTS"})) {
    EC_ASSIGN_OR_RETURN(made, parse_show_measurements(words, database));
  } else if (const auto other = not_offered(given)) {
    return Statement{Verb::NotOffered, *other};
  } else {
    return parse_error("found " + given.front().text.substr(0, 64) +
                       ", which begins no statement that is known here");
  }
  EC_TRY(words.expect_end());
  return made;
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
  // Of SHOW MEASUREMENTS at hand.
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
    // What the line protocol put first into a sensor's name.
    const std::string_view name =
        std::string_view(entry->sensor).substr(0, entry->sensor.find_first_of(".{"));
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
    return parse_error("more than " + std::to_string(kInfluxQueryMaxBytes) + " bytes");
  }
  EC_ASSIGN_OR_RETURN(const std::vector<Words> split_text, split(question.text));
  if (split_text.size() > question.statements_max) {
    return parse_error("more than limits.query-statements = " +
                       std::to_string(question.statements_max) + " statements");
  }
  const std::string_view database =
      question.database.empty() ? wire::kDefaultNamespace : question.database;
  std::vector<Statement> statements;
  for (const Words& words : split_text) {
    EC_ASSIGN_OR_RETURN(Statement statement, parse(words, database));
    statements.push_back(std::move(statement));
  }
  // A client that looks at the status alone is not to take it for a yes.
  if (std::all_of(statements.begin(), statements.end(),
                  [](const Statement& each) { return each.verb == Verb::NotOffered; })) {
    return unsupported(not_offered_message(statements.front()));
  }
  return std::shared_ptr<PieceSource>(
      std::make_shared<InfluxAnswer>(std::move(statements), question.principal, catalog));
}

}  // namespace edgecase::http
