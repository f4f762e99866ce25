#include "influxql/statement.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace edgecase;
using namespace edgecase::influxql;

namespace {

Result<std::vector<Statement>> parse(std::string_view text, const Parameters& parameters = {}) {
  return parse_statements(text, 64, parameters);
}

// A tree in brackets, one pair a chain, call or group.
std::string shape(const Expr& e) {
  std::string text;
  switch (e.kind) {
    case ExprKind::Chain:
      text = "[";
      for (std::size_t i = 0; i < e.operands.size(); ++i) {
        if (i > 0) text += " " + std::string(text_of(e.operators[i])) + " ";
        text += shape(e.operands[i]);
      }
      return text + "]";
    case ExprKind::Call:
      text = e.text + "(";
      for (std::size_t i = 0; i < e.operands.size(); ++i)
        text += (i > 0 ? "," : "") + shape(e.operands[i]);
      return text + ")";
    case ExprKind::Group: return "(" + shape(e.operands[0]) + ")";
    case ExprKind::Integer:
    case ExprKind::Duration:
    case ExprKind::Bool: return std::to_string(e.integer);
    case ExprKind::Unsigned: return std::to_string(static_cast<std::uint64_t>(e.integer)) + "u";
    case ExprKind::Float: return "f" + std::to_string(e.number);
    case ExprKind::Text: return "'" + e.text + "'";
    case ExprKind::Regex: return "/" + e.text + "/";
    case ExprKind::Wildcard: return "*";
    case ExprKind::Distinct: return "distinct " + e.text;
    case ExprKind::Name: return e.text + (e.cast == Cast::None ? "" : "::");
  }
  return {};
}

std::string shape_of_field(const std::string& text) {
  const auto parsed = parse("SELECT " + text + " FROM m");
  if (!parsed.ok()) return parsed.status().message();
  return shape((*parsed)[0].select->fields[0].value);
}

}  // namespace

TEST_CASE("influxql: operators bind as in InfluxDB, and those of one rank lie in one node") {
  struct Case {
    const char* text;
    const char* want;
  };
  for (const Case& c : {Case{"a", "a"},
                        Case{"a + b * c - d", "[a + [b * c] - d]"},
                        Case{"(a + b) * -c", "[([a + b]) * [-1 * c]]"},
                        Case{"a & b | c ^ d % 2", "[[a & b] | c ^ [d % 2]]"},
                        Case{"-1", "-1"},
                        Case{"- 1.5", "f-1.500000"},
                        Case{"+2", "2"},
                        Case{"-9223372036854775808", "-9223372036854775808"},
                        Case{"9223372036854775808", "9223372036854775808u"},
                        Case{"-1h30m", "-5400000000000"},
                        Case{"3µ", "3000"},
                        Case{"3u", "3000"},
                        Case{"MEAN(a)", "mean(a)"},
                        Case{"top(a, host, 3)", "top(a,host,3)"},
                        Case{"count(DISTINCT a)", "count(distinct a)"},
                        Case{"DISTINCT(a)", "distinct(a)"},
                        Case{"DISTINCT a", "distinct a"},
                        Case{"mean(/^a\\/b/)", "mean(/^a/b/)"},
                        Case{"/x\\.y/", "/x\\.y/"},
                        Case{"*::field", "*"},
                        Case{"a::float", "a::"},
                        Case{"\"a b\".c", "a b.c"},
                        Case{"'it\\'s'", "'it's'"},
                        Case{"true", "1"},
                        Case{"a -- b\n", "a"},
                        Case{"a /* b */", "a"}}) {
    CAPTURE(c.text);
    CHECK(shape_of_field(c.text) == c.want);
  }
}

TEST_CASE("influxql: every part of a SELECT is kept") {
  const auto parsed = parse(
      "SELECT mean(v) AS \"m n\", w FROM a, \"db\"..b, db.rp./c/, (SELECT x FROM y) WHERE host =~ "
      "/pi/ AND time > now() - 1h GROUP BY time(1m, -5s), host, * FILL(previous) ORDER BY time "
      "DESC LIMIT 1 OFFSET 2 SLIMIT 3 SOFFSET 4 TZ('Europe/Berlin')");
  REQUIRE(parsed.ok());
  const SelectStatement& select = *(*parsed)[0].select;
  CHECK(select.fields.size() == 2);
  CHECK(select.fields[0].alias == "m n");
  REQUIRE(select.sources.size() == 4);
  CHECK(select.sources[0].name == "a");
  CHECK(select.sources[1].database == "db");
  CHECK(select.sources[1].policy.empty());
  CHECK(select.sources[1].name == "b");
  CHECK(select.sources[2].policy == "rp");
  CHECK(select.sources[2].regex == "c");
  REQUIRE(select.sources[3].inner != nullptr);
  CHECK(select.sources[3].inner->sources[0].name == "y");
  CHECK(shape(*select.where) == "[[host =~ /pi/] AND [time > [now() - 3600000000000]]]");
  CHECK(select.group_by.size() == 3);
  CHECK(shape(select.group_by[0]) == "time(60000000000,-5000000000)");
  CHECK(select.fill == Fill::Previous);
  CHECK(select.is_descending);
  CHECK(select.limit == 1);
  CHECK(select.offset == 2);
  CHECK(select.series_limit == 3);
  CHECK(select.series_offset == 4);
  CHECK(select.time_zone == "Europe/Berlin");
}

