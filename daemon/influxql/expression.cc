// A chain collects the operands of one precedence, so that the tree grows deeper with brackets
// alone. What binds more tightly is a chain inside it.
#include "influxql/statement.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace edgecase::influxql {
namespace {

constexpr std::string_view kOperand = "identifier, string, number, bool";
constexpr int kTightest = 5;

struct OperatorText {
  Operator op;
  std::string_view text;
  int precedence;
};
constexpr std::array kOperators = {
    OperatorText{Operator::Or, "OR", 1},      OperatorText{Operator::And, "AND", 2},
    OperatorText{Operator::Equal, "=", 3},    OperatorText{Operator::NotEqual, "!=", 3},
    OperatorText{Operator::Matches, "=~", 3}, OperatorText{Operator::NotMatches, "!~", 3},
    OperatorText{Operator::Less, "<", 3},     OperatorText{Operator::LessOrEqual, "<=", 3},
    OperatorText{Operator::Greater, ">", 3},  OperatorText{Operator::GreaterOrEqual, ">=", 3},
    OperatorText{Operator::Add, "+", 4},      OperatorText{Operator::Subtract, "-", 4},
    OperatorText{Operator::BitOr, "|", 4},    OperatorText{Operator::BitXor, "^", 4},
    OperatorText{Operator::Multiply, "*", 5}, OperatorText{Operator::Divide, "/", 5},
    OperatorText{Operator::Modulo, "%", 5},   OperatorText{Operator::BitAnd, "&", 5},
};

Operator operator_of(const Token& token) {
  if (token.kind != TokenKind::Symbol && token.kind != TokenKind::Keyword) return Operator::None;
  for (const OperatorText& each : kOperators) {
    if (each.text == token.text) return each.op;
  }
  return Operator::None;
}

Expr make(ExprKind kind, const Token& token) {
  Expr made;
  made.kind = kind;
  made.at = token.at;
  made.text = token.text;
  return made;
}

Result<Expr> parse_operand(TokenReader& reader);

// Chains of precedence `level` and of those that bind more tightly.
Result<Expr> parse_level(TokenReader& reader, int level) {
  if (level > kTightest) return parse_operand(reader);
  EC_ASSIGN_OR_RETURN(Expr first, parse_level(reader, level + 1));
  Operator op = operator_of(reader.peek());
  if (precedence_of(op) != level) return first;
  Expr chain;
  chain.kind = ExprKind::Chain;
  chain.at = first.at;
  chain.operands.push_back(std::move(first));
  chain.operators.push_back(Operator::None);
  while (precedence_of(op) == level) {
    reader.take();
    EC_TRY(reader.count_node());
    chain.operators.push_back(op);
    if (op == Operator::Matches || op == Operator::NotMatches) {
      const Token token = reader.take_or_regex();
      if (token.kind != TokenKind::Regex) return TokenReader::unexpected(token, "regex");
      chain.operands.push_back(make(ExprKind::Regex, token));
    } else {
      EC_ASSIGN_OR_RETURN(Expr next, parse_level(reader, level + 1));
      chain.operands.push_back(std::move(next));
    }
    op = operator_of(reader.peek());
  }
  return chain;
}

Result<Expr> parse_integer(const Token& token) {
  Expr made = make(ExprKind::Integer, token);
  const char* const begin = token.text.data();
  const char* const end = begin + token.text.size();
  if (std::from_chars(begin, end, made.integer).ec == std::errc{}) return made;
  std::uint64_t large = 0;
  if (std::from_chars(begin, end, large).ec != std::errc{})
    return TokenReader::wrong(token, "unable to parse integer");
  made.kind = ExprKind::Unsigned;
  made.integer = static_cast<std::int64_t>(large);
  return made;
}

Result<Expr> parse_float(const Token& token) {
  Expr made = make(ExprKind::Float, token);
  const char* const end = token.text.data() + token.text.size();
  const auto [stop, error] = std::from_chars(token.text.data(), end, made.number);
  if (error != std::errc{} || stop != end || !std::isfinite(made.number))
    return TokenReader::wrong(token, "unable to parse number");
  return made;
}

// `::float` and the like behind a name; `::field` and `::tag` behind `*` too.
Result<Cast> parse_cast(TokenReader& reader, bool is_wildcard) {
  if (!reader.next_is_joined("::")) return Cast::None;
  static constexpr std::array<std::pair<std::string_view, Cast>, 5> kTypes = {{
      {"float", Cast::Float},
      {"integer", Cast::Integer},
      {"unsigned", Cast::Unsigned},
      {"string", Cast::String},
      {"boolean", Cast::Boolean},
  }};
  const Token token = reader.take_joined(reader.take());
  if (token.is_keyword("FIELD")) return Cast::Field;
  if (token.is_keyword("TAG")) return Cast::Tag;
  if (is_wildcard) return TokenReader::unexpected(token, "field, tag");
  if (token.kind != TokenKind::Identifier)
    return TokenReader::unexpected(token, "float, integer, string, boolean, field, tag");
  for (const auto& [name, cast] : kTypes) {
    if (token.text == name) return cast;
  }
  return TokenReader::unexpected(token, "float, integer, unsigned, string, boolean, field, tag");
}

Result<Expr> parse_call(TokenReader& reader, const Token& name) {
  const TokenReader::Nesting nesting(reader);
  EC_TRY(nesting.check());
  Expr call = make(ExprKind::Call, name);
  std::transform(call.text.begin(), call.text.end(), call.text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  EC_TRY(reader.expect_symbol("("));
  reader.look_beyond(true);
  if (reader.take_if_symbol(")")) return call;
  do {
    EC_ASSIGN_OR_RETURN(Expr argument, parse_expression_or_regex(reader));
    call.operands.push_back(std::move(argument));
  } while (reader.take_if_symbol(","));
  EC_TRY(reader.expect_symbol(")"));
  return call;
}

// `a.b."c"` is one name.
Result<Expr> parse_name(TokenReader& reader, const Token& first) {
  Expr name = make(ExprKind::Name, first);
  while (reader.next_is_joined(".")) {
    reader.take();
    EC_ASSIGN_OR_RETURN(const std::string next, reader.expect_name());
    name.text += '.' + next;
  }
  EC_ASSIGN_OR_RETURN(name.cast, parse_cast(reader, false));
  return name;
}

Result<Expr> parse_distinct(TokenReader& reader, const Token& token) {
  Expr made = make(ExprKind::Distinct, token);
  if (reader.peek().is_symbol("(")) {
    Token name = token;
    name.text = "distinct";
    return parse_call(reader, name);
  }
  EC_ASSIGN_OR_RETURN(made.text, reader.expect_name());
  return made;
}

// A number has its own sign; anything else is multiplied by it.
Result<Expr> parse_signed(TokenReader& reader, const Token& sign) {
  const bool is_negative = sign.text == "-";
  const TokenReader::Nesting nesting(reader);
  EC_TRY(nesting.check());
  const Token& next = reader.peek();
  const bool is_operand = next.kind == TokenKind::Number || next.kind == TokenKind::Integer ||
                          next.kind == TokenKind::Duration || next.kind == TokenKind::Identifier ||
                          next.is_symbol("(");
  if (!is_operand) return reader.unexpected("identifier, number, duration, (");
  EC_ASSIGN_OR_RETURN(Expr operand, parse_operand(reader));
  if (!is_negative) return operand;
  switch (operand.kind) {
    case ExprKind::Float: operand.number = -operand.number; return operand;
    case ExprKind::Integer:
    case ExprKind::Duration: operand.integer = -operand.integer; return operand;
    case ExprKind::Unsigned:
      // -2^63 alone is one more than INT64_MAX.
      if (operand.integer != INT64_MIN)
        return TokenReader::wrong(sign, "constant -" + operand.text + " underflows int64");
      operand.kind = ExprKind::Integer;
      return operand;
    default: break;
  }
  Expr minus_one;
  minus_one.kind = ExprKind::Integer;
  minus_one.at = sign.at;
  minus_one.integer = -1;
  Expr product;
  product.kind = ExprKind::Chain;
  product.at = sign.at;
  product.operands.push_back(std::move(minus_one));
  product.operands.push_back(std::move(operand));
  product.operators = {Operator::None, Operator::Multiply};
  return product;
}

Result<Expr> parse_group(TokenReader& reader, const Token& token) {
  const TokenReader::Nesting nesting(reader);
  EC_TRY(nesting.check());
  Expr group = make(ExprKind::Group, token);
  EC_ASSIGN_OR_RETURN(Expr inside, parse_expression(reader));
  EC_TRY(reader.expect_symbol(")"));
  group.operands.push_back(std::move(inside));
  return group;
}

Result<Expr> parse_operand(TokenReader& reader) {
  EC_TRY(reader.count_node());
  const Token token = reader.take();
  switch (token.kind) {
    case TokenKind::Identifier:
      // A blank between them makes it a name, as there.
      if (reader.peek().is_symbol("(") && reader.peek().begin == token.end)
        return parse_call(reader, token);
      return parse_name(reader, token);
    case TokenKind::String: return make(ExprKind::Text, token);
    case TokenKind::Number: return parse_float(token);
    case TokenKind::Integer: return parse_integer(token);
    case TokenKind::Duration: {
      const auto duration = parse_duration_literal(token.text);
      if (!duration) return TokenReader::wrong("invalid duration");
      Expr made = make(ExprKind::Duration, token);
      made.integer = *duration;
      return made;
    }
    default: break;
  }
  if (token.is_keyword("TRUE") || token.is_keyword("FALSE")) {
    Expr made = make(ExprKind::Bool, token);
    made.integer = token.text == "TRUE" ? 1 : 0;
    return made;
  }
  if (token.is_keyword("DISTINCT")) return parse_distinct(reader, token);
  if (token.is_symbol("(")) return parse_group(reader, token);
  if (token.is_symbol("+") || token.is_symbol("-")) return parse_signed(reader, token);
  if (token.is_symbol("*")) {
    Expr made = make(ExprKind::Wildcard, token);
    EC_ASSIGN_OR_RETURN(made.cast, parse_cast(reader, true));
    return made;
  }
  return TokenReader::unexpected(token, kOperand);
}

}  // namespace

std::string_view text_of(Operator op) {
  for (const OperatorText& each : kOperators) {
    if (each.op == op) return each.text;
  }
  return {};
}

int precedence_of(Operator op) {
  for (const OperatorText& each : kOperators) {
    if (each.op == op) return each.precedence;
  }
  return 0;
}

Result<Expr> parse_expression(TokenReader& reader) {
  return parse_level(reader, 1);
}

Result<Expr> parse_expression_or_regex(TokenReader& reader) {
  const Token& next = reader.peek();
  if (next.kind != TokenKind::Regex && !next.is_symbol("/")) return parse_expression(reader);
  EC_TRY(reader.count_node());
  const Token token = reader.take_or_regex();
  if (token.kind != TokenKind::Regex) return TokenReader::unexpected(token, "regex");
  return make(ExprKind::Regex, token);
}

}  // namespace edgecase::influxql
