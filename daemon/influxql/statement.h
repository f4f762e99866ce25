// A statement of InfluxQL as a tree. Made by parse_statements(); owned by whoever holds it. The
// tree's depth is bounded (kNestingMax), whatever the text: operands of one precedence lie side by
// side in one node, so `a OR b OR c` is one level deep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "influxql/token_reader.h"

namespace edgecase::influxql {

enum class ExprKind : unsigned char {
  Name,      // of a field or a tag; `text`, with `cast` behind `::`
  Call,      // `text` is the function, lower case
  Chain,     // operands[0] operators[1] operands[1] operators[2] …, all of one precedence
  Group,     // (…): operands[0]
  Float,     // `number`
  Integer,   // `integer`
  Unsigned,  // over INT64_MAX: the bits in `integer`
  Text,      // `text`
  Bool,      // `integer` is 0 or 1
  Duration,  // `integer`, nanoseconds
  Regex,     // `text`
  Wildcard,  // *, *::field, *::tag: `cast`
  Distinct,  // DISTINCT name: `text`
};

// `= != =~ !~ < <= > >=` compare, `AND OR` join, the rest count.
enum class Operator : unsigned char {
  None,
  Or,
  And,
  Equal,
  NotEqual,
  Matches,
  NotMatches,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
  Add,
  Subtract,
  BitOr,
  BitXor,
  Multiply,
  Divide,
  Modulo,
  BitAnd,
};
std::string_view text_of(Operator op);
// Or 1, And 2, comparisons 3, sums 4, products 5; None 0.
int precedence_of(Operator op);

enum class Cast : unsigned char { None, Float, Integer, Unsigned, String, Boolean, Field, Tag };

struct Expr {
  ExprKind kind = ExprKind::Name;
  Position at;
  std::string text;
  Cast cast = Cast::None;
  double number = 0;
  std::int64_t integer = 0;
  std::vector<Expr> operands;       // of a call: its arguments
  std::vector<Operator> operators;  // of a chain: as many as operands, the first None
};

struct SelectStatement;

// A pointer to one that is owned, and copied with its owner.
template <typename T>
struct Owned : std::unique_ptr<T> {
  using std::unique_ptr<T>::unique_ptr;
  Owned() = default;
  Owned(std::unique_ptr<T> owned) : std::unique_ptr<T>(std::move(owned)) {}
  Owned(Owned&&) = default;
  Owned& operator=(Owned&&) = default;
  Owned(const Owned& from) : std::unique_ptr<T>(from ? std::make_unique<T>(*from) : nullptr) {}
  Owned& operator=(const Owned& from) { return *this = Owned(from); }
  ~Owned() = default;
};

// One of what is behind FROM: a measurement by name or expression, or a statement in brackets.
struct Source {
  std::string database, policy;
  std::string name;
  std::optional<std::string> regex;
  Owned<SelectStatement> inner;
};

struct Field {
  Expr value;
  std::string alias;  // empty: none
};

enum class Fill : unsigned char { Null, None, Previous, Linear, Number };

struct SelectStatement {
  std::vector<Field> fields;
  std::optional<Source> into;
  std::vector<Source> sources;
  std::optional<Expr> where;
  std::vector<Expr> group_by;  // names, wildcards, expressions, time(…)
  Fill fill = Fill::Null;
  bool has_fill = false;
  double fill_number = 0;
  bool fill_is_integer = false;
  bool is_descending = false;
  std::int64_t limit = 0, offset = 0, series_limit = 0, series_offset = 0;  // 0: none
  std::string time_zone;                                                    // empty: UTC
};

enum class Verb : unsigned char {
  Select,
  Explain,         // select
  ExplainAnalyze,  // select
  ShowDatabases,
  ShowRetentionPolicies,  // database
  ShowMeasurements,       // database, match, where, limit, offset
  ShowSeries,             // database, sources, where, limit, offset
  ShowTagKeys,
  ShowTagValues,  // also key
  ShowFieldKeys,
  ShowMeasurementCardinality,  // also is_exact, group_by
  ShowSeriesCardinality,
  ShowTagKeyCardinality,
  ShowTagValuesCardinality,
  ShowFieldKeyCardinality,
  ShowQueries,
  CreateDatabase,         // name, policy
  DropDatabase,           // name
  CreateRetentionPolicy,  // database, name, policy
  AlterRetentionPolicy,
  DropRetentionPolicy,  // database, name
  Delete,               // sources, where
  DropSeries,           // sources, where
  DropMeasurement,      // name
  KillQuery,            // number
  NotOffered,           // InfluxQL has it and this does not: name
};

// What CREATE DATABASE and retention policies say; what was not given is unset. A duration of 0 is
// forever.
struct Policy {
  std::optional<std::int64_t> duration_ns, shard_duration_ns, replication;
  std::string name;
  bool is_default = false;
};

// `WITH KEY = x`, `=~ /x/`, `IN (x, y)` and `WITH MEASUREMENT = x`.
struct NameMatch {
  Operator op = Operator::None;  // None: every name
  std::vector<std::string> names;
  std::string regex;
};

struct Statement {
  Verb verb = Verb::NotOffered;
  std::string name;
  std::string database;  // behind ON; empty: none
  std::unique_ptr<SelectStatement> select;
  std::vector<Source> sources;
  std::optional<Expr> where;
  std::vector<Expr> group_by;
  NameMatch match;
  Policy policy;
  bool is_exact = false;
  bool is_descending = false;
  std::int64_t number = 0;
  std::int64_t limit = 0, offset = 0;  // 0: none
};

// All statements of a text, at least one. Grammar and messages are those of InfluxDB 1.8, so that
// what its clients look for in an error is there: "found X, expected Y at line 1, char 8". Bounded:
// bytes of the text by the caller, statements, nesting, nodes. No state. InvalidArgument: "error
// parsing query: …" with the place; also of a byte that is no UTF-8. LimitReached: more than
// `statements_max`.
Result<std::vector<Statement>> parse_statements(std::string_view text, std::size_t statements_max,
                                                const Parameters& parameters = {});

// Parses what several statements of InfluxQL have, for parser.cc: clauses (clauses.cc) and
// expressions (expression.cc). Each takes its words, or, where they are not there and need not be,
// nothing.

enum class Inner : unsigned char { Allowed, NotAllowed };

// Behind the word FROM; statements in brackets only where `inner` allows them.
Result<std::vector<Source>> parse_sources(TokenReader& reader, Inner inner);
Status parse_from(TokenReader& reader, Statement& made);
Status parse_where(TokenReader& reader, std::optional<Expr>& where);
Status parse_group_by(TokenReader& reader, std::vector<Expr>& dimensions);
// LIMIT and the like, by its keyword.
Status parse_count(TokenReader& reader, std::string_view keyword, std::int64_t& count);
Status parse_on(TokenReader& reader, std::string& database);
// What SHOW statements end with, in this order: ORDER BY, LIMIT, OFFSET.
Status parse_show_rest(TokenReader& reader, Statement& made);
// Behind the word SELECT.
Result<std::unique_ptr<SelectStatement>> parse_select(TokenReader& reader);

// What stands in a field, a condition or GROUP BY.
Result<Expr> parse_expression(TokenReader& reader);
// The same, or a regular expression alone.
Result<Expr> parse_expression_or_regex(TokenReader& reader);

}  // namespace edgecase::influxql
