#include "influxql/functions.h"

#include <array>
#include <string>
#include <utility>

#include "wire/time_text.h"

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;

struct Named {
  std::string_view name;
  Function function;
};
constexpr std::array kFunctions = {
    Named{"count", Function::Count},
    Named{"sum", Function::Sum},
    Named{"mean", Function::Mean},
    Named{"median", Function::Median},
    Named{"mode", Function::Mode},
    Named{"spread", Function::Spread},
    Named{"stddev", Function::Stddev},
    Named{"min", Function::Min},
    Named{"max", Function::Max},
    Named{"first", Function::First},
    Named{"last", Function::Last},
    Named{"percentile", Function::Percentile},
    Named{"distinct", Function::Distinct},
    Named{"top", Function::Top},
    Named{"bottom", Function::Bottom},
    Named{"sample", Function::Sample},
    Named{"derivative", Function::Derivative},
    Named{"non_negative_derivative", Function::Derivative},
    Named{"difference", Function::Difference},
    Named{"non_negative_difference", Function::Difference},
    Named{"moving_average", Function::MovingAverage},
    Named{"cumulative_sum", Function::CumulativeSum},
    Named{"elapsed", Function::Elapsed},
    Named{"integral", Function::Integral},
};
// InfluxDB has these, and they are not offered here.
constexpr std::array<std::string_view, 10> kNotOffered = {
    "holt_winters",
    "holt_winters_with_fit",
    "exponential_moving_average",
    "double_exponential_moving_average",
    "triple_exponential_moving_average",
    "triple_exponential_derivative",
    "relative_strength_index",
    "kaufmans_efficiency_ratio",
    "kaufmans_adaptive_moving_average",
    "chande_momentum_oscillator",
};

Status wrong_count(std::string_view name, const std::string& expected, std::size_t got) {
  return invalid_argument("invalid number of arguments for " + std::string(name) + ", expected " +
                          expected + ", got " + std::to_string(got));
}

Status expect_arguments(const Expr& call, std::size_t count) {
  if (call.operands.size() == count) return ok();
  return wrong_count(call.text, std::to_string(count), call.operands.size());
}

Status expect_one_or_two(const Expr& call) {
  if (call.operands.size() == 1 || call.operands.size() == 2) return ok();
  return wrong_count(call.text, "at least 1 but no more than 2", call.operands.size());
}

// What InfluxDB calls the kinds of expressions.
std::string type_name(const Expr& expression) {
  switch (expression.kind) {
    case ExprKind::Name: return "*influxql.VarRef";
    case ExprKind::Call: return "*influxql.Call";
    case ExprKind::Chain: return "*influxql.BinaryExpr";
    case ExprKind::Group: return "*influxql.ParenExpr";
    case ExprKind::Float: return "*influxql.NumberLiteral";
    case ExprKind::Integer: return "*influxql.IntegerLiteral";
    case ExprKind::Unsigned: return "*influxql.UnsignedLiteral";
    case ExprKind::Text: return "*influxql.StringLiteral";
    case ExprKind::Bool: return "*influxql.BooleanLiteral";
    case ExprKind::Duration: return "*influxql.DurationLiteral";
    case ExprKind::Regex: return "*influxql.RegexLiteral";
    case ExprKind::Wildcard: return "*influxql.Wildcard";
    case ExprKind::Distinct: break;
  }
  return "*influxql.Distinct";
}

