#include "influxql/select_plan.h"

#include <algorithm>
#include <array>

namespace edgecase::influxql {
namespace {

// The first four give a point of those that they are given.
constexpr std::array<std::string_view, 5> kSelectors = {"max", "min", "first", "last",
                                                        "percentile"};
constexpr std::array<std::string_view, 27> kOthers = {"count",
                                                      "sum",
                                                      "mean",
                                                      "median",
                                                      "mode",
                                                      "stddev",
                                                      "spread",
                                                      "integral",
                                                      "derivative",
                                                      "non_negative_derivative",
                                                      "difference",
                                                      "non_negative_difference",
                                                      "cumulative_sum",
                                                      "moving_average",
                                                      "elapsed",
                                                      "exponential_moving_average",
                                                      "double_exponential_moving_average",
                                                      "triple_exponential_moving_average",
                                                      "triple_exponential_derivative",
                                                      "relative_strength_index",
                                                      "kaufmans_efficiency_ratio",
                                                      "kaufmans_adaptive_moving_average",
                                                      "chande_momentum_oscillator",
                                                      "holt_winters",
                                                      "holt_winters_with_fit",
                                                      "sample",
                                                      "distinct"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_wildcard(const Expr& expression) {
  return expression.kind == ExprKind::Wildcard || expression.kind == ExprKind::Regex;
}

// What the fields of one statement have of everything.
struct FieldCheck {
  const SelectStatement& select;
  std::size_t calls = 0;
  bool has_names = false, has_distinct = false, has_only_selectors = true;
  std::string ranking;  // top or bottom

  Status visit(const Expr& expression, bool is_alone);
  Status visit_call(const Expr& call);
  Status visit_ranking(const Expr& call);
  Status finish(bool needs_function) const;
};

Status FieldCheck::visit(const Expr& expression, bool is_alone) {
  switch (expression.kind) {
    case ExprKind::Name: has_names = true; return ok();
    case ExprKind::Wildcard:
      if (!is_alone) return invalid_argument("unable to use wildcard in a binary expression");
      has_names = true;
      return ok();
    case ExprKind::Regex:
      if (!is_alone) return invalid_argument("unable to use regex in a binary expression");
      has_names = true;
      return ok();
    case ExprKind::Distinct:
      ++calls;
      has_distinct = true;
      has_only_selectors = false;
      return ok();
    case ExprKind::Group: return visit(expression.operands.front(), is_alone);
    case ExprKind::Call: return visit_call(expression);
    case ExprKind::Chain:
      for (const Expr& operand : expression.operands) {
        if (!is_literal(operand)) EC_TRY(visit(operand, false));
      }
      return ok();
    default: return invalid_argument("field must contain at least one variable");
  }
}

Status FieldCheck::visit_call(const Expr& call) {
  if (is_math_function(call.text)) {
    for (const Expr& operand : call.operands) {
      if (!is_literal(operand)) EC_TRY(visit(operand, false));
    }
    return ok();
  }
  ++calls;
  if (call.text == "top" || call.text == "bottom") return visit_ranking(call);
  if (!is_one_of(kSelectors, call.text) && !is_one_of(kOthers, call.text))
    return invalid_argument("undefined function " + call.text + "()");
  if (is_one_of(kOthers, call.text) && call.text != "sample") has_only_selectors = false;
  if (call.text == "distinct") has_distinct = true;
  const Expr* inside = &call;
  while (!inside->operands.empty() && inside->operands.front().kind == ExprKind::Call) {
    inside = &inside->operands.front();
    if (is_one_of(kSelectors, inside->text) || is_one_of(kOthers, inside->text)) continue;
    if (inside->text != "top" && inside->text != "bottom" && !is_math_function(inside->text))
      return invalid_argument("undefined function " + inside->text + "()");
  }
  if (!inside->operands.empty() && is_wildcard(inside->operands.front()))
    has_only_selectors = false;
  return ok();
}

Status FieldCheck::visit_ranking(const Expr& call) {
  const std::string& name = call.text;
  if (!ranking.empty())
    return invalid_argument("selector function " + ranking +
                            "() cannot be combined with other functions");
  if (call.operands.size() < 2)
    return invalid_argument("invalid number of arguments for " + name +
                            ", expected at least 2, got " + std::to_string(call.operands.size()));
  const Expr& last = call.operands.back();
  if (last.kind != ExprKind::Integer)
    return invalid_argument("expected integer as last argument in " + name + "(), found " +
                            text_of(last));
  if (last.integer <= 0)
    return invalid_argument("limit (" + std::to_string(last.integer) + ") in " + name +
                            " function must be at least 1");
  if (select.limit > 0 && last.integer > select.limit)
    return invalid_argument("limit (" + std::to_string(last.integer) + ") in " + name +
                            " function can not be larger than the LIMIT (" +
                            std::to_string(select.limit) + ") in the select statement");
  if (call.operands.front().kind != ExprKind::Name)
    return invalid_argument("expected first argument to be a field in " + name + "(), found " +
                            text_of(call.operands.front()));
  for (std::size_t i = 1; i + 1 < call.operands.size(); ++i) {
    if (call.operands[i].kind != ExprKind::Name)
      return invalid_argument("only fields or tags are allowed in " + name + "(), found " +
                              text_of(call.operands[i]));
    has_names = true;
  }
  ranking = name;
  return ok();
}

Status FieldCheck::finish(bool needs_function) const {
  if (calls > 1 && !ranking.empty())
    return invalid_argument("selector function " + ranking +
                            "() cannot be combined with other functions");
  if (calls == 0) {
    if (select.has_fill && select.fill == Fill::None)
      return invalid_argument("fill(none) must be used with a function");
    if (select.has_fill && select.fill == Fill::Linear)
      return invalid_argument("fill(linear) must be used with a function");
    if (needs_function)
      return invalid_argument("GROUP BY requires at least one aggregate function");
  }
  if (has_distinct && (calls != 1 || has_names))
    return invalid_argument(
        "aggregate function distinct() cannot be combined with other functions or fields");
  if (!has_names) return ok();
  if (!has_only_selectors)
    return invalid_argument("mixing aggregate and non-aggregate queries is not supported");
  if (calls > 1)
    return invalid_argument(
        "mixing multiple selector functions with tags or fields is not supported");
  return ok();
}

Result<std::int64_t> offset_of(const Expr& offset, std::int64_t now_ns,
                               const wire::TimeZone* zone) {
  const Status wrong = invalid_argument("time dimension offset must be duration or now()");
  if (offset.kind == ExprKind::Call) {
    if (offset.text != "now")
      return invalid_argument("time dimension offset function must be now()");
    if (!offset.operands.empty())
      return invalid_argument("time dimension offset now() function requires no arguments");
    return now_ns;
  }
  if (offset.kind == ExprKind::Duration) return offset.integer;
  if (offset.kind != ExprKind::Text) return wrong;
  auto time_ns = time_of(offset, now_ns, zone);
  return time_ns.ok() ? time_ns : Result<std::int64_t>(wrong);
}

Status check_interval(const Expr& call, std::int64_t now_ns, const wire::TimeZone* zone,
                      Grouping& grouping) {
  if (call.text != "time") return invalid_argument("only time() calls allowed in dimensions");
  if (call.operands.empty() || call.operands.size() > 2)
    return invalid_argument("time dimension expected 1 or 2 arguments");
  if (call.operands.front().kind != ExprKind::Duration)
    return invalid_argument("time dimension must have duration argument");
  if (grouping.every_ns != 0) return invalid_argument("multiple time dimensions not allowed");
  grouping.every_ns = std::max<std::int64_t>(call.operands.front().integer, 0);
  if (call.operands.size() < 2 || grouping.every_ns == 0) return ok();
  EC_ASSIGN_OR_RETURN(const std::int64_t offset_ns, offset_of(call.operands[1], now_ns, zone));
  grouping.offset_ns = offset_ns % grouping.every_ns;
  return ok();
}

}  // namespace

Result<Grouping> check_grouping(const std::vector<Expr>& group_by, std::int64_t now_ns,
                                const wire::TimeZone* zone) {
  Grouping grouping;
  for (const Expr& each : group_by) {
    const Expr& inside = each.kind == ExprKind::Group ? each.operands.front() : each;
    switch (inside.kind) {
      case ExprKind::Call: EC_TRY(check_interval(inside, now_ns, zone, grouping)); break;
      case ExprKind::Name: {
        std::string lower = inside.text;
        for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        if (lower == "time")
          return invalid_argument("time() is a function and expects at least one argument");
        grouping.tags.push_back(inside);
        break;
      }
      case ExprKind::Wildcard:
      case ExprKind::Regex: grouping.tags.push_back(inside); break;
      default: return invalid_argument("only time and tag dimensions allowed");
    }
  }
  return grouping;
}

Result<bool> check_fields(const SelectStatement& select, bool needs_function) {
  if (select.fields.empty()) return invalid_argument("at least 1 non-time field must be queried");
  FieldCheck check{select, 0, false, false, true, {}};
  for (const Field& field : select.fields) {
    if (is_literal(field.value))
      return invalid_argument("field must contain at least one variable");
    EC_TRY(check.visit(field.value, true));
  }
  EC_TRY(check.finish(needs_function));
  return check.calls > 0;
}

Status check_condition(const Expr& where) {
  if (where.kind == ExprKind::Call && !is_math_function(where.text))
    return invalid_argument("invalid function call in condition: " + text_of(where));
  for (const Expr& operand : where.operands) EC_TRY(check_condition(operand));
  return ok();
}

}  // namespace edgecase::influxql
