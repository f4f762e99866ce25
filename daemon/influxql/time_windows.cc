#include "influxql/time_windows.h"

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

std::string_view type_of(const Expr& expression) {
  switch (expression.kind) {
    case ExprKind::Bool: return "*influxql.BooleanLiteral";
    case ExprKind::Text: return "*influxql.StringLiteral";
    case ExprKind::Call: return "*influxql.Call";
    case ExprKind::Regex: return "*influxql.RegexLiteral";
    default: return "*influxql.VarRef";
  }
}

Status not_compatible(const Expr& expression) {
  return invalid_argument("invalid operation: time and " + std::string(type_of(expression)) +
                          " are not compatible");
}

bool begins_as_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  return text.size() >= kForm.size() &&
         std::equal(kForm.begin(), kForm.end(), text.begin(), [](char form, char c) {
           return form == 'd' ? c >= '0' && c <= '9' : c == form;
         });
}

// "2020-01-01" and "2020-01-01 14:00:00.5" where tz() is, or in UTC; or RFC 3339.
Result<std::int64_t> time_of_text(const Expr& expression, const wire::TimeZone* zone) {
  const std::string& text = expression.text;
  if (!begins_as_date(text)) return not_compatible(expression);
  const Status bad = invalid_argument("invalid timestamp string");
  auto time = wire::parse_date_time(text);
  if (!time.ok()) return bad;
  const bool has_blank = time->has_clock && text.find(' ') != std::string::npos;
  if (time->has_clock && has_blank == time->offset_seconds.has_value()) return bad;
  if (!time->offset_seconds && zone == nullptr) time->offset_seconds = 0;
  auto time_ns = wire::instant_of(*time, text, zone);
  return time_ns.ok() ? std::move(time_ns) : Result<std::int64_t>(bad);
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
    case ExprKind::Text: return time_of_text(expression, zone);
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
  return not_compatible(expression);
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

namespace {

// Sums that stay between InfluxDB's first and last time.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return b < 0 ? kMinTime : kMaxTime;
  return result < kMinTime ? kMinTime : result > kMaxTime ? kMaxTime : result;
}

// Never negative.
std::int64_t rest_of(std::int64_t time_ns, std::int64_t every_ns) {
  const std::int64_t rest = time_ns % every_ns;
  return rest < 0 ? rest + every_ns : rest;
}

std::int64_t floor_seconds(std::int64_t time_ns) {
  const std::int64_t whole = time_ns / wire::kNanosecondsPerSecond;
  return time_ns % wire::kNanosecondsPerSecond < 0 ? whole - 1 : whole;
}

}  // namespace

WindowGrid::WindowGrid(std::int64_t every_ns, std::int64_t offset_ns, const wire::TimeZone* zone,
                       const TimeSpan& span)
    : every_ns_(every_ns), offset_ns_(offset_ns), zone_(zone), span_(span) {}

std::int64_t WindowGrid::zone_offset_ns(std::int64_t time_ns) const {
  if (zone_ == nullptr) return 0;
  return zone_->offset_at(floor_seconds(time_ns)) * wire::kNanosecondsPerSecond;
}

// Windows are not moved by a clock's change that is as long as they are.
bool WindowGrid::is_small(std::int64_t shift_ns) const {
  return shift_ns != 0 && shift_ns > -every_ns_ && shift_ns < every_ns_;
}

Window WindowGrid::window_of(std::int64_t time_ns) const {
  if (!is_cut()) return {span_.from_ns, span_.to_ns + 1};
  const std::int64_t time = sum(time_ns, -offset_ns_);
  const std::int64_t zone = zone_offset_ns(time);
  // Each by itself: their sum may not fit.
  std::int64_t behind = rest_of(time, every_ns_);
  const std::int64_t zone_missing = every_ns_ - rest_of(zone, every_ns_);
  behind = behind >= zone_missing ? behind - zone_missing : behind - zone_missing + every_ns_;

  Window window{sum(time, -behind), sum(time, every_ns_ - behind)};
  if (zone_ != nullptr) {
    const std::int64_t shift = zone - zone_offset_ns(window.from_ns);
    if (is_small(shift)) window.from_ns = sum(window.from_ns, shift);

    // Clocks that go back lengthen the window before; ones that go forward shorten it, unless the
    // change lies behind it.
    const std::int64_t end_zone = zone_offset_ns(window.end_ns);
    const std::int64_t end_shift = zone - end_zone;
    if (is_small(end_shift)) {
      const std::int64_t end = sum(window.end_ns, end_shift);
      if (end_shift > 0 || zone_offset_ns(end) == end_zone) window.end_ns = end;
    }
  }
  window.from_ns = sum(window.from_ns, offset_ns_);
  window.end_ns = sum(window.end_ns, offset_ns_);
  return window;
}

std::int64_t WindowGrid::shown_time(std::int64_t time_ns) const {
  const std::int64_t from = window_of(time_ns).from_ns;
  return from == kMinTime ? 0 : from;
}

std::int64_t WindowGrid::step(std::int64_t from_ns, bool is_descending,
                              std::int64_t& zone_offset_ns) const {
  std::int64_t next = sum(from_ns, is_descending ? -every_ns_ : every_ns_);
  if (zone_ == nullptr) return next;
  const std::int64_t offset = this->zone_offset_ns(next - 1);
  if (offset == zone_offset_ns) return next;
  const std::int64_t shift = zone_offset_ns - offset;
  if (is_small(shift)) next = sum(next, shift);
  zone_offset_ns = offset;
  return next;
}

}  // namespace edgecase::influxql
