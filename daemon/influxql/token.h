// The words of InfluxQL. A lexer cuts a text into tokens, one at a time, each with its position;
// the parser (parser.h) says where a regular expression may begin, since `/` is also division.
// One thread. Tokens own what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace edgecase::influxql {

enum class TokenKind : unsigned char {
  End,
  Identifier,  // plain or in double quotes
  Keyword,     // Token::text is upper case
  String,      // in single quotes
  Number,      // 1.5
  Integer,     // 15
  Duration,    // 15m, 1h30m
  Parameter,   // $name; TokenReader gives what it stands for
  Regex,       // /.../, where the parser asks for one
  Symbol,      // an operator or a bracket: Token::text
  // Mistakes: Token::text is what was met of it.
  BadString,  // no closing quote on its line
  BadEscape,  // `\` before what no escape begins with
  BadRegex,   // no closing slash on its line
  BadComment,
  BadParameter,  // `$name`, which stands for nothing: the name
  Unknown,
};

// Both from 0; columns count characters, not bytes.
struct Position {
  std::uint32_t line = 0, column = 0;
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;
  Position at;
  std::size_t begin = 0, end = 0;  // bytes of the text that it was cut from
  bool is_quoted = false;          // an identifier in double quotes
  bool is_bound = false;           // what a parameter stands for

  bool is(TokenKind other, std::string_view word) const { return kind == other && text == word; }
  bool is_keyword(std::string_view word) const { return is(TokenKind::Keyword, word); }
  bool is_symbol(std::string_view word) const { return is(TokenKind::Symbol, word); }
};

// The token as an error names it.
std::string name_of(const Token& token);
bool is_keyword(std::string_view upper_case);

class Lexer {
 public:
  // `text` outlives it.
  explicit Lexer(std::string_view text) : text_(text) {}

  // The next token that is neither blank nor comment; End again and again behind the last.
  Token next();
  // The same, where a `/` begins a regular expression.
  Token next_or_regex();
  // Goes back to where `token` began; it is one that this lexer has returned.
  void go_back(const Token& token);
  std::string_view text() const { return text_; }
  // InfluxDB tells the end of a text by how far it has read. Whether it looks a character further
  // at this place, as it does where a regular expression may begin; else the last token decides.
  void look_beyond(bool is_looked) { is_looked_beyond_ = is_looked; }

 private:
  bool at_end() const { return byte_ == text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return byte_ + ahead < text_.size() ? text_[byte_ + ahead] : '\0';
  }
  void step();
  bool skip_blanks(Token& bad);
  Token begin_token() const;
  Token finish(Token token);
  void note_end(bool is_looked_beyond);
  Token read_word();
  Token read_quoted();
  Token read_number();
  Token read_parameter();
  Token read_regex();
  Token read_symbol();

  std::string_view text_;
  std::size_t byte_ = 0;
  Position at_;
  Position end_;  // of the last token: the end of the text, if nothing comes any more
  bool is_looked_beyond_ = false;
};

}  // namespace edgecase::influxql
