// Expressions of InfluxQL over cells, made ready to be asked for each row: of fields as of
// conditions. What values of different types come to is InfluxDB's way: integers wrap, `/` of
// integers is a float, division by zero is 0, null makes null. Immutable once made; any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "influxql/points.h"
#include "influxql/statement.h"

namespace re2 {
class RE2;
}

namespace edgecase::influxql {

// A regular expression of InfluxQL: found anywhere in a text, in linear time and bounded memory.
class Pattern {
 public:
  // InvalidArgument: it is none, or one that needs more memory than a pattern may take.
  static Result<Pattern> compile(const std::string& text);
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

// Where a formula stands, as InfluxDB tells it apart: in WHERE `/` of two integers is a whole
// number; and null beside a truth value is false, but not where it is a field of a measurement in
// WHERE.
enum class FormulaOf : unsigned char { Field, Where, WhereOfRows };

// abs(x), pow(x, y) and the like, which are no functions of a window.
bool is_math_function(std::string_view name);

class Formula {
 public:
  // Where in the cells the value of a name or of a call is.
  using Place = std::function<Result<std::size_t>(const Expr& named)>;

  static Result<Formula> compile(const Expr& expression, const Place& place,
                                 FormulaOf of = FormulaOf::Field);
  // Only the truth value true is.
  bool is_true(const std::vector<Cell>& cells) const;
  void evaluate(const std::vector<Cell>& cells, Cell& result) const;
  // The same of many rows side by side: the numbers of those (NumberRows), where it gives any; and
  // which of them it is true of.
  void evaluate(const NumberRows& rows, NumberRows::Column& result) const;
  void find_true(const NumberRows& rows, std::vector<std::uint32_t>& which) const;
  // Whether it gives numbers or nothing, whatever the cells are, if those that it takes are such.
  bool gives_numbers(const std::function<bool(std::size_t place)>& is_number) const;
  // False: whatever the rows are, it does not hold. `known`: which of `cells` are known before
  // there are rows; the others depend on the row.
  bool may_hold(const std::vector<Cell>& cells, const std::vector<char>& known) const;

 private:
  enum class Kind : unsigned char { Constant, Cell, Pattern, Chain, Math, OneOf };

  // Makes one look of what compares one cell with many texts, of a chain that is ready.
  void gather_texts();
  // What a part of it comes to for many rows.
  struct Many;
  void evaluate(const NumberRows& rows, Many& result) const;
  void combine(Operator op, const Many& left, const Formula& right_side, const Many& right,
               std::size_t rows, Many& result) const;
  // The place and the text that it compares by `op`, and nothing else.
  struct Compared {
    std::size_t place = 0;
    std::string_view text;
  };
  std::optional<Compared> compared(Operator op) const;
  bool gives_truth() const;
  bool is_decided(const Cell& so_far) const;
  void combine(Operator op, const Cell& left, const Formula& right_side, const Cell& right,
               Cell& result) const;
  void compute(const Cell& first, const Cell& second, Cell& result) const;  // of Math
  bool is_known(const std::vector<char>& known) const;

  Kind kind_ = Kind::Constant;
  Cell constant_;
  std::size_t place_ = 0;
  std::optional<Pattern> pattern_;
  std::vector<Formula> operands_;
  std::vector<Operator> operators_;  // as in Expr
  bool is_logic_ = false;            // AND or OR of truth values: one may decide
  FormulaOf of_ = FormulaOf::Field;
  std::string function_;  // of Math
  // For OneOf, in order. It is true of a text at `place_` that is one of them, or of one that is
  // not.
  std::vector<std::string> texts_;
  bool is_one_ = true;
};

}  // namespace edgecase::influxql
