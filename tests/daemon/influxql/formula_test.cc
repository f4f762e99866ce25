#include "influxql/formula.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "influxql/parser.h"

using namespace edgecase;
using influxql::Cell;
using influxql::Formula;

namespace {

// The names i, f, t, b and n: 7, 2.5, 'x', true, null.
std::vector<Cell> formula_cells() {
  std::vector<Cell> cells(5);
  cells[0].kind = Cell::Kind::Integer;
  cells[0].integer = 7;
  cells[1].kind = Cell::Kind::Float;
  cells[1].number = 2.5;
  cells[2].kind = Cell::Kind::Text;
  cells[2].text = "x";
  cells[3].kind = Cell::Kind::Bool;
  cells[3].integer = 1;
  return cells;
}

Result<Formula> formula_of(const std::string& text) {
  const auto parsed = influxql::parse_statements("SELECT a FROM m WHERE " + text, 1);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().to_string());
  return Formula::compile(*parsed->front().select->where, [](const influxql::Expr& named) {
    return Result<std::size_t>(std::string("iftbn").find(named.text));
  });
}

std::string formula_result(const std::string& text) {
  const auto formula = formula_of(text);
  REQUIRE_MESSAGE(formula.ok(), formula.status().to_string());
  Cell cell;
  formula->evaluate(formula_cells(), cell);
  switch (cell.kind) {
    case Cell::Kind::Null: return "null";
    case Cell::Kind::Bool: return cell.integer != 0 ? "true" : "false";
    case Cell::Kind::Float: return "float " + std::to_string(cell.number).substr(0, 5);
    case Cell::Kind::Text: return "'" + cell.text + "'";
    default: return std::to_string(cell.integer);
  }
}

}  // namespace

TEST_CASE("formula: values of different types come to what InfluxDB makes of them") {
  struct Row {
    std::string text, result;
  };
  for (const Row& row : std::vector<Row>{
           {"i + 1", "8"},
           {"i / 2", "float 3.500"},
           {"i / 0", "float 0.000"},
           {"i % 0", "0"},
           {"i + f", "float 9.500"},
           {"f / 0", "float 0.000"},
           {"i - 2 - 1", "4"},
           {"i & 3", "3"},
           {"i + 9223372036854775807", "-9223372036854775802"},
           {"n + 1", "null"},
           {"n = 1", "false"},
           {"n != 1", "false"},
           {"n = false", "true"},
           {"t = 'x'", "true"},
           {"t != 'x'", "false"},
           {"t = 1", "false"},
           {"t != 1", "false"},
           {"t =~ /^x$/", "true"},
           {"t !~ /y/", "true"},
           {"i =~ /7/", "false"},
           {"i = 7 AND (f > 3 OR b = true)", "true"},
           {"f < i", "true"},
       }) {
    CHECK_MESSAGE(formula_result(row.text) == row.result, row.text);
  }
}

TEST_CASE("formula: what is known before there are rows rules out, and no more") {
  const std::vector<Cell> cells = formula_cells();
  const auto may = [&](const std::string& text) {
    const auto formula = formula_of(text);
    REQUIRE(formula.ok());
    return formula->may_hold(cells, {0, 0, 1, 0, 0});  // the text alone
  };
  CHECK(may("t = 'x'"));
  CHECK_FALSE(may("t = 'y'"));
  CHECK(may("t = 'y' OR i = 100"));
  CHECK_FALSE(may("t = 'y' AND i = 7"));
  CHECK(may("i = 100"));
  CHECK(may("t = 'y' OR t = 'x'"));
  CHECK_FALSE(may("t = 'y' OR t = 'z'"));
  CHECK(may("t = 'y' OR i = 1 OR t = 'z'"));
  CHECK_FALSE(may("t != 'x' AND t != 'y'"));
}

TEST_CASE("formula: many texts of one name are asked for at once, and mean what each would") {
  struct Row {
    std::string text, result;
  };
  for (const Row& row : std::vector<Row>{
           {"t = 'y' OR t = 'x'", "true"},
           {"t = 'y' OR 'x' = t OR t = 'z'", "true"},
           {"t = 'y' OR t = 'y'", "false"},
           {"i = 'x' OR i = 'y'", "false"},
           {"n = 'x' OR n = ''", "false"},
           {"n != 'x' AND n != 'y'", "false"},
           {"t != 'y' AND t != 'z'", "true"},
           {"t != 'y' AND t != 'x'", "false"},
           {"t = 'y' OR i = 7 OR t = 'z'", "true"},
           {"t = 'y' OR (i = 7 AND t = 'x') OR n = 'x'", "true"},
           {"t = 'x' AND (t = 'y' OR i = 8 OR t = 'z')", "false"},
           // What is no comparison stays where it stands.
           {"i OR t = 'x' OR t = 'y'", "false"},
           {"t = 'x' OR t = 'y' OR i", "null"},
           {"b OR t = 'y' OR t = 'z'", "true"},
       }) {
    CHECK_MESSAGE(formula_result(row.text) == row.result, row.text);
  }
}

TEST_CASE("formula: a pattern that is none, or needs too much memory, is an error") {
  CHECK_FALSE(formula_of("t =~ /(/").ok());
  CHECK_FALSE(formula_of("t =~ /((((a{100}){100}){100}){100})/").ok());
}