// 90s is 90s and 120s is 2m: one unit, the largest that leaves nothing.
std::string duration_text(std::int64_t duration_ns) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  constexpr std::array kUnits = {
      Unit{604'800'000'000'000, "w"},
      Unit{86'400'000'000'000, "d"},
      Unit{3'600'000'000'000, "h"},
      Unit{60'000'000'000, "m"},
      Unit{1'000'000'000, "s"},
      Unit{1'000'000, "ms"},
      Unit{1'000, "u"},
  };
  if (duration_ns == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (duration_ns % unit.ns == 0)
      return std::to_string(duration_ns / unit.ns) + std::string(unit.name);
  }
  return std::to_string(duration_ns) + "ns";
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::Integer: return "integer";
    case Kind::Text: return "string";
    case Kind::Bool: return "boolean";
    default: return "float";
  }
}

bool is_number(Kind kind) {
  return kind == Kind::Float || kind == Kind::Integer;
}

bool takes(Function function, Kind kind) {
  switch (function) {
    case Function::Count:
    case Function::CountDistinct:
    case Function::Mode:
    case Function::First:
    case Function::Last:
    case Function::Distinct:
    case Function::Sample:
    case Function::Elapsed: return true;
    case Function::Min:
    case Function::Max: return kind != Kind::Text;
    default: return is_number(kind);
  }
}

// What refuses a text or a truth value, in InfluxDB's words.
Status wrong_kind(const Call& call, std::string_view name) {
  std::string words(name);
  if (call.function == Function::MovingAverage) words = "moving average";
  if (call.function == Function::CumulativeSum) words = "cumulative sum";
  if (call.function == Function::Derivative) words = "derivative";
  if (call.function == Function::Difference) words = "difference";
  if (!call.groups.empty()) words = call.function == Function::Top ? "max" : "min";
  std::string_view given = "InterruptIterator";
  if (call.inside && call.inside->function == Function::Distinct) given = "IntervalIterator";
  return invalid_argument("unsupported " + words + " iterator type: *query." +
                          std::string(kind_name(call.taken)) + std::string(given));
}

Kind kind_of(Function function, Kind taken) {
  switch (function) {
    case Function::Count:
    case Function::CountDistinct:
    case Function::Elapsed: return Kind::Integer;
    case Function::Mean:
    case Function::Median:
    case Function::Stddev:
    case Function::Derivative:
    case Function::MovingAverage:
    case Function::Integral: return Kind::Float;
    default: return taken;
  }
}

class Maker {
 public:
  Maker(const FunctionPlan::Columns& columns, const Windows& windows)
      : columns_(columns), windows_(windows) {}

  Result<Call> make(const Expr& expression) const {
    if (expression.kind == ExprKind::Distinct) {
      Expr name = expression;
      name.kind = ExprKind::Name;
      Call call;
      call.function = Function::Distinct;
      EC_TRY(set_column(name, call));
      return finished(std::move(call), "distinct");
    }
    for (const std::string_view name : kNotOffered) {
      if (expression.text == name)
        return invalid_argument(expression.text + "() is not offered here");
    }
    for (const Named& each : kFunctions) {
      if (expression.text != each.name) continue;
      Call call;
      call.function = each.function;
      call.is_non_negative = each.name.starts_with("non_negative_");
      EC_TRY(set_arguments(expression, call));
      return finished(std::move(call), expression.text);
    }
    return invalid_argument("undefined function " + expression.text + "()");
  }

 private:
  static Result<Call> finished(Call call, std::string_view name) {
    if (call.inside) {
      call.taken = call.inside->kind;
      call.is_of_nothing = call.inside->is_of_nothing;
    } else {
      call.taken = call.column.kind;
      call.is_of_nothing = !call.column.is_value || call.taken == Kind::Null;
    }
    call.kind = kind_of(call.function, call.taken);
    if (!call.is_of_nothing && !takes(call.function, call.taken)) return wrong_kind(call, name);
    return call;
  }

  Status set_column(const Expr& name, Call& call) const {
    EC_ASSIGN_OR_RETURN(call.column, columns_(name));
    return ok();
  }

  Status set_field(const Expr& call_text, Call& call) const {
    if (call_text.operands.empty() || call_text.operands.front().kind != ExprKind::Name)
      return invalid_argument("expected field argument in " + call_text.text + "()");
    return set_column(call_text.operands.front(), call);
  }

  static Status check_unit(const Expr& call_text) {
    if (call_text.operands.size() < 2) return ok();
    const Expr& unit = call_text.operands[1];
    if (unit.kind != ExprKind::Duration)
      return invalid_argument(call_text.text == "integral"
                                  ? "second argument must be a duration"
                                  : "second argument to " + call_text.text +
                                        " must be a duration, got " + type_name(unit));
    if (unit.integer > 0) return ok();
    return invalid_argument("duration argument must be positive, got " +
                            duration_text(unit.integer));
  }

  // derivative and its like: of a field, or of a function where GROUP BY time is.
  Status set_source(const Expr& call_text, Call& call) const {
    const Expr& source = call_text.operands.front();
    if (source.kind == ExprKind::Call || source.kind == ExprKind::Distinct) {
      if (windows_.every_ns == 0)
        return invalid_argument(call_text.text + " aggregate requires a GROUP BY interval");
      EC_ASSIGN_OR_RETURN(Call inside, make(source));
      if (inside.function == Function::Top || inside.function == Function::Bottom)
        return invalid_argument("selector function " + source.text +
                                "() cannot be combined with other functions");
      call.inside = std::make_unique<Call>(std::move(inside));
      return ok();
    }
    if (windows_.every_ns != 0 && !windows_.is_inherited)
      return invalid_argument("aggregate function required inside the call to " + call_text.text);
    return set_field(call_text, call);
  }

  Status set_unit(const Expr& call_text, std::int64_t without_ns, Call& call) const {
    EC_TRY(expect_one_or_two(call_text));
    EC_TRY(check_unit(call_text));
    call.unit_ns = call_text.operands.size() == 2 ? call_text.operands[1].integer : without_ns;
    return ok();
  }

  Status set_ranking(const Expr& call_text, Call& call) const {
    if (call_text.operands.size() < 2)
      return wrong_count(call_text.text, "at least 2", call_text.operands.size());
    const Expr& last = call_text.operands.back();
    if (last.kind != ExprKind::Integer)
      return invalid_argument("expected integer as last argument in " + call_text.text + "()");
    if (last.integer <= 0)
      return invalid_argument("limit (" + std::to_string(last.integer) + ") in " + call_text.text +
                              " function must be at least 1");
    call.count = last.integer;
    for (std::size_t i = 1; i + 1 < call_text.operands.size(); ++i) {
      if (call_text.operands[i].kind != ExprKind::Name)
        return invalid_argument("only fields or tags are allowed in " + call_text.text + "()");
      EC_ASSIGN_OR_RETURN(const ColumnPlace place, columns_(call_text.operands[i]));
      call.groups.push_back(place.is_tag ? place.index : kNoColumn);
    }
    if (call_text.operands.front().kind != ExprKind::Name)
      return invalid_argument("expected first argument to be a field in " + call_text.text + "()");
    return set_column(call_text.operands.front(), call);
  }

  Status set_percentile(const Expr& call_text, Call& call) const {
    EC_TRY(expect_arguments(call_text, 2));
    const Expr& percent = call_text.operands[1];
    if (percent.kind == ExprKind::Integer)
      call.percent = static_cast<double>(percent.integer);
    else if (percent.kind == ExprKind::Float)
      call.percent = percent.number;
    else
      return invalid_argument("expected float argument in percentile()");
    return set_field(call_text, call);
  }

  Status set_sample(const Expr& call_text, Call& call) const {
    EC_TRY(expect_arguments(call_text, 2));
    if (call_text.operands[1].kind != ExprKind::Integer)
      return invalid_argument("expected integer argument in sample()");
    call.count = call_text.operands[1].integer;
    if (call.count <= 0)
      return invalid_argument("sample window must be greater than 1, got " +
                              std::to_string(call.count));
    return set_field(call_text, call);
  }

  Status set_moving_average(const Expr& call_text, Call& call) const {
    EC_TRY(expect_arguments(call_text, 2));
    const Expr& count = call_text.operands[1];
    if (count.kind != ExprKind::Integer)
      return invalid_argument("second argument for moving_average must be an integer, got " +
                              type_name(count));
    if (count.integer <= 1)
      return invalid_argument("moving_average window must be greater than 1, got " +
                              std::to_string(count.integer));
    call.count = count.integer;
    return set_source(call_text, call);
  }

  Status set_distinct(const Expr& call_text, Call& call) const {
    if (call_text.operands.empty())
      return invalid_argument("distinct function requires at least one argument");
    if (call_text.operands.size() != 1)
      return invalid_argument("distinct function can only have one argument");
    return set_field(call_text, call);
  }

  Status set_counted(const Expr& call_text, Call& call) const {
    EC_TRY(expect_arguments(call_text, 1));
    const Expr& counted = call_text.operands.front();
    if (counted.kind == ExprKind::Call && counted.text == "distinct") {
      call.function = Function::CountDistinct;
      return set_distinct(counted, call);
    }
    if (counted.kind != ExprKind::Distinct) return set_field(call_text, call);
    call.function = Function::CountDistinct;
    Expr name = counted;
    name.kind = ExprKind::Name;
    return set_column(name, call);
  }

  Status set_arguments(const Expr& call_text, Call& call) const {
    switch (call.function) {
      case Function::Count: return set_counted(call_text, call);
      case Function::Percentile: return set_percentile(call_text, call);
      case Function::Distinct: return set_distinct(call_text, call);
      case Function::Top:
      case Function::Bottom: return set_ranking(call_text, call);
      case Function::Sample: return set_sample(call_text, call);
      case Function::MovingAverage: return set_moving_average(call_text, call);
      case Function::Derivative:
        EC_TRY(set_unit(call_text,
                        windows_.every_ns != 0 ? windows_.every_ns : wire::kNanosecondsPerSecond,
                        call));
        return set_source(call_text, call);
      case Function::Elapsed:
        EC_TRY(set_unit(call_text, 1, call));
        return set_source(call_text, call);
      case Function::Difference:
      case Function::CumulativeSum:
        EC_TRY(expect_arguments(call_text, 1));
        return set_source(call_text, call);
      case Function::Integral:
        EC_TRY(set_unit(call_text, wire::kNanosecondsPerSecond, call));
        return set_field(call_text, call);
      default: EC_TRY(expect_arguments(call_text, 1)); return set_field(call_text, call);
    }
  }

  const FunctionPlan::Columns& columns_;
  const Windows& windows_;
};

}  // namespace

