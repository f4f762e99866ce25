#include "influxql/formula.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <re2/re2.h>

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;

void set_bool(Cell& cell, bool value) {
  cell.kind = Kind::Bool;
  cell.integer = value ? 1 : 0;
}
void set_integer(Cell& cell, std::int64_t value) {
  cell.kind = Kind::Integer;
  cell.integer = value;
}
void set_float(Cell& cell, double value) {
  cell.kind = Kind::Float;
  cell.number = value;
}
void set_null(Cell& cell) {
  cell.kind = Kind::Null;
}

bool is_whole(const Cell& cell) {
  return cell.kind == Kind::Integer || cell.kind == Kind::Time;
}
bool is_number(const Cell& cell) {
  return is_whole(cell) || cell.kind == Kind::Float;
}
double number_of(const Cell& cell) {
  return cell.kind == Kind::Float ? cell.number : static_cast<double>(cell.integer);
}

template <typename T>
bool compare(Operator op, const T& left, const T& right) {
  switch (op) {
    case Operator::Equal: return left == right;
    case Operator::NotEqual: return left != right;
    case Operator::Less: return left < right;
    case Operator::LessOrEqual: return left <= right;
    case Operator::Greater: return left > right;
    default: return left >= right;
  }
}

bool is_order(Operator op) {
  return op == Operator::Less || op == Operator::LessOrEqual || op == Operator::Greater ||
         op == Operator::GreaterOrEqual;
}
bool is_comparison(Operator op) {
  return op == Operator::Equal || op == Operator::NotEqual || is_order(op);
}

void combine_wholes(Operator op, std::int64_t left, std::int64_t right, FormulaOf of,
                    Cell& result) {
  const auto a = static_cast<std::uint64_t>(left), b = static_cast<std::uint64_t>(right);
  switch (op) {
    case Operator::Add: return set_integer(result, static_cast<std::int64_t>(a + b));
    case Operator::Subtract: return set_integer(result, static_cast<std::int64_t>(a - b));
    case Operator::Multiply: return set_integer(result, static_cast<std::int64_t>(a * b));
    case Operator::Divide:
      if (of != FormulaOf::Field) {
        if (right == -1) return set_integer(result, static_cast<std::int64_t>(0 - a));
        return set_integer(result, right == 0 ? 0 : left / right);
      }
      return set_float(result,
                       right == 0 ? 0 : static_cast<double>(left) / static_cast<double>(right));
    case Operator::Modulo: return set_integer(result, right == 0 || right == -1 ? 0 : left % right);
    case Operator::BitAnd: return set_integer(result, left & right);
    case Operator::BitOr: return set_integer(result, left | right);
    case Operator::BitXor: return set_integer(result, left ^ right);
    default: return set_null(result);
  }
}

void combine_numbers(Operator op, double left, double right, Cell& result) {
  switch (op) {
    case Operator::Add: return set_float(result, left + right);
    case Operator::Subtract: return set_float(result, left - right);
    case Operator::Multiply: return set_float(result, left * right);
    case Operator::Divide: return set_float(result, right == 0 ? 0 : left / right);
    case Operator::Modulo: return set_float(result, std::fmod(left, right));
    default: return set_null(result);
  }
}

void combine_bools(Operator op, bool left, bool right, Cell& result) {
  switch (op) {
    case Operator::And:
    case Operator::BitAnd: return set_bool(result, left && right);
    case Operator::Or:
    case Operator::BitOr: return set_bool(result, left || right);
    case Operator::BitXor: return set_bool(result, left != right);
    case Operator::Equal: return set_bool(result, left == right);
    case Operator::NotEqual: return set_bool(result, left != right);
    default: break;
  }
  is_order(op) ? set_bool(result, false) : set_null(result);
}

