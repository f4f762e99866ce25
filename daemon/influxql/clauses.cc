// Parts of statements, as several of them have them.
#include "influxql/statement.h"

#include <array>
#include <utility>

#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::influxql {
namespace {

// What InfluxDB says of a measurement's name with more parts than it has; it tells this place.
std::string too_many(const std::vector<std::string>& parts) {
  std::string made = "too many segments in ";
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    made += parts[i].empty() ? "." : '"' + parts[i] + "\".";
  return made + parts.back() + " at line 1, char 1";
}

// `m`, `/re/`, `rp.m`, `db.rp.m`, `db..m`; the last of them may be an expression.
Result<Source> parse_measurement(TokenReader& reader) {
  constexpr std::size_t kPartsMax = 3;
  Source source;
  std::vector<std::string> parts;
  for (;;) {
    EC_TRY(reader.count_node());
    // `db..m`: the policy is the default one.
    if (!parts.empty() && reader.next_is_joined(".")) {
      reader.take();
      parts.emplace_back();
      continue;
    }
    const Token token = reader.take_or_regex();
    if (token.kind == TokenKind::Regex) {
      source.regex = token.text;
      parts.emplace_back();
      break;
    }
    const bool is_default = parts.empty() && token.is_keyword("DEFAULT");
    if (token.kind != TokenKind::Identifier && !is_default)
      return TokenReader::unexpected(token, "identifier");
    parts.push_back(is_default ? std::string(wire::kDefaultNamespace) : token.text);
    if (!reader.next_is_joined(".")) break;
    reader.take();
  }
  if (parts.size() > kPartsMax) return TokenReader::wrong(too_many(parts));
  source.name = std::move(parts.back());
  if (parts.size() >= 2) source.policy = std::move(parts[parts.size() - 2]);
  if (parts.size() == kPartsMax) source.database = std::move(parts[0]);
  return source;
}

Result<Source> parse_source(TokenReader& reader) {
  EC_TRY(reader.count_node());
  if (!reader.take_if_symbol("(")) return parse_measurement(reader);
  const TokenReader::Nesting nesting(reader);
  EC_TRY(nesting.check());
  Source source;
  EC_TRY(reader.expect("SELECT"));
  EC_ASSIGN_OR_RETURN(source.inner, parse_select(reader));
  EC_TRY(reader.expect_symbol(")"));
  return source;
}

// An operator that compares or joins conditions, the outermost one; None: there is none.
Operator condition_in(const Expr& expression) {
  if (expression.kind == ExprKind::Chain) {
    const Operator last = expression.operators.back();
    if (precedence_of(last) <= precedence_of(Operator::Equal)) return last;
  }
  for (const Expr& operand : expression.operands) {
    const Operator found = condition_in(operand);
    if (found != Operator::None) return found;
  }
  return Operator::None;
}

Status parse_field(TokenReader& reader, SelectStatement& select) {
  const Token first = reader.peek();
  Field field;
  EC_ASSIGN_OR_RETURN(field.value, parse_expression_or_regex(reader));
  const Operator condition = condition_in(field.value);
  if (condition != Operator::None)
    return TokenReader::wrong("invalid operator " + std::string(text_of(condition)) +
                              " in SELECT clause at line " + std::to_string(first.at.line + 1) +
                              ", char " + std::to_string(first.at.column + 1) +
                              "; operator is intended for WHERE clause");
  if (reader.take_if("AS")) {
    EC_ASSIGN_OR_RETURN(field.alias, reader.expect_name());
  }
  select.fields.push_back(std::move(field));
  return ok();
}

// `fill(x)`, `tz(x)`: what is in the brackets. Nothing: it does not follow.
Result<std::optional<std::vector<Expr>>> parse_arguments(TokenReader& reader,
                                                         std::string_view upper_case,
                                                         const std::string& name) {
  if (!reader.next_is_word(upper_case)) return std::optional<std::vector<Expr>>();
  EC_ASSIGN_OR_RETURN(Expr call, parse_expression(reader));
  if (call.kind != ExprKind::Call) return TokenReader::wrong(name + " must be a function call");
  return std::optional(std::move(call.operands));
}

Status parse_fill(TokenReader& reader, SelectStatement& select) {
  EC_ASSIGN_OR_RETURN(const auto arguments, parse_arguments(reader, "FILL", "fill"));
  if (!arguments) return ok();
  constexpr std::string_view kNone =
      "fill requires an argument, e.g.: 0, null, none, previous, linear";
  constexpr std::string_view kWrong = "expected number argument in fill()";
  if (arguments->size() != 1) return TokenReader::wrong(kNone);
  const Expr& argument = arguments->front();
  select.has_fill = true;
  switch (argument.kind) {
    case ExprKind::Integer:
      select.fill_is_integer = true;
      select.fill_number = static_cast<double>(argument.integer);
      select.fill = Fill::Number;
      break;
    case ExprKind::Float:
      select.fill_number = argument.number;
      select.fill = Fill::Number;
      break;
    case ExprKind::Name: {
      static constexpr std::array<std::pair<std::string_view, Fill>, 4> kFills = {
          {{"null", Fill::Null},
           {"none", Fill::None},
           {"previous", Fill::Previous},
           {"linear", Fill::Linear}}};
      bool is_known = false;
      for (const auto& [name, fill] : kFills) {
        if (argument.text != name) continue;
        select.fill = fill;
        is_known = true;
      }
      if (!is_known) return TokenReader::wrong(kWrong);
      break;
    }
    default: return TokenReader::wrong(kWrong);
  }
  return ok();
}

// The last of all: `tz('Area/City')`.
Status parse_zone(TokenReader& reader, SelectStatement& select) {
  EC_ASSIGN_OR_RETURN(const auto arguments, parse_arguments(reader, "TZ", "tz"));
  if (!arguments) return ok();
  if (arguments->size() != 1) return TokenReader::wrong("tz requires exactly one argument");
  if (arguments->front().kind != ExprKind::Text)
    return TokenReader::wrong("expected string argument in tz()");
  select.time_zone = arguments->front().text;
  const bool is_known = wire::TimeZone::find(select.time_zone).ok();
  return is_known ? ok() : TokenReader::wrong("unable to find time zone " + select.time_zone);
}

}  // namespace