bool Call::is_selector() const {
  switch (function) {
    case Function::Min:
    case Function::Max:
    case Function::First:
    case Function::Last:
    case Function::Percentile:
    case Function::Top:
    case Function::Bottom:
    case Function::Sample: return true;
    default: return false;
  }
}

bool Call::is_of_window() const {
  return function < Function::Derivative;
}

std::int64_t Call::windows_before() const {
  if (is_of_window() || function == Function::Integral) return 0;
  return function == Function::MovingAverage ? count : 1;
}

bool Call::has_own_times() const {
  return function == Function::Top || function == Function::Bottom || function == Function::Sample;
}

bool Call::takes_numbers() const {
  return takes_any_order() || function == Function::Percentile;
}

bool Call::takes_any_order() const {
  switch (function) {
    case Function::Count:
    case Function::Sum:
    case Function::Mean:
    case Function::Median:
    case Function::Spread:
    case Function::Stddev:
    case Function::Min:
    case Function::Max:
    case Function::First:
    case Function::Last: return true;
    default: return false;
  }
}

// stddev() of a single value is none.
bool Call::gives_number() const {
  const bool are_numbers = is_number(kind) && is_number(taken);
  return are_numbers && !inside && !is_of_nothing && takes_any_order() &&
         function != Function::Stddev;
}

Result<Call> make_call(const Expr& call, const FunctionPlan::Columns& columns,
                       const Windows& windows) {
  return Maker(columns, windows).make(call);
}

}  // namespace edgecase::influxql