struct MathFunction {
  std::string_view name;
  double (*of_one)(double);
  double (*of_two)(double, double);
};
constexpr MathFunction kMath[] = {
    {"abs", nullptr, nullptr},
    {"acos", [](double x) { return std::acos(x); }, nullptr},
    {"asin", [](double x) { return std::asin(x); }, nullptr},
    {"atan", [](double x) { return std::atan(x); }, nullptr},
    {"atan2", nullptr, [](double x, double y) { return std::atan2(x, y); }},
    {"ceil", [](double x) { return std::ceil(x); }, nullptr},
    {"cos", [](double x) { return std::cos(x); }, nullptr},
    {"exp", [](double x) { return std::exp(x); }, nullptr},
    {"floor", [](double x) { return std::floor(x); }, nullptr},
    {"ln", [](double x) { return std::log(x); }, nullptr},
    {"log", nullptr, [](double x, double y) { return std::log(x) / std::log(y); }},
    {"log10", [](double x) { return std::log10(x); }, nullptr},
    {"log2", [](double x) { return std::log2(x); }, nullptr},
    {"pow", nullptr, [](double x, double y) { return std::pow(x, y); }},
    {"round", [](double x) { return std::round(x); }, nullptr},
    {"sin", [](double x) { return std::sin(x); }, nullptr},
    {"sqrt", [](double x) { return std::sqrt(x); }, nullptr},
    {"tan", [](double x) { return std::tan(x); }, nullptr},
};

const MathFunction* math_function(std::string_view name) {
  const auto found = std::find_if(std::begin(kMath), std::end(kMath),
                                  [&](const MathFunction& each) { return each.name == name; });
  return found == std::end(kMath) ? nullptr : found;
}

// Whole numbers stay what they are where nothing is to be rounded.
void compute_by(const MathFunction& function, const Cell& first, const Cell& second, Cell& result) {
  if (!is_number(first)) return set_null(result);
  const bool is_rounding = function.name == "ceil" || function.name == "floor" ||
                           function.name == "round" || function.name == "abs";
  if (is_rounding && is_whole(first)) {
    const std::int64_t whole = first.integer;
    return set_integer(result, whole);
  }
  const double x = number_of(first);
  if (function.name == "abs") return set_float(result, std::fabs(x));
  if (function.of_one != nullptr) return set_float(result, function.of_one(x));
  if (!is_number(second)) return set_null(result);
  set_float(result, function.of_two(x, number_of(second)));
}

}  // namespace

bool is_math_function(std::string_view name) {
  return math_function(name) != nullptr;
}

Result<Formula> Formula::compile(const Expr& expression, const Place& place, FormulaOf of) {
  Formula made;
  made.of_ = of;
  if (expression.kind == ExprKind::Call && is_math_function(expression.text)) {
    made.kind_ = Kind::Math;
    made.function_ = expression.text;
    const std::size_t wanted = math_function(expression.text)->of_two != nullptr ? 2 : 1;
    if (expression.operands.size() != wanted)
      return invalid_argument("invalid number of arguments for " + expression.text + ", expected " +
                              std::to_string(wanted) + ", got " +
                              std::to_string(expression.operands.size()));
    for (const Expr& operand : expression.operands) {
      EC_ASSIGN_OR_RETURN(Formula part, compile(operand, place, of));
      made.operands_.push_back(std::move(part));
    }
    return made;
  }
  switch (expression.kind) {
    case ExprKind::Name:
    case ExprKind::Call:
    case ExprKind::Distinct: {
      made.kind_ = Kind::Cell;
      EC_ASSIGN_OR_RETURN(made.place_, place(expression));
      return made;
    }
    case ExprKind::Group: return compile(expression.operands.front(), place, of);
    case ExprKind::Chain:
      made.kind_ = Kind::Chain;
      made.operators_ = expression.operators;
      for (const Expr& operand : expression.operands) {
        EC_ASSIGN_OR_RETURN(Formula part, compile(operand, place, of));
        made.operands_.push_back(std::move(part));
      }
      made.gather_texts();
      return made;
    case ExprKind::Regex: {
      made.kind_ = Kind::Pattern;
      EC_ASSIGN_OR_RETURN(made.pattern_, Pattern::compile(expression.text));
      return made;
    }
    case ExprKind::Float: set_float(made.constant_, expression.number); return made;
    case ExprKind::Unsigned:
      set_float(made.constant_,
                static_cast<double>(static_cast<std::uint64_t>(expression.integer)));
      return made;
    case ExprKind::Integer:
    case ExprKind::Duration: set_integer(made.constant_, expression.integer); return made;
    case ExprKind::Bool: set_bool(made.constant_, expression.integer != 0); return made;
    case ExprKind::Text:
      made.constant_.kind = Cell::Kind::Text;
      made.constant_.text = expression.text;
      return made;
    case ExprKind::Wildcard: break;
  }
  return invalid_argument("a wildcard is no operand");
}

