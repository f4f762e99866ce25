#include "influxql/select_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

namespace edgecase::influxql {
namespace {

bool is_plain_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string in_quotes(std::string_view text, char quote) {
  std::string made(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') made += '\\';
    if (c == '\n') {
      made += "\\n";
    } else {
      made += c;
    }
  }
  return made + quote;
}

std::string_view text_of_cast(Cast cast) {
  switch (cast) {
    case Cast::None: return {};
    case Cast::Float: return "::float";
    case Cast::Integer: return "::integer";
    case Cast::Unsigned: return "::unsigned";
    case Cast::String: return "::string";
    case Cast::Boolean: return "::boolean";
    case Cast::Field: return "::field";
    case Cast::Tag: return "::tag";
  }
  return {};
}

void append_names(const Expr& expression, std::string& names) {
  if (expression.kind == ExprKind::Name || expression.kind == ExprKind::Call ||
      expression.kind == ExprKind::Distinct) {
    if (!names.empty()) names += '_';
    names += expression.kind == ExprKind::Distinct ? "distinct" : expression.text;
    return;
  }
  for (const Expr& operand : expression.operands) append_names(operand, names);
}

// The call that has a wildcard: the innermost one.
Expr& innermost_call(Expr& call) {
  Expr* at = &call;
  while (!at->operands.empty() && at->operands.front().kind == ExprKind::Call)
    at = &at->operands.front();
  return *at;
}

// Which types a wildcard in a function stands for.
bool takes(std::string_view function, Cell::Kind kind) {
  static constexpr std::array<std::string_view, 7> kAny = {"count",   "first", "last",  "distinct",
                                                           "elapsed", "mode",  "sample"};
  switch (kind) {
    case Cell::Kind::Float:
    case Cell::Kind::Integer: return true;
    case Cell::Kind::Text:
    case Cell::Kind::Bool: break;
    default: return false;
  }
  if (std::find(kAny.begin(), kAny.end(), function) != kAny.end()) return true;
  return kind == Cell::Kind::Bool && (function == "min" || function == "max");
}

Expr name_expression(const NamedKind& stored) {
  Expr made;
  made.text = stored.name;
  if (stored.kind.is_tag) made.cast = Cast::Tag;
  return made;
}

Result<std::optional<Pattern>> pattern_of(const Expr& expression) {
  if (expression.kind != ExprKind::Regex) return std::optional<Pattern>();
  EC_ASSIGN_OR_RETURN(Pattern pattern, Pattern::compile(expression.text));
  return std::optional(std::move(pattern));
}

bool has_kind(const Expr& expression, ExprKind kind) {
  return expression.kind == kind ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [&](const Expr& each) { return has_kind(each, kind); });
}

Status expand_bare(const Field& field, const std::vector<NamedKind>& stored,
                   std::vector<Field>& made) {
  EC_ASSIGN_OR_RETURN(const std::optional<Pattern> pattern, pattern_of(field.value));
  for (const NamedKind& each : stored) {
    if (field.value.cast == Cast::Field && each.kind.is_tag) continue;
    if (field.value.cast == Cast::Tag && !each.kind.is_tag) continue;
    if (pattern && !pattern->matches(each.name)) continue;
    made.push_back({name_expression(each), {}});
  }
  return ok();
}

Status expand_call(Field field, const std::vector<NamedKind>& stored, std::vector<Field>& made) {
  Expr& call = innermost_call(field.value);
  if (call.operands.empty()) {
    made.push_back(std::move(field));
    return ok();
  }
  const Expr wildcard = call.operands.front();
  if (wildcard.kind != ExprKind::Wildcard && wildcard.kind != ExprKind::Regex) {
    made.push_back(std::move(field));
    return ok();
  }
  if (wildcard.cast == Cast::Tag)
    return invalid_argument("unable to use tag wildcard in " + call.text + "()");
  EC_ASSIGN_OR_RETURN(const std::optional<Pattern> pattern, pattern_of(wildcard));
  const std::string name = name_of(field);
  for (const NamedKind& each : stored) {
    if (each.kind.is_tag || !takes(call.text, each.kind.kind)) continue;
    if (pattern && !pattern->matches(each.name)) continue;
    call.operands.front() = name_expression(each);
    made.push_back({field.value, name + "_" + each.name});
  }
  return ok();
}

}  // namespace

std::string_view text_of(Cell::Kind kind) {
  switch (kind) {
    case Cell::Kind::Null: return "unknown";
    case Cell::Kind::Time: return "time";
    case Cell::Kind::Integer: return "integer";
    case Cell::Kind::Float: return "float";
    case Cell::Kind::Bool: return "boolean";
    case Cell::Kind::Text: return "string";
  }
  return {};
}

