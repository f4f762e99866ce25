#include "influxql/statement.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "influxql/token_reader.h"
#include "wire/names.h"

namespace edgecase::influxql {
namespace {

using Statements = std::vector<Statement>;

// `= x` and `=~ /x/`; of a tag's key also `!= x`, `!~ /x/` and `IN (x, y)`.
Status parse_match(TokenReader& reader, bool is_key, NameMatch& match) {
  const Token token = reader.take();
  const std::string_view wanted = is_key ? "IN, =, =~" : "=, =~";
  if (is_key && token.is_keyword("IN")) {
    match.op = Operator::Equal;
    EC_TRY(reader.expect_symbol("("));
    do {
      reader.look_beyond(false);
      EC_TRY(reader.count_node());
      EC_ASSIGN_OR_RETURN(std::string name, reader.expect_name());
      match.names.push_back(std::move(name));
    } while (reader.take_if_symbol(","));
    return reader.expect_symbol(")");
  }
  const bool is_negated = token.is_symbol("!=") || token.is_symbol("!~");
  if (is_negated && !is_key) return TokenReader::unexpected(token, wanted);
  if (token.is_symbol("=~") || token.is_symbol("!~")) {
    const Token regex = reader.take_or_regex();
    const bool is_nameless = !is_key && regex.kind != TokenKind::Identifier;
    if (regex.kind != TokenKind::Regex)
      return TokenReader::unexpected(regex, is_nameless ? "identifier" : "regex");
    match.op = is_negated ? Operator::NotMatches : Operator::Matches;
    match.regex = regex.text;
    return ok();
  }
  if (!token.is_symbol("=") && !is_negated) return TokenReader::unexpected(token, wanted);
  match.op = is_negated ? Operator::NotEqual : Operator::Equal;
  reader.look_beyond(!is_key);
  EC_ASSIGN_OR_RETURN(std::string name, reader.expect_name());
  match.names.push_back(std::move(name));
  return ok();
}

Result<Statement> parse_show_measurements(TokenReader& reader) {
  Statement made;
  made.verb = Verb::ShowMeasurements;
  EC_TRY(parse_on(reader, made.database));
  if (reader.take_if("WITH")) {
    EC_TRY(reader.expect("MEASUREMENT"));
    EC_TRY(parse_match(reader, false, made.match));
  }
  EC_TRY(parse_where(reader, made.where));
  EC_TRY(parse_show_rest(reader, made));
  return made;
}

// Behind the word CARDINALITY.
Result<Statement> parse_cardinality(TokenReader& reader, Verb verb, bool is_exact) {
  Statement made;
  made.verb = verb;
  made.is_exact = is_exact;
  EC_TRY(parse_on(reader, made.database));
  EC_TRY(parse_from(reader, made));
  if (verb == Verb::ShowTagValuesCardinality) {
    EC_TRY(reader.expect("WITH"));
    EC_TRY(reader.expect("KEY"));
    EC_TRY(parse_match(reader, true, made.match));
  }
  EC_TRY(parse_where(reader, made.where));
  EC_TRY(parse_group_by(reader, made.group_by));
  EC_TRY(parse_count(reader, "LIMIT", made.limit));
  EC_TRY(parse_count(reader, "OFFSET", made.offset));
  return made;
}

Result<Statement> parse_listing(TokenReader& reader, Verb verb) {
  Statement made;
  made.verb = verb;
  EC_TRY(parse_on(reader, made.database));
  EC_TRY(parse_from(reader, made));
  if (verb == Verb::ShowTagValues) {
    EC_TRY(reader.expect("WITH"));
    EC_TRY(reader.expect("KEY"));
    EC_TRY(parse_match(reader, true, made.match));
  }
  if (verb != Verb::ShowFieldKeys) EC_TRY(parse_where(reader, made.where));
  EC_TRY(parse_show_rest(reader, made));
  return made;
}

// `[EXACT] CARDINALITY`, or `listing`.
Result<Statement> parse_counted(TokenReader& reader, Verb listing, Verb cardinality) {
  const bool is_exact = reader.take_if("EXACT");
  if (reader.take_if("CARDINALITY")) return parse_cardinality(reader, cardinality, is_exact);
  // InfluxDB takes SHOW SERIES EXACT for SHOW SERIES.
  if (is_exact && listing != Verb::ShowSeries) return reader.unexpected("CARDINALITY");
  return parse_listing(reader, listing);
}

// `[EXACT] CARDINALITY`.
Result<Statement> parse_counting(TokenReader& reader, Verb cardinality) {
  const bool is_exact = reader.take_if("EXACT");
  if (reader.take_if("CARDINALITY")) return parse_cardinality(reader, cardinality, is_exact);
  return reader.unexpected(is_exact ? "CARDINALITY" : "EXACT, CARDINALITY");
}

// What is not offered is taken as far as its end, so that what follows it is still understood.
Result<Statement> parse_not_offered(TokenReader& reader, std::string_view name) {
  Statement made;
  made.name = name;
  while (reader.peek().kind != TokenKind::End && !reader.peek().is_symbol(";")) {
    const Token token = reader.take();
    if (token.kind >= TokenKind::BadString && token.kind <= TokenKind::BadComment)
      return TokenReader::unexpected(token, ";");
  }
  return made;
}

Result<Statement> parse_show_tag(TokenReader& reader) {
  if (reader.take_if("KEYS")) return parse_listing(reader, Verb::ShowTagKeys);
  if (reader.take_if("KEY")) return parse_counting(reader, Verb::ShowTagKeyCardinality);
  if (reader.take_if("VALUES"))
    return parse_counted(reader, Verb::ShowTagValues, Verb::ShowTagValuesCardinality);
  return reader.unexpected("KEY, KEYS, VALUES");
}

Result<Statement> parse_show_field(TokenReader& reader) {
  if (reader.take_if("KEYS")) return parse_listing(reader, Verb::ShowFieldKeys);
  if (!reader.take_if("KEY")) return reader.unexpected("KEY, KEYS");
  return parse_counting(reader, Verb::ShowFieldKeyCardinality);
}

Result<Statement> parse_show(TokenReader& reader) {
  Statement made;
  if (reader.take_if("DATABASES")) {
    made.verb = Verb::ShowDatabases;
    return made;
  }
  if (reader.take_if("RETENTION")) {
    EC_TRY(reader.expect("POLICIES"));
    made.verb = Verb::ShowRetentionPolicies;
    EC_TRY(parse_on(reader, made.database));
    return made;
  }
  if (reader.take_if("QUERIES")) {
    made.verb = Verb::ShowQueries;
    return made;
  }
  if (reader.take_if("MEASUREMENTS")) return parse_show_measurements(reader);
  if (reader.take_if("MEASUREMENT"))
    return parse_counting(reader, Verb::ShowMeasurementCardinality);
  if (reader.take_if("SERIES"))
    return parse_counted(reader, Verb::ShowSeries, Verb::ShowSeriesCardinality);
  if (reader.take_if("TAG")) return parse_show_tag(reader);
  if (reader.take_if("FIELD")) return parse_show_field(reader);
  for (const std::string_view other : {"CONTINUOUS", "DIAGNOSTICS", "GRANTS", "SHARD", "SHARDS",
                                       "STATS", "SUBSCRIPTIONS", "USERS"}) {
    if (reader.take_if(other)) return parse_not_offered(reader, "SHOW " + std::string(other));
  }
  return reader.unexpected(
      "CONTINUOUS, DATABASES, DIAGNOSTICS, FIELD, GRANTS, MEASUREMENT, MEASUREMENTS, QUERIES, "
      "RETENTION, SERIES, SHARD, SHARDS, STATS, SUBSCRIPTIONS, TAG, USERS");
}

enum class PolicyOf : unsigned char { Database, NewPolicy, OldPolicy };

// DURATION, REPLICATION, SHARD DURATION, DEFAULT (not of a database) and NAME (of one), in any
// order, each once.
Status parse_policy(TokenReader& reader, PolicyOf of, Policy& policy) {
  for (bool is_first = true;; is_first = false) {
    const Token token = reader.peek();
    const auto again = [&token] {
      return TokenReader::wrong(token, "found duplicate " + token.text + " option");
    };
    if (reader.take_if("DURATION")) {
      if (policy.duration_ns) return again();
      EC_ASSIGN_OR_RETURN(policy.duration_ns, reader.expect_duration());
    } else if (reader.take_if("REPLICATION")) {
      if (policy.replication) return again();
      const Token number = reader.peek();
      EC_ASSIGN_OR_RETURN(policy.replication, reader.expect_integer());
      if (*policy.replication < 1 || *policy.replication > INT32_MAX) {
        return TokenReader::wrong(
            number, "invalid value " + number.text + ": must be 1 <= n <= 2147483647");
      }
    } else if (reader.take_if("SHARD")) {
      if (policy.shard_duration_ns) return again();
      EC_TRY(reader.expect("DURATION"));
      EC_ASSIGN_OR_RETURN(policy.shard_duration_ns, reader.expect_duration());
    } else if (of == PolicyOf::Database && reader.take_if("NAME")) {
      if (!policy.name.empty()) return again();
      EC_ASSIGN_OR_RETURN(policy.name, reader.expect_name());
    } else if (of != PolicyOf::Database && reader.take_if("DEFAULT")) {
      if (policy.is_default) return again();
      policy.is_default = true;
    } else if (is_first) {
      return reader.unexpected(of == PolicyOf::Database ? "DURATION, NAME, REPLICATION, SHARD"
                                                        : "DURATION, REPLICATION, SHARD, DEFAULT");
    } else {
      return ok();
    }
  }
}

Result<Statement> parse_policy_statement(TokenReader& reader, Verb verb) {
  Statement made;
  made.verb = verb;
  EC_TRY(reader.expect("POLICY"));
  EC_ASSIGN_OR_RETURN(made.name, reader.expect_name());
  EC_TRY(reader.expect("ON"));
  EC_ASSIGN_OR_RETURN(made.database, reader.expect_name());
  if (verb == Verb::DropRetentionPolicy) return made;
  const bool is_new = verb == Verb::CreateRetentionPolicy;
  if (is_new) {
    EC_TRY(reader.expect("DURATION"));
    EC_ASSIGN_OR_RETURN(made.policy.duration_ns, reader.expect_duration());
    if (!reader.next_is("REPLICATION")) return reader.unexpected("REPLICATION");
  }
  EC_TRY(parse_policy(reader, is_new ? PolicyOf::NewPolicy : PolicyOf::OldPolicy, made.policy));
  return made;
}

// `IF NOT EXISTS` and `IF EXISTS` in front of it are of clients older than the grammar, which
// reserves none of these words: a database may be called `if`.
Result<std::string> parse_database_name(TokenReader& reader,
                                        std::initializer_list<std::string_view> behind_if) {
  const bool is_if = reader.next_is_word("IF");
  EC_ASSIGN_OR_RETURN(std::string name, reader.expect_name());
  if (!is_if || !reader.next_is_word(*behind_if.begin())) return name;
  for (const std::string_view word : behind_if) {
    if (!reader.take_if_word(word)) return reader.unexpected(word);
  }
  return reader.expect_name();
}

Result<Statement> parse_create(TokenReader& reader) {
  if (reader.take_if("RETENTION"))
    return parse_policy_statement(reader, Verb::CreateRetentionPolicy);
  for (const std::string_view other : {"CONTINUOUS", "USER", "SUBSCRIPTION"}) {
    if (reader.take_if(other)) return parse_not_offered(reader, "CREATE " + std::string(other));
  }
  if (!reader.take_if("DATABASE"))
    return reader.unexpected("CONTINUOUS, DATABASE, USER, RETENTION, SUBSCRIPTION");
  Statement made;
  made.verb = Verb::CreateDatabase;
  EC_ASSIGN_OR_RETURN(made.name, parse_database_name(reader, {"NOT", "EXISTS"}));
  if (reader.take_if("WITH")) EC_TRY(parse_policy(reader, PolicyOf::Database, made.policy));
  return made;
}

// DELETE and DROP SERIES: FROM, WHERE, or both.
Result<Statement> parse_erasing(TokenReader& reader, Verb verb) {
  Statement made;
  made.verb = verb;
  if (!reader.next_is("FROM") && !reader.next_is("WHERE")) return reader.unexpected("FROM, WHERE");
  EC_TRY(parse_from(reader, made));
  EC_TRY(parse_where(reader, made.where));
  // InfluxDB names this place, wherever the name stands.
  for (const Source& source : made.sources) {
    if (!source.policy.empty())
      return TokenReader::wrong("retention policy not supported at line 1, char 1");
    if (!source.database.empty())
      return TokenReader::wrong("database not supported at line 1, char 1");
  }
  return made;
}

Result<Statement> parse_drop(TokenReader& reader) {
  if (reader.take_if("RETENTION")) return parse_policy_statement(reader, Verb::DropRetentionPolicy);
  Statement made;
  if (reader.take_if("DATABASE")) {
    made.verb = Verb::DropDatabase;
    EC_ASSIGN_OR_RETURN(made.name, parse_database_name(reader, {"EXISTS"}));
    return made;
  }
  if (reader.take_if("MEASUREMENT")) {
    made.verb = Verb::DropMeasurement;
    EC_ASSIGN_OR_RETURN(made.name, reader.expect_name());
    return made;
  }
  if (reader.take_if("SERIES")) return parse_erasing(reader, Verb::DropSeries);
  for (const std::string_view other : {"CONTINUOUS", "SHARD", "SUBSCRIPTION", "USER"}) {
    if (reader.take_if(other)) return parse_not_offered(reader, "DROP " + std::string(other));
  }
  return reader.unexpected(
      "CONTINUOUS, DATABASE, MEASUREMENT, RETENTION, SERIES, SHARD, SUBSCRIPTION, USER");
}

Result<Statement> parse_delete(TokenReader& reader) {
  return parse_erasing(reader, Verb::Delete);
}

Result<Statement> parse_statement(TokenReader& reader) {
  Statement made;
  if (reader.take_if("SELECT")) {
    made.verb = Verb::Select;
    EC_ASSIGN_OR_RETURN(made.select, parse_select(reader));
    return made;
  }
  if (reader.take_if("EXPLAIN")) {
    made.verb = reader.take_if("ANALYZE") ? Verb::ExplainAnalyze : Verb::Explain;
    EC_TRY(reader.expect("SELECT"));
    EC_ASSIGN_OR_RETURN(made.select, parse_select(reader));
    return made;
  }
  if (reader.take_if("SHOW")) return parse_show(reader);
  if (reader.take_if("CREATE")) return parse_create(reader);
  if (reader.take_if("DROP")) return parse_drop(reader);
  if (reader.take_if("DELETE")) return parse_delete(reader);
  if (reader.take_if("ALTER")) {
    EC_TRY(reader.expect("RETENTION"));
    return parse_policy_statement(reader, Verb::AlterRetentionPolicy);
  }
  if (reader.take_if("KILL")) {
    EC_TRY(reader.expect("QUERY"));
    made.verb = Verb::KillQuery;
    EC_ASSIGN_OR_RETURN(made.number, reader.expect_integer());
    if (reader.take_if("ON")) {
      EC_ASSIGN_OR_RETURN(made.name, reader.expect_name());
    }
    return made;
  }
  if (reader.take_if("SET")) return parse_not_offered(reader, "SET PASSWORD");
  for (const std::string_view other : {"GRANT", "REVOKE"}) {
    if (reader.take_if(other)) return parse_not_offered(reader, other);
  }
  return reader.unexpected(
      "SELECT, DELETE, SHOW, CREATE, DROP, EXPLAIN, GRANT, REVOKE, ALTER, SET, KILL");
}

// Names and texts of a statement come back in its answer.
Status check_utf8(std::string_view text) {
  const std::size_t good = wire::valid_utf8_bytes(text);
  if (good == text.size()) return ok();
  Token bad;
  for (const char c : text.substr(0, good)) {
    const bool is_inside = (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
    if (!is_inside) ++bad.at.column;
    if (c != '\n') continue;
    ++bad.at.line;
    bad.at.column = 0;
  }
  bad.kind = TokenKind::Unknown;
  return TokenReader::wrong(bad, "a byte that is no UTF-8");
}

}  // namespace

Result<Statements> parse_statements(std::string_view text, std::size_t statements_max,
                                    const Parameters& parameters) {
  EC_TRY(check_utf8(text));
  TokenReader reader(text, parameters);
  Statements statements;
  for (;;) {
    while (reader.take_if_symbol(";")) continue;
    if (reader.peek().kind == TokenKind::End) break;
    if (statements.size() == statements_max) {
      return Status(StatusCode::LimitReached,
                    "error parsing query: more than limits.query-statements = " +
                        std::to_string(statements_max) + " statements");
    }
    reader.begin_statement();
    EC_ASSIGN_OR_RETURN(Statement statement, parse_statement(reader));
    statements.push_back(std::move(statement));
    if (reader.peek().kind != TokenKind::End && !reader.peek().is_symbol(";"))
      return reader.unexpected(";");
  }
  return statements;
}

}  // namespace edgecase::influxql
