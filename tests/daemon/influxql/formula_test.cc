#include "influxql/formula.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "influxql/statement.h"

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

TEST_CASE("formula: many rows come to what each of them does") {
  // i, f and b of four rows, the last of which has nothing; t and n of all.
  influxql::NumberRows rows;
  rows.times_ns = {1, 2, 3, 4};
  rows.columns.resize(5);
  const Cell::Kind kinds[] = {Cell::Kind::Integer, Cell::Kind::Float, Cell::Kind::Text,
                              Cell::Kind::Bool, Cell::Kind::Null};
  for (std::size_t c = 0; c < 5; ++c) rows.columns[c].kind = kinds[c];
  rows.columns[2].text = "x";
  const std::int64_t whole[] = {7, 0, -3};
  const double broken[] = {2.5, 0, -1e300};
  for (std::size_t i = 0; i < 3; ++i) {
    rows.columns[0].add(static_cast<std::uint64_t>(whole[i]));
    rows.columns[1].add(std::bit_cast<std::uint64_t>(broken[i]));
    rows.columns[3].add(std::uint64_t{i % 2});
  }
  for (const unsigned c : {0u, 1u, 3u}) rows.columns[c].add(Cell());

  for (const std::string text : {"i + 1",
                                 "i / 2",
                                 "2 / i",
                                 "i % 0",
                                 "i + f",
                                 "f / 0",
                                 "f - i - 1",
                                 "i & 3",
                                 "f % i",
                                 "n + 1",
                                 "n = 1",
                                 "n = false",
                                 "t = 'x'",
                                 "t != 1",
                                 "i =~ /7/",
                                 "t =~ /x/",
                                 "i = 7 AND (f > 3 OR b = true)",
                                 "f < i",
                                 "f >= 0 AND t = 'x'",
                                 "f != 2.5 OR t = 'y'",
                                 "t = 'y' OR t = 'x'",
                                 "i = 'x' OR i = 'y'",
                                 "b OR t = 'y' OR t = 'z'",
                                 "b AND f < 3",
                                 "i OR t = 'x'",
                                 "abs(f) * 2",
                                 "pow(i, 2) + n",
                                 "sqrt(f)",
                                 "round(i) / 3",
                                 "i > n",
                                 "f * f * f",
                                 "f = 2.5",
                                 "i <= f",
                                 "(f > 1) = b"}) {
    CAPTURE(text);
    const auto formula = formula_of(text);
    REQUIRE_MESSAGE(formula.ok(), formula.status().to_string());
    const bool gives_numbers =
        formula->gives_numbers([](std::size_t place) { return place != 2 && place != 3; });
    influxql::NumberRows::Column made;
    if (gives_numbers) {
      formula->evaluate(rows, made);
      REQUIRE(made.bits.size() == rows.size());
    }
    std::vector<std::uint32_t> which, wanted;
    formula->find_true(rows, which);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      CAPTURE(row);
      std::vector<Cell> cells(5);
      for (std::size_t c = 0; c < 5; ++c) rows.columns[c].get(row, cells[c]);
      if (formula->is_true(cells)) wanted.push_back(row);
      if (!gives_numbers) continue;
      Cell want, got;
      formula->evaluate(cells, want);
      made.get(row, got);
      // No number is none in an answer.
      const bool is_none = want.kind == Cell::Kind::Float && std::isnan(want.number);
      CHECK(got.kind == (is_none ? Cell::Kind::Null : want.kind));
      if (got.kind == Cell::Kind::Float) CHECK(got.number == want.number);
      if (got.kind == Cell::Kind::Integer) CHECK(got.integer == want.integer);
    }
    CHECK(which == wanted);
  }
}

TEST_CASE("formula: a pattern that is none, or needs too much memory, is an error") {
  CHECK_FALSE(formula_of("t =~ /(/").ok());
  CHECK_FALSE(formula_of("t =~ /((((a{100}){100}){100}){100})/").ok());
}