Result<std::vector<Source>> parse_sources(TokenReader& reader, Inner inner) {
  std::vector<Source> sources;
  do {
    if (inner == Inner::NotAllowed && reader.peek().is_symbol("("))
      return reader.unexpected("identifier");
    EC_ASSIGN_OR_RETURN(Source source, parse_source(reader));
    sources.push_back(std::move(source));
  } while (reader.take_if_symbol(","));
  return sources;
}

Status parse_where(TokenReader& reader, std::optional<Expr>& where) {
  if (!reader.take_if("WHERE")) return ok();
  EC_ASSIGN_OR_RETURN(where, parse_expression(reader));
  return ok();
}

Status parse_group_by(TokenReader& reader, std::vector<Expr>& dimensions) {
  if (!reader.take_if("GROUP")) return ok();
  EC_TRY(reader.expect("BY"));
  do {
    EC_ASSIGN_OR_RETURN(Expr dimension, parse_expression_or_regex(reader));
    dimensions.push_back(std::move(dimension));
  } while (reader.take_if_symbol(","));
  return ok();
}

// `ORDER BY time DESC`, `ORDER BY DESC`: there is no other order.
Status parse_order(TokenReader& reader, bool& is_descending) {
  if (!reader.take_if("ORDER")) return ok();
  EC_TRY(reader.expect("BY"));
  constexpr std::string_view kTimeOnly = "only ORDER BY time supported at this time";
  const bool is_named = reader.peek().kind == TokenKind::Identifier;
  if (is_named && reader.take().text != "time") return TokenReader::wrong(kTimeOnly);
  is_descending = reader.take_if("DESC");
  if (!is_descending && !reader.take_if("ASC") && !is_named)
    return reader.unexpected("identifier, ASC, DESC");
  if (!reader.peek().is_symbol(",")) return ok();
  while (reader.take_if_symbol(",")) {
    EC_TRY(reader.expect_name().status());
    if (!reader.take_if("DESC")) reader.take_if("ASC");
  }
  return TokenReader::wrong(kTimeOnly);
}

Status parse_count(TokenReader& reader, std::string_view keyword, std::int64_t& count) {
  if (!reader.take_if(keyword)) return ok();
  EC_ASSIGN_OR_RETURN(count, reader.expect_integer());
  return ok();
}

Status parse_on(TokenReader& reader, std::string& database) {
  if (!reader.take_if("ON")) return ok();
  EC_ASSIGN_OR_RETURN(database, reader.expect_name());
  return ok();
}

// What SHOW statements end with, in this order; each part may be missing.
Status parse_show_rest(TokenReader& reader, Statement& made) {
  EC_TRY(parse_order(reader, made.is_descending));
  EC_TRY(parse_count(reader, "LIMIT", made.limit));
  return parse_count(reader, "OFFSET", made.offset);
}

Status parse_from(TokenReader& reader, Statement& made) {
  if (!reader.take_if("FROM")) return ok();
  EC_ASSIGN_OR_RETURN(made.sources, parse_sources(reader, Inner::NotAllowed));
  return ok();
}

// Behind the word SELECT.
Result<std::unique_ptr<SelectStatement>> parse_select(TokenReader& reader) {
  auto select = std::make_unique<SelectStatement>();
  do {
    EC_TRY(parse_field(reader, *select));
  } while (reader.take_if_symbol(","));
  if (reader.take_if("INTO")) {
    EC_ASSIGN_OR_RETURN(select->into, parse_measurement(reader));
  }
  EC_TRY(reader.expect("FROM"));
  EC_ASSIGN_OR_RETURN(select->sources, parse_sources(reader, Inner::Allowed));
  EC_TRY(parse_where(reader, select->where));
  EC_TRY(parse_group_by(reader, select->group_by));
  EC_TRY(parse_fill(reader, *select));
  EC_TRY(parse_order(reader, select->is_descending));
  EC_TRY(parse_count(reader, "LIMIT", select->limit));
  EC_TRY(parse_count(reader, "OFFSET", select->offset));
  EC_TRY(parse_count(reader, "SLIMIT", select->series_limit));
  EC_TRY(parse_count(reader, "SOFFSET", select->series_offset));
  EC_TRY(parse_zone(reader, *select));
  return select;
}

}  // namespace edgecase::influxql