// Comparisons are true or false, whatever is compared, and chains of them by AND or OR: these mean
// the same in any order.
bool Formula::gives_truth() const {
  if (kind_ == Kind::OneOf) return true;
  if (kind_ != Kind::Chain) return false;
  const Operator op = operators_.back();
  if (op != Operator::And && op != Operator::Or)
    return is_comparison(op) || op == Operator::Matches || op == Operator::NotMatches;
  return std::all_of(operands_.begin(), operands_.end(),
                     [](const Formula& each) { return each.gives_truth(); });
}

std::optional<Formula::Compared> Formula::compared(Operator op) const {
  if (kind_ != Kind::Chain || operands_.size() != 2 || operators_[1] != op) return std::nullopt;
  const bool is_first = operands_[0].kind_ == Kind::Cell;
  const Formula& cell = operands_[is_first ? 0 : 1];
  const Formula& text = operands_[is_first ? 1 : 0];
  const bool are_both = cell.kind_ == Kind::Cell && text.kind_ == Kind::Constant &&
                        text.constant_.kind == Cell::Kind::Text;
  if (!are_both) return std::nullopt;
  return Compared{cell.place_, text.constant_.text};
}

// `host = 'a' OR host = 'b' OR …`, as dashboards ask for what was chosen, and `host != 'a' AND …`:
// a thousand texts cost as much as a few.
void Formula::gather_texts() {
  const Operator joined = operators_.back();
  if (joined != Operator::Or && joined != Operator::And) return;
  is_logic_ = gives_truth();
  if (!is_logic_) return;
  const Operator op = joined == Operator::Or ? Operator::Equal : Operator::NotEqual;
  std::map<std::size_t, Formula> gathered;
  std::vector<Formula> rest;
  for (Formula& each : operands_) {
    const std::optional<Compared> found = each.compared(op);
    if (!found) {
      rest.push_back(std::move(each));
      continue;
    }
    Formula& one = gathered[found->place];
    one.kind_ = Kind::OneOf;
    one.of_ = of_;
    one.place_ = found->place;
    one.is_one_ = op == Operator::Equal;
    one.texts_.emplace_back(found->text);
  }
  for (auto& [place, one] : gathered) {
    std::sort(one.texts_.begin(), one.texts_.end());
    rest.push_back(std::move(one));
  }
  if (rest.size() == 1) {
    Formula alone = std::move(rest.front());
    *this = std::move(alone);
    return;
  }
  operands_ = std::move(rest);
  operators_.assign(operands_.size(), joined);
  operators_.front() = Operator::None;
}

void Formula::evaluate(const std::vector<Cell>& cells, Cell& result) const {
  switch (kind_) {
    case Kind::Constant: return copy_cell(constant_, result);
    case Kind::Cell: return copy_cell(cells[place_], result);
    case Kind::Pattern: return set_null(result);
    case Kind::Math: {
      Cell first, second;
      operands_.front().evaluate(cells, first);
      if (operands_.size() > 1) operands_.back().evaluate(cells, second);
      return compute(first, second, result);
    }
    case Kind::OneOf: {
      const Cell& cell = cells[place_];
      return set_bool(result,
                      cell.kind == Cell::Kind::Text &&
                          std::binary_search(texts_.begin(), texts_.end(), cell.text) == is_one_);
    }
    case Kind::Chain: break;
  }
  operands_.front().evaluate(cells, result);
  Cell left, right;
  for (std::size_t i = 1; i < operands_.size() && !is_decided(result); ++i) {
    std::swap(left, result);
    operands_[i].evaluate(cells, right);
    combine(operators_[i], left, operands_[i], right, result);
  }
}

