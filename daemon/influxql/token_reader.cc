#include "influxql/token_reader.h"

#include <algorithm>
#include <array>
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

namespace {

// Each between blanks.
constexpr std::string_view kKeywords =
    " "
    "ALL ALTER ANALYZE AND ANY AS ASC BEGIN BY CARDINALITY CONTINUOUS CREATE "
    "DATABASE DATABASES DEFAULT DELETE DESC DESTINATIONS DIAGNOSTICS DISTINCT DROP "
    "DURATION END EVERY EXACT EXPLAIN FALSE FIELD FOR FROM GRANT GRANTS GROUP GROUPS "
    "IN INF INSERT INTO KEY KEYS KILL LIMIT MEASUREMENT MEASUREMENTS NAME OFFSET ON "
    "OR ORDER PASSWORD POLICIES POLICY PRIVILEGES QUERIES QUERY READ REPLICATION "
    "RESAMPLE RETENTION REVOKE SELECT SERIES SET SHARD SHARDS SHOW SLIMIT SOFFSET "
    "STATS SUBSCRIPTION SUBSCRIPTIONS TAG TO TRUE USER USERS VALUES WHERE WITH WRITE ";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
bool is_inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

}  // namespace

bool is_keyword(std::string_view upper_case) {
  const std::string between = " " + std::string(upper_case) + " ";
  return kKeywords.find(between) != std::string_view::npos;
}

std::string name_of(const Token& token) {
  switch (token.kind) {
    case TokenKind::End: return "EOF";
    case TokenKind::Parameter: return "$" + token.text;
    default: return token.text;
  }
}

void Lexer::step() {
  if (text_[byte_] == '\n') {
    ++at_.line;
    at_.column = 0;
  } else if (!is_inside_character(text_[byte_])) {
    ++at_.column;
  }
  ++byte_;
}

void Lexer::go_back(const Token& token) {
  byte_ = token.begin;
  at_ = token.at;
}

Token Lexer::begin_token() const {
  Token token;
  token.at = at_;
  token.begin = token.end = byte_;
  return token;
}

Token Lexer::finish(Token token) {
  token.end = byte_;
  const bool is_word =
      token.kind == TokenKind::Keyword || (token.kind == TokenKind::Identifier && !token.is_quoted);
  const bool is_before_any =
      token.kind == TokenKind::Symbol &&
      (token.text == "," || token.text == "." || token.text == "=~" || token.text == "!~");
  note_end(is_word || is_before_any);
  return token;
}

// InfluxDB looks a character further behind a word, and before most things that follow a comma.
// Blanks at the end do not count.
void Lexer::note_end(bool is_looked_beyond) {
  end_ = at_;
  look_beyond(is_looked_beyond);
}

// False: a comment that does not end, which is `bad`.
bool Lexer::skip_blanks(Token& bad) {
  while (!at_end()) {
    if (is_blank(peek())) {
      step();
    } else if (peek() == '-' && peek(1) == '-') {
      while (!at_end() && peek() != '\n') step();
      note_end(true);
    } else if (peek() == '/' && peek(1) == '*') {
      bad = begin_token();
      const std::size_t end = text_.find("*/", byte_ + 2);
      if (end == std::string_view::npos) {
        bad.kind = TokenKind::BadComment;
        bad.text = "/*";
        while (!at_end()) step();
        bad = finish(std::move(bad));
        return false;
      }
      while (byte_ < end + 2) step();
      note_end(false);
    } else {
      return true;
    }
  }
  return true;
}

Token Lexer::next() {
  Token bad;
  if (!skip_blanks(bad)) return bad;
  if (at_end()) {
    Token token = begin_token();
    token.at = end_;
    if (is_looked_beyond_) ++token.at.column;
    return token;
  }
  const char c = peek();
  if (is_letter(c) || c == '_') return read_word();
  if (c == '"' || c == '\'') return read_quoted();
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return read_number();
  if (c == '$') return read_parameter();
  return read_symbol();
}

Token Lexer::next_or_regex() {
  Token bad;
  if (!skip_blanks(bad)) return bad;
  return peek() == '/' ? read_regex() : next();
}

