#include "influxql/token.h"

#include <algorithm>
#include <array>

namespace edgecase::influxql {
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