TEST_CASE("influxql: what a fill may be") {
  struct Case {
    const char* text;
    Fill want;
    double number;
  };
  for (const Case& c :
       {Case{"null", Fill::Null, 0}, Case{"none", Fill::None, 0}, Case{"linear", Fill::Linear, 0},
        Case{"-1", Fill::Number, -1}, Case{"2.5", Fill::Number, 2.5}}) {
    CAPTURE(c.text);
    const auto parsed =
        parse("SELECT mean(v) FROM m GROUP BY time(1m) fill(" + std::string(c.text) + ")");
    REQUIRE(parsed.ok());
    const SelectStatement& select = *(*parsed)[0].select;
    CHECK(select.has_fill);
    CHECK(select.fill == c.want);
    CHECK(select.fill_number == c.number);
  }
}

TEST_CASE("influxql: the other statements, by their verb") {
  struct Case {
    const char* text;
    Verb want;
  };
  for (const Case& c :
       {Case{"show databases", Verb::ShowDatabases},
        Case{"SHOW RETENTION POLICIES ON d", Verb::ShowRetentionPolicies},
        Case{"SHOW MEASUREMENTS ON d WITH MEASUREMENT =~ /a/ WHERE x = 'y' LIMIT 2",
             Verb::ShowMeasurements},
        Case{"SHOW SERIES FROM m WHERE x = 'y' OFFSET 2", Verb::ShowSeries},
        Case{"SHOW SERIES CARDINALITY", Verb::ShowSeriesCardinality},
        Case{"SHOW SERIES EXACT CARDINALITY", Verb::ShowSeriesCardinality},
        Case{"SHOW TAG KEYS FROM m", Verb::ShowTagKeys},
        Case{"SHOW TAG VALUES WITH KEY IN (a, \"b\") ORDER BY ASC", Verb::ShowTagValues},
        Case{"SHOW TAG VALUES EXACT CARDINALITY WITH KEY = a", Verb::ShowTagValuesCardinality},
        Case{"SHOW FIELD KEYS FROM m", Verb::ShowFieldKeys},
        Case{"SHOW FIELD KEY CARDINALITY", Verb::ShowFieldKeyCardinality},
        Case{"SHOW QUERIES", Verb::ShowQueries},
        Case{"CREATE DATABASE d", Verb::CreateDatabase},
        Case{"CREATE DATABASE IF NOT EXISTS \"d\"", Verb::CreateDatabase},
        Case{"CREATE DATABASE if", Verb::CreateDatabase},
        Case{"CREATE DATABASE d WITH DURATION 1d REPLICATION 1 NAME x", Verb::CreateDatabase},
        Case{"DROP DATABASE IF EXISTS d", Verb::DropDatabase},
        Case{"DROP DATABASE default", Verb::DropDatabase},
        Case{"CREATE RETENTION POLICY p ON d DURATION INF REPLICATION 1 DEFAULT",
             Verb::CreateRetentionPolicy},
        Case{"ALTER RETENTION POLICY p ON d SHARD DURATION 1h", Verb::AlterRetentionPolicy},
        Case{"DROP RETENTION POLICY p ON d", Verb::DropRetentionPolicy},
        Case{"DELETE WHERE time < 5", Verb::Delete},
        Case{"DROP SERIES FROM m", Verb::DropSeries},
        Case{"DROP MEASUREMENT \"a b\"", Verb::DropMeasurement},
        Case{"KILL QUERY 5", Verb::KillQuery},
        Case{"EXPLAIN ANALYZE SELECT a FROM b", Verb::ExplainAnalyze},
        Case{"SHOW SHARDS", Verb::NotOffered},
        Case{"CREATE USER u WITH PASSWORD ';'", Verb::NotOffered},
        Case{"CREATE CONTINUOUS QUERY q ON d BEGIN SELECT a INTO b FROM c END",
             Verb::NotOffered}}) {
    CAPTURE(c.text);
    const auto parsed = parse(c.text);
    REQUIRE(parsed.ok());
    REQUIRE(parsed->size() == 1);
    CHECK((*parsed)[0].verb == c.want);
  }
}

