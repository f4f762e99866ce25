#include "influxql/token_reader.h"

#include <algorithm>
#include <charconv>

#include "wire/time_text.h"

namespace edgecase::influxql {
namespace {

constexpr std::size_t kNamedBytesMax = 64;  // of a token in an error

// InfluxDB tells a text in quotes, and a regular expression, by what stands before it.
std::string place_of(const Token& token) {
  const bool is_delimited = token.kind == TokenKind::String || token.kind == TokenKind::BadString ||
                            token.kind == TokenKind::Regex || token.kind == TokenKind::BadRegex;
  const bool is_before = is_delimited && !token.is_bound && token.at.column > 0;
  return " at line " + std::to_string(token.at.line + 1) + ", char " +
         std::to_string(token.at.column + (is_before ? 0 : 1));
}

}  // namespace

Token TokenReader::take_or_regex() {
  if (has_next_) lexer_.go_back(next_);
  has_next_ = false;
  Token token = bound(lexer_.next_or_regex());
  taken_end_ = token.end;
  return token;
}

Token TokenReader::take_joined(const Token& before) {
  const Token& next = peek();
  if (next.kind == TokenKind::End || next.begin == before.end) return take();
  Token blanks;
  blanks.kind = TokenKind::Unknown;
  blanks.text = lexer_.text().substr(before.end, next.begin - before.end);
  blanks.at = before.at;
  blanks.at.column += static_cast<std::uint32_t>(before.end - before.begin);
  return blanks;
}

// The place stays that of `$name`.
Token TokenReader::bound(Token token) const {
  if (token.kind != TokenKind::Parameter) return token;
  const auto found = parameters_.find(token.text);
  if (found == parameters_.end()) {
    token.kind = TokenKind::BadParameter;
    return token;
  }
  token.is_bound = true;
  token.text = found->second.text;
  switch (found->second.kind) {
    case Parameter::Kind::Text: token.kind = TokenKind::String; break;
    case Parameter::Kind::Number: token.kind = TokenKind::Number; break;
    case Parameter::Kind::Integer: token.kind = TokenKind::Integer; break;
    case Parameter::Kind::Bool:
      token.kind = TokenKind::Keyword;
      token.text = token.text == "true" ? "TRUE" : "FALSE";
      break;
    case Parameter::Kind::Duration: token.kind = TokenKind::Duration; break;
    case Parameter::Kind::Regex: token.kind = TokenKind::Regex; break;
    case Parameter::Kind::Name:
      token.kind = TokenKind::Identifier;
      token.is_quoted = true;
      break;
  }
  return token;
}

bool TokenReader::take_if(TokenKind kind, std::string_view text) {
  if (!peek().is(kind, text)) return false;
  take();
  return true;
}

bool TokenReader::next_is_word(std::string_view upper_case) {
  const Token& token = peek();
  if (token.kind != TokenKind::Identifier || token.is_quoted) return false;
  return std::equal(token.text.begin(), token.text.end(), upper_case.begin(), upper_case.end(),
                    [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 32 : a) == b; });
}

bool TokenReader::take_if_word(std::string_view upper_case) {
  if (!next_is_word(upper_case)) return false;
  take();
  return true;
}

Status TokenReader::wrong(std::string_view what) {
  return invalid_argument("error parsing query: " + std::string(what));
}

Status TokenReader::wrong(const Token& token, std::string_view what) {
  return wrong(std::string(what) + place_of(token));
}

Status TokenReader::unexpected(const Token& token, std::string_view wanted) {
  const std::string name = name_of(token).substr(0, kNamedBytesMax);
  switch (token.kind) {
    case TokenKind::BadString: return wrong(token, "no closing quote behind " + name);
    case TokenKind::BadEscape: return wrong(token, "no such escape: " + name);
    case TokenKind::BadRegex: return wrong(token, "bad regex: no closing slash");
    case TokenKind::BadComment: return wrong(token, "comment without an end");
    case TokenKind::BadParameter: return wrong("missing parameter: " + name);
    default: return wrong(token, "found " + name + ", expected " + std::string(wanted));
  }
}

Status TokenReader::unexpected(std::string_view wanted) {
  return unexpected(peek(), wanted);
}

Status TokenReader::expect(std::string_view keyword) {
  return take_if(keyword) ? ok() : unexpected(keyword);
}

Status TokenReader::expect_symbol(std::string_view symbol) {
  return take_if_symbol(symbol) ? ok() : unexpected(symbol);
}

Result<std::string> TokenReader::expect_name() {
  const Token token = take();
  if (token.kind == TokenKind::Identifier) return token.text;
  // A keyword there, and the name of a namespace here.
  if (token.is_keyword("DEFAULT"))
    return std::string(lexer_.text().substr(token.begin, token.end - token.begin));
  if (token.is_bound && token.kind == TokenKind::String) return token.text;
  return unexpected(token, "identifier");
}

Result<std::int64_t> TokenReader::expect_integer() {
  const Token token = take();
  if (token.kind != TokenKind::Integer) return unexpected(token, "integer");
  std::int64_t number = 0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, number).ec != std::errc{})
    return wrong(token, "unable to parse integer");
  if (number < 0) return unexpected(token, "integer that is not negative");
  return number;
}

Result<std::int64_t> TokenReader::expect_duration() {
  const Token token = take();
  if (token.is_keyword("INF")) return std::int64_t{0};
  if (token.kind != TokenKind::Duration) return unexpected(token, "duration");
  auto duration = parse_duration_literal(token.text);
  if (!duration) return wrong(token, "invalid duration");
  return *duration;
}

Status TokenReader::count_node() {
  if (++nodes_ <= kNodesMax) return ok();
  return wrong(peek(), "a statement has at most " + std::to_string(kNodesMax) +
                           " names, numbers and operators");
}

Status TokenReader::Nesting::check() const {
  if (reader_.nesting_ <= kNestingMax) return ok();
  return wrong(reader_.peek(),
               "brackets lie in each other at most " + std::to_string(kNestingMax) + " deep");
}

std::optional<std::int64_t> parse_duration_literal(std::string_view text) {
  // `u` and `µ` are microseconds here.
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_micro = text.substr(i, 2) == "µ";
    const char behind = i + 1 < text.size() ? text[i + 1] : '\0';
    if (is_micro || (text[i] == 'u' && behind != 's')) {
      plain += "us";
      i += is_micro ? 1 : 0;
    } else {
      plain.push_back(text[i]);
    }
  }
  const auto duration = wire::parse_duration_ns(plain);
  if (!duration.ok()) return std::nullopt;
  return *duration;
}

}  // namespace edgecase::influxql