std::string text_of(const Expr& expression) {
  switch (expression.kind) {
    case ExprKind::Name:
      return (is_plain_name(expression.text) ? expression.text : in_quotes(expression.text, '"')) +
             std::string(text_of_cast(expression.cast));
    case ExprKind::Call: {
      std::string made = expression.text + "(";
      for (std::size_t i = 0; i < expression.operands.size(); ++i)
        made += (i == 0 ? "" : ", ") + text_of(expression.operands[i]);
      return made + ")";
    }
    case ExprKind::Chain: {
      std::string made = text_of(expression.operands.front());
      for (std::size_t i = 1; i < expression.operands.size(); ++i)
        made += " " + std::string(text_of(expression.operators[i])) + " " +
                text_of(expression.operands[i]);
      return made;
    }
    case ExprKind::Group: return "(" + text_of(expression.operands.front()) + ")";
    case ExprKind::Float: {
      std::array<char, 400> made;
      const int bytes = std::snprintf(made.data(), made.size(), "%.3f", expression.number);
      return {made.data(), static_cast<std::size_t>(bytes)};
    }
    case ExprKind::Integer: return std::to_string(expression.integer);
    case ExprKind::Unsigned: return std::to_string(static_cast<std::uint64_t>(expression.integer));
    case ExprKind::Text: return in_quotes(expression.text, '\'');
    case ExprKind::Bool: return expression.integer != 0 ? "true" : "false";
    case ExprKind::Duration: return std::to_string(expression.integer) + "ns";
    case ExprKind::Regex: return "/" + expression.text + "/";
    case ExprKind::Wildcard: return "*" + std::string(text_of_cast(expression.cast));
    case ExprKind::Distinct: return "DISTINCT " + expression.text;
  }
  return {};
}

std::string name_of(const Field& field) {
  if (!field.alias.empty()) return field.alias;
  std::string names;
  append_names(field.value, names);
  return names;
}

void each_name(Expr& expression, const std::function<void(Expr& name)>& visit) {
  if (expression.kind == ExprKind::Name) return visit(expression);
  for (Expr& operand : expression.operands) each_name(operand, visit);
}

void each_leaf(const Expr& expression, const std::function<void(const Expr& leaf)>& visit) {
  const bool is_call = expression.kind == ExprKind::Call && !is_math_function(expression.text);
  if (is_call || expression.kind == ExprKind::Name) return visit(expression);
  for (const Expr& operand : expression.operands) each_leaf(operand, visit);
}

bool is_literal(const Expr& expression) {
  switch (expression.kind) {
    case ExprKind::Name:
    case ExprKind::Call:
    case ExprKind::Wildcard:
    case ExprKind::Regex:
    case ExprKind::Distinct: return false;
    default: break;
  }
  return std::all_of(expression.operands.begin(), expression.operands.end(), is_literal);
}

void make_calls_of_distinct(Expr& expression) {
  for (Expr& operand : expression.operands) make_calls_of_distinct(operand);
  if (expression.kind != ExprKind::Distinct) return;
  Expr name;
  name.at = expression.at;
  name.text = std::move(expression.text);
  expression.kind = ExprKind::Call;
  expression.text = "distinct";
  expression.operands.clear();
  expression.operands.push_back(std::move(name));
}

bool has_wildcard(const std::vector<Field>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const Field& field) {
    return has_kind(field.value, ExprKind::Wildcard) || has_kind(field.value, ExprKind::Regex);
  });
}

Result<std::vector<Field>> expand_wildcards(std::vector<Field> fields,
                                            const std::vector<NamedKind>& stored) {
  std::vector<Field> made;
  for (Field& field : fields) {
    switch (field.value.kind) {
      case ExprKind::Wildcard:
      case ExprKind::Regex: EC_TRY(expand_bare(field, stored, made)); break;
      case ExprKind::Call: EC_TRY(expand_call(std::move(field), stored, made)); break;
      default:
        if (has_kind(field.value, ExprKind::Wildcard))
          return invalid_argument("unsupported expression with wildcard: " + text_of(field.value));
        if (has_kind(field.value, ExprKind::Regex))
          return invalid_argument("unsupported expression with regex field: " +
                                  text_of(field.value));
        made.push_back(std::move(field));
    }
  }
  return made;
}

std::vector<const Expr*> names_beside(const Field& field) {
  std::vector<const Expr*> names;
  const Expr& call = field.value;
  if (call.kind != ExprKind::Call || (call.text != "top" && call.text != "bottom")) return names;
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    if (call.operands[i].kind == ExprKind::Name) names.push_back(&call.operands[i]);
  }
  return names;
}

std::vector<std::string> column_names(const std::vector<Field>& fields) {
  struct Named {
    std::string alias, name;
  };
  std::vector<Named> columns;
  for (const Field& field : fields) {
    columns.push_back({field.alias, name_of(field)});
    for (const Expr* name : names_beside(field)) columns.push_back({{}, name->text});
  }
  std::map<std::string, int> taken;
  for (const Named& column : columns) {
    if (!column.alias.empty()) taken[column.alias] = 1;
  }
  std::vector<std::string> names;
  for (const Named& column : columns) {
    if (!column.alias.empty()) {
      names.push_back(column.alias);
      continue;
    }
    std::string name = column.name;
    if (const auto found = taken.find(name); found != taken.end()) {
      int count = found->second;
      std::string with_count = name + "_" + std::to_string(count);
      while (taken.contains(with_count)) with_count = name + "_" + std::to_string(++count);
      found->second = count + 1;
      name = std::move(with_count);
    }
    ++taken[name];
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace edgecase::influxql