void Formula::compute(const Cell& first, const Cell& second, Cell& result) const {
  compute_by(*math_function(function_), first, second, result);
}

bool Formula::is_decided(const Cell& so_far) const {
  return is_logic_ && (so_far.integer != 0) == (operators_.back() == Operator::Or);
}

void Formula::combine(Operator op, const Cell& left, const Formula& right_side, const Cell& right,
                      Cell& result) const {
  using CellKind = Cell::Kind;
  if (op == Operator::Matches || op == Operator::NotMatches) {
    if (left.kind != CellKind::Text || !right_side.pattern_) return set_bool(result, false);
    return set_bool(result, right_side.pattern_->matches(left.text) == (op == Operator::Matches));
  }
  const bool is_left_bool = left.kind == CellKind::Bool,
             is_right_bool = right.kind == CellKind::Bool;
  const bool is_left_null = left.kind == CellKind::Null,
             is_right_null = right.kind == CellKind::Null;
  // Beside a truth value null is false.
  if ((of_ != FormulaOf::Where || (!is_left_null && !is_right_null)) &&
      (is_left_bool || is_left_null) && (is_right_bool || is_right_null) &&
      (is_left_bool || is_right_bool)) {
    return combine_bools(op, is_left_bool && left.integer != 0, is_right_bool && right.integer != 0,
                         result);
  }
  if (is_number(left) && is_number(right)) {
    const bool are_whole = is_whole(left) && is_whole(right);
    if (is_comparison(op))
      return set_bool(result, are_whole ? compare(op, left.integer, right.integer)
                                        : compare(op, number_of(left), number_of(right)));
    if (are_whole) return combine_wholes(op, left.integer, right.integer, of_, result);
    return combine_numbers(op, number_of(left), number_of(right), result);
  }
  if (left.kind == CellKind::Text && right.kind == CellKind::Text) {
    if (op == Operator::Equal || op == Operator::NotEqual)
      return set_bool(result, compare(op, left.text, right.text));
  }
  is_comparison(op) ? set_bool(result, false) : set_null(result);
}

bool Formula::is_true(const std::vector<Cell>& cells) const {
  Cell result;
  evaluate(cells, result);
  return result.kind == Cell::Kind::Bool && result.integer != 0;
}

bool Formula::is_known(const std::vector<char>& known) const {
  if (kind_ == Kind::Cell || kind_ == Kind::OneOf) return known[place_] != 0;
  return std::all_of(operands_.begin(), operands_.end(),
                     [&](const Formula& each) { return each.is_known(known); });
}

bool Formula::may_hold(const std::vector<Cell>& cells, const std::vector<char>& known) const {
  const Operator op = operators_.size() > 1 ? operators_[1] : Operator::None;
  const auto may = [&](const Formula& each) { return each.may_hold(cells, known); };
  if (op == Operator::And) return std::all_of(operands_.begin(), operands_.end(), may);
  if (op == Operator::Or) return std::any_of(operands_.begin(), operands_.end(), may);
  return !is_known(known) || is_true(cells);
}

Result<Pattern> Pattern::compile(const std::string& text) {
  constexpr std::int64_t kMemoryMax = 1 << 20;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryMax);
  Pattern pattern;
  pattern.compiled_ = std::make_shared<const re2::RE2>(text, options);
  if (pattern.compiled_->ok()) return pattern;
  // It repeats what it is about, which may be all.
  constexpr std::size_t kNamedBytesMax = 100;
  std::string why = pattern.compiled_->error();
  if (why.size() > kNamedBytesMax) {
    std::size_t end = kNamedBytesMax;
    while (end > 0 && (static_cast<unsigned char>(why[end]) & 0xC0u) == 0x80u) --end;
    why.resize(end);
    why += "...";
  }
  return invalid_argument("error parsing regexp: " + why);
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace edgecase::influxql