Token Lexer::read_word() {
  Token token = begin_token();
  while (!at_end() && is_word(peek())) step();
  token.text = text_.substr(token.begin, byte_ - token.begin);
  std::string word = token.text;
  std::transform(word.begin(), word.end(), word.begin(), upper);
  token.kind = is_keyword(word) ? TokenKind::Keyword : TokenKind::Identifier;
  if (token.kind == TokenKind::Keyword) token.text = std::move(word);
  return finish(std::move(token));
}

// Escapes are `\n`, `\\` and the two quotes.
Token Lexer::read_quoted() {
  Token token = begin_token();
  const char quote = peek();
  token.kind = quote == '"' ? TokenKind::Identifier : TokenKind::String;
  token.is_quoted = quote == '"';
  step();
  while (!at_end() && peek() != '\n') {
    char c = peek();
    step();
    if (c == quote) return finish(std::move(token));
    if (c == '\\' && !at_end()) {
      c = peek();
      if (c != 'n' && c != '\\' && c != '"' && c != '\'') {
        token.kind = TokenKind::BadEscape;
        token.text = {'\\', c};
        return finish(std::move(token));
      }
      step();
      if (c == 'n') c = '\n';
    }
    token.text.push_back(c);
  }
  token.kind = TokenKind::BadString;
  return finish(std::move(token));
}

// Digits with letters behind them are a duration, whatever the letters: parse_duration_ns judges.
Token Lexer::read_number() {
  Token token = begin_token();
  token.kind = TokenKind::Integer;
  while (is_digit(peek())) step();
  std::size_t end = byte_;  // a point alone is no part of its text
  if (peek() == '.') {
    token.kind = TokenKind::Number;
    step();
    for (; is_digit(peek()); end = byte_) step();
  } else {
    const auto is_unit = [this] {
      return is_letter(peek()) || (peek() == '\xC2' && peek(1) == '\xB5');  // µ
    };
    if (is_unit()) token.kind = TokenKind::Duration;
    while (is_unit()) {
      while (is_unit()) {
        if (!is_letter(peek())) step();
        step();
      }
      while (is_digit(peek())) step();
    }
    end = byte_;
  }
  token.text = text_.substr(token.begin, end - token.begin);
  return finish(std::move(token));
}

Token Lexer::read_parameter() {
  Token token = begin_token();
  step();
  const std::size_t name = byte_;
  if (peek() == '"') {
    Token quoted = read_quoted();
    token.kind = quoted.kind == TokenKind::Identifier ? TokenKind::Parameter : quoted.kind;
    token.text = std::move(quoted.text);
    return finish(std::move(token));
  }
  while (!at_end() && is_word(peek())) step();
  token.kind = byte_ == name ? TokenKind::Unknown : TokenKind::Parameter;
  token.text = byte_ == name ? "$" : text_.substr(name, byte_ - name);
  return finish(std::move(token));
}

// `\/` is a slash; every other `\` is the expression's own.
Token Lexer::read_regex() {
  Token token = begin_token();
  token.kind = TokenKind::Regex;
  step();
  for (;; step()) {
    if (at_end() || peek() == '\n') {
      token.kind = TokenKind::BadRegex;
      return finish(std::move(token));
    }
    if (peek() == '/') break;
    if (peek() == '\\' && peek(1) == '/') {
      step();
    } else if (peek() == '\\' && peek(1) != '\n' && byte_ + 1 < text_.size()) {
      token.text.push_back(peek());
      step();
    }
    token.text.push_back(peek());
  }
  step();
  return finish(std::move(token));
}

Token Lexer::read_symbol() {
  static constexpr std::array<std::string_view, 7> kTwo = {"!=", "<>", "=~", "!~",
                                                           "<=", ">=", "::"};
  static constexpr std::string_view kOne = "+-*/%&|^=<>(),:;.";
  Token token = begin_token();
  token.kind = TokenKind::Symbol;
  const std::string_view two = text_.substr(byte_, 2);
  if (std::find(kTwo.begin(), kTwo.end(), two) != kTwo.end()) {
    token.text = two == "<>" ? "!=" : two;
    step();
    step();
    return finish(std::move(token));
  }
  if (kOne.find(peek()) == std::string_view::npos) token.kind = TokenKind::Unknown;
  do {
    token.text.push_back(peek());
    step();
  } while (!at_end() && is_inside_character(peek()));
  return finish(std::move(token));
}

}  // namespace edgecase::influxql
