#include "influxql/time_condition.h"

#include <algorithm>
#include <utility>

#include "wire/time_text.h"

namespace edgecase::influxql {
namespace {

bool is_time(const Expr& each) {
  if (each.kind == ExprKind::Group) return is_time(each.operands.front());
  if (each.kind != ExprKind::Name || each.text.size() != 4) return false;
  constexpr std::string_view kTime = "time";
  return std::equal(kTime.begin(), kTime.end(), each.text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

Operator turned(Operator op) {
  switch (op) {
    case Operator::Less: return Operator::Greater;
    case Operator::LessOrEqual: return Operator::GreaterOrEqual;
    case Operator::Greater: return Operator::Less;
    case Operator::GreaterOrEqual: return Operator::LessOrEqual;
    default: return op;
  }
}

Status narrow(Operator op, std::int64_t time_ns, TimeSpan& span) {
  TimeSpan said;
  switch (op) {
    case Operator::Greater: said.from_ns = time_ns == INT64_MAX ? time_ns : time_ns + 1; break;
    case Operator::GreaterOrEqual: said.from_ns = time_ns; break;
    case Operator::Less: said.to_ns = time_ns == INT64_MIN ? time_ns : time_ns - 1; break;
    case Operator::LessOrEqual: said.to_ns = time_ns; break;
    case Operator::Equal: said.from_ns = said.to_ns = time_ns; break;
    default:
      return invalid_argument("invalid time comparison operator: " + std::string(text_of(op)));
  }
  span.narrow(said);
  return ok();
}

}  // namespace

void TimeSpan::narrow(const TimeSpan& other) {
  from_ns = std::max(from_ns, other.from_ns);
  to_ns = std::min(to_ns, other.to_ns);
}

Result<std::int64_t> time_of(const Expr& expression, std::int64_t now_ns,
                             const wire::TimeZone* zone) {
  switch (expression.kind) {
    case ExprKind::Group: return time_of(expression.operands.front(), now_ns, zone);
    case ExprKind::Integer:
    case ExprKind::Duration: return expression.integer;
    case ExprKind::Float:
      if (!(expression.number > -9e18 && expression.number < 9e18))
        return invalid_argument("a time is out of range");
      return static_cast<std::int64_t>(expression.number);
    case ExprKind::Text: {
      auto time_ns = wire::parse_rfc3339_ns(expression.text, zone);
      if (!time_ns.ok())
        return invalid_argument(
            "invalid operation: time and *influxql.StringLiteral are not "
            "compatible");
      return time_ns;
    }
    case ExprKind::Call:
      if (expression.text == "now" && expression.operands.empty()) return now_ns;
      break;
    case ExprKind::Chain: {
      EC_ASSIGN_OR_RETURN(std::int64_t sum, time_of(expression.operands[0], now_ns, zone));
      for (std::size_t i = 1; i < expression.operands.size(); ++i) {
        EC_ASSIGN_OR_RETURN(const std::int64_t next, time_of(expression.operands[i], now_ns, zone));
        bool is_over = false;
        switch (expression.operators[i]) {
          case Operator::Add: is_over = __builtin_add_overflow(sum, next, &sum); break;
          case Operator::Subtract: is_over = __builtin_sub_overflow(sum, next, &sum); break;
          case Operator::Multiply: is_over = __builtin_mul_overflow(sum, next, &sum); break;
          case Operator::Divide: sum = next == 0 || next == -1 ? 0 : sum / next; break;
          default: return invalid_argument("invalid operation in a time");
        }
        if (is_over) return invalid_argument("a time is out of range");
      }
      return sum;
    }
    default: break;
  }
  return invalid_argument("invalid operation: time and " + expression.text + " are not compatible");
}

Result<std::optional<Expr>> split_time(const Expr& where, std::int64_t now_ns,
                                       const wire::TimeZone* zone, TimeSpan& span) {
  if (where.kind == ExprKind::Group) {
    EC_ASSIGN_OR_RETURN(std::optional<Expr> inside,
                        split_time(where.operands.front(), now_ns, zone, span));
    if (!inside) return inside;
    Expr group = where;
    group.operands.front() = *std::move(inside);
    return std::optional(std::move(group));
  }
  if (where.kind != ExprKind::Chain) return std::optional(where);
  const Operator op = where.operators[1];
  if (op == Operator::And || op == Operator::Or) {
    Expr rest = where;
    rest.operands.clear();
    rest.operators.clear();
    for (std::size_t i = 0; i < where.operands.size(); ++i) {
      EC_ASSIGN_OR_RETURN(std::optional<Expr> part,
                          split_time(where.operands[i], now_ns, zone, span));
      if (!part) continue;
      rest.operators.push_back(rest.operands.empty() ? Operator::None : where.operators[i]);
      rest.operands.push_back(*std::move(part));
    }
    if (rest.operands.empty()) return std::optional<Expr>();
    if (rest.operands.size() == 1) return std::optional<Expr>(Expr(std::move(rest.operands[0])));
    return std::optional<Expr>(std::move(rest));
  }
  const bool is_left = is_time(where.operands[0]);
  if (where.operands.size() != 2 || (!is_left && !is_time(where.operands[1])))
    return std::optional(where);
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      time_of(where.operands[is_left ? 1 : 0], now_ns, zone));
  EC_TRY(narrow(is_left ? op : turned(op), time_ns, span));
  return std::optional<Expr>();
}

}  // namespace edgecase::influxql
