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

#include "influxql/pattern.h"
#include "influxql/rows.h"
#include "influxql/statement.h"

namespace edgecase::influxql {

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
  // What is known of a cell before there are rows; nothing: it depends on the row.
  using Known = std::function<const Cell*(std::size_t place)>;

  static Result<Formula> compile(const Expr& expression, const Place& place,
                                 FormulaOf of = FormulaOf::Field);
  // Only the truth value true is.
  bool is_true(const std::vector<Cell>& cells) const;
  void evaluate(const std::vector<Cell>& cells, Cell& result) const;
  // False: whatever the rows are, it does not hold.
  bool may_hold(const Known& known) const;

 private:
  enum class Kind : unsigned char { Constant, Cell, Pattern, Chain, Math };

  void combine(Operator op, const Cell& left, const Formula& right_side, const Cell& right,
               Cell& result) const;
  bool is_known(const Known& known) const;
  void fill_known(const Known& known, std::vector<Cell>& cells) const;
  std::size_t places() const;

  Kind kind_ = Kind::Constant;
  Cell constant_;
  std::size_t place_ = 0;
  std::optional<Pattern> pattern_;
  std::vector<Formula> operands_;
  std::vector<Operator> operators_;  // as in Expr
  FormulaOf of_ = FormulaOf::Field;
  std::string function_;  // of Math
};

}  // namespace edgecase::influxql