TEST_CASE("influxql: mistakes are named with their place, in InfluxDB's words") {
  struct Case {
    std::string text;
    const char* want;
  };
  for (const Case& c :
       {Case{"SELECT 'é\n\xC3\xA9\xFF' FROM m", "a byte that is no UTF-8 at line 2, char 2"},
        Case{"\xC3", "a byte that is no UTF-8 at line 1, char 1"},
        Case{"SELECT", "found EOF, expected identifier, string, number, bool at line 1, char 8"},
        Case{"SELECT v", "found EOF, expected FROM at line 1, char 10"},
        Case{"SELECT v FROM m LIMIT -1", "found -, expected integer at line 1, char 23"},
        Case{"SELECT\n v FROM m x", "found x, expected ; at line 2, char 11"},
        Case{"SELECT name FROM m",
             "found NAME, expected identifier, string, number, bool at line 1, char 8"},
        Case{"SELECT é FROM m",
             "found é, expected identifier, string, number, bool at line 1, char 8"},
        Case{"SELECT v FROM m WHERE x =~ 'y'", "found y, expected regex at line 1, char 27"},
        Case{"SELECT v FROM 'm'", "found m, expected identifier at line 1, char 14"},
        Case{"SELECT v FROM m LIMIT\n'x'", "found x, expected integer at line 2, char 1"},
        Case{"SELECT 'v FROM m", "no closing quote behind v FROM m at line 1, char 7"},
        Case{"SELECT '\\q' FROM m", "no such escape"},
        Case{"SELECT 'v\\", "no closing quote"},
        Case{"SELECT \"v\\", "no closing quote"},
        Case{"SELECT $\"v\\", "no closing quote"},
        Case{"SELECT v FROM /m\\", "bad regex"},
        Case{"SELECT v FROM m WHERE x =~ /y", "bad regex: no closing slash at line 1, char 27"},
        Case{"SHOW MEASUREMENTS WITH MEASUREMENT =",
             "found EOF, expected identifier at line 1, char 38"},
        Case{"SELECT v FROM m tz()", "tz requires exactly one argument"},
        Case{"SELECT v /* FROM m", "comment without an end"},
        Case{"SELECT v FROM m GROUP BY time(1x)", "invalid duration"},
        Case{"SELECT 99999999999999999999 FROM m", "unable to parse integer at line 1, char 8"},
        Case{"SELECT v FROM m ORDER BY v", "only ORDER BY time supported at this time"},
        Case{"SELECT mean(v) FROM m GROUP BY time(1m) fill(x)",
             "expected number argument in fill()"},
        Case{"SELECT mean(v) FROM m GROUP BY time(1m) fill(x",
             "found EOF, expected ) at line 1, char 48"},
        Case{"SELECT mean(v) FROM m GROUP BY time(1m) fill(1,2)", "fill requires an argument"},
        Case{"SELECT mean(v) FROM m GROUP BY time(1m) fill", "fill must be a function call"},
        Case{"SELECT v FROM m tz", "tz must be a function call"},
        Case{"SELECT mean(v) FROM m GROUP BY time(1m) fill(", "bool at line 1, char 47"},
        Case{"SELECT mean( ",
             "found EOF, expected identifier, string, number, bool at line 1, char 14"},
        Case{"SHOW TAG VALUES WITH KEY IN (a,",
             "found EOF, expected identifier at line 1, char 32"},
        Case{"SHOW TAG VALUES WITH KEY IN (a", "found EOF, expected ) at line 1, char 32"},
        Case{"SELECT mean (v) FROM m", "found (, expected FROM"},
        Case{"SELECT $p FROM m", "missing parameter: p"},
        Case{"SHOW FOO", "found FOO, expected CONTINUOUS, DATABASES"},
        Case{"FOO", "found FOO, expected SELECT, DELETE, SHOW"},
        Case{"DROP SERIES", "found EOF, expected FROM, WHERE at line 1, char 13"},
        Case{"CREATE RETENTION POLICY p ON d DURATION 1h", "expected REPLICATION"},
        Case{"ALTER RETENTION POLICY p ON d DURATION 1h DURATION 2h",
             "found duplicate DURATION option"},
        Case{"ALTER RETENTION POLICY p ON d DEFAULT DEFAULT", "found duplicate DEFAULT option"},
        Case{"SELECT " + std::string(1'000, '(') + "v", "at most 64 deep"}}) {
    CAPTURE(c.text.substr(0, 80));
    const auto parsed = parse(c.text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.status().code() == StatusCode::InvalidArgument);
    CHECK(parsed.status().message().starts_with("error parsing query: "));
    CHECK(parsed.status().message().find(c.want) != std::string::npos);
  }
}

TEST_CASE("influxql: however long a condition is, its tree is not deep") {
  std::string text = "SELECT v FROM m WHERE a = 'x'";
  for (int i = 0; i < 10'000; ++i) text += " OR a = 'y'";
  const auto parsed = parse(text);
  REQUIRE(parsed.ok());
  CHECK((*parsed)[0].select->where->operands.size() == 10'001);
  for (int i = 0; i < 30'000; ++i) text += " OR a = 'y'";
  CHECK(parse(text).status().message().find("at most 65536") != std::string::npos);
}

TEST_CASE("influxql: parameters stand for values and names") {
  const Parameters parameters = {{"t", {Parameter::Kind::Text, "a'b"}},
                                 {"n", {Parameter::Kind::Integer, "-15"}},
                                 {"f", {Parameter::Kind::Number, "1.5e3"}},
                                 {"b", {Parameter::Kind::Bool, "true"}}};
  const auto parsed =
      parse("SELECT v FROM m WHERE a = $t AND b > $n AND c = $b AND d < $f", parameters);
  REQUIRE(parsed.ok());
  CHECK(shape(*(*parsed)[0].select->where) ==
        "[[a = 'a'b'] AND [b > -15] AND [c = 1] AND [d < f1500.000000]]");
}

TEST_CASE("influxql: a parameter is the word that it stands for, wherever a word may stand") {
  using Of = Parameter::Kind;
  const Parameters parameters = {{"re", {Of::Regex, "a/b"}},
                                 {"field", {Of::Name, "a \"b"}},
                                 {"w", {Of::Duration, "90s"}},
                                 {"n", {Of::Integer, "3"}},
                                 {"less", {Of::Integer, "-9223372036854775808"}},
                                 {"fn", {Of::Name, "mean"}},
                                 {"text", {Of::Text, "a"}},
                                 {"off", {Of::Duration, "1x"}}};
  const auto parsed = parse(
      "SELECT $fn($field), $re FROM $field, $re WHERE h =~ $re AND n > $less GROUP BY "
      "time($w), $field LIMIT $n",
      parameters);
  REQUIRE(parsed.ok());
  const SelectStatement& select = *(*parsed)[0].select;
  CHECK(shape(select.fields[0].value) == "mean(a \"b)");
  CHECK(shape(select.fields[1].value) == "/a/b/");
  CHECK(select.sources[0].name == "a \"b");
  CHECK(select.sources[1].regex == "a/b");
  CHECK(shape(*select.where) == "[[h =~ /a/b/] AND [n > -9223372036854775808]]");
  CHECK(shape(select.group_by[0]) == "time(90000000000)");
  CHECK(select.limit == 3);
  for (const char* text :
       {"SELECT v FROM m LIMIT $less", "SELECT v FROM m LIMIT $text", "SELECT v FROM $text",
        "SELECT v FROM m GROUP BY time($off)", "SELECT v FROM m WHERE h =~ $text",
        "SELECT $none FROM m", "SELECT v FROM m WHERE h =~ $none", "$none"}) {
    CAPTURE(text);
    const auto wrong = parse(text, parameters);
    REQUIRE(!wrong.ok());
    CHECK(wrong.status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("influxql: a condition is no field") {
  for (const char* text : {"SELECT v > 3 FROM m", "SELECT\n (v =~ /a/) FROM m",
                           "SELECT abs(a AND b) FROM m", "SELECT x FROM (SELECT v != 1 FROM m)"}) {
    CAPTURE(text);
    const auto parsed = parse(text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.status().message().find(" in SELECT clause at line ") != std::string::npos);
  }
  CHECK(parse("SELECT v > 3 FROM m").status().message() ==
        "error parsing query: invalid operator > in SELECT clause at line 1, char 8; operator is "
        "intended for WHERE clause");
}

TEST_CASE("influxql: statements are divided by semicolons, as many as are allowed") {
  CHECK(parse("").value().empty());
  CHECK(parse(" ; ;; -- nothing").value().empty());
  CHECK(parse("SHOW DATABASES;;SHOW DATABASES;").value().size() == 2);
  CHECK(parse_statements("SHOW DATABASES;SHOW DATABASES", 1).status().code() ==
        StatusCode::LimitReached);
}

// Each end is the end of its memory: AddressSanitizer finds a look behind it.
TEST_CASE("influxql: a statement may end anywhere") {
  const std::string text =
      "SELECT \"a\\\"b\", 'c\\'d', $\"e\\n\", -1.5, 1h30m, 2\xC2\xB5 /* f */ FROM /g\\/h\\d/ -- i\n"
      "WHERE j =~ /k/ AND l != 3u GROUP BY time(1m), * fill(previous) tz('m')";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::vector<char> exact(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    const auto parsed = parse_statements({exact.data(), exact.size()}, 8);
    CHECK((parsed.ok() || !parsed.status().message().empty()));
  }
}
