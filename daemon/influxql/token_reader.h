// The words of InfluxQL. A lexer cuts a text into tokens, one at a time, each with its position;
// TokenReader reads them from the left, for the parsers beside it: for `$name` the word that it
// stands for. The parser says where a regular expression may begin, since `/` is also division.
// One thread. Tokens own what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::influxql {

// Brackets, calls and statements inside each other.
inline constexpr int kNestingMax = 64;
// Names, numbers, calls and operators of a statement.
inline constexpr std::size_t kNodesMax = 64u << 10;

// The `params` of a request: the word that `$name` stands for, as it would be written, but without
// quotes and slashes.
struct Parameter {
  enum class Kind : unsigned char { Text, Number, Integer, Bool, Duration, Regex, Name };
  Kind kind = Kind::Text;
  std::string text;
};
using Parameters = std::map<std::string, Parameter, std::less<>>;

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

// "1h30m"; also `u` and `µ` for microseconds. Nothing: it is none, or too long.
std::optional<std::int64_t> parse_duration_literal(std::string_view text);

class TokenReader {
 public:
  // Both outlive it.
  TokenReader(std::string_view text, const Parameters& parameters)
      : lexer_(text), parameters_(parameters) {}

  // The next token, which the one after the next take() is.
  const Token& peek() {
    if (!has_next_) next_ = bound(lexer_.next());
    has_next_ = true;
    return next_;
  }
  Token take() {
    peek();
    has_next_ = false;
    taken_end_ = next_.end;
    return std::move(next_);
  }
  // Behind a symbol that was taken: Lexer::look_beyond().
  void look_beyond(bool is_looked) { lexer_.look_beyond(is_looked); }
  // The next token, where a regular expression may begin.
  Token take_or_regex();
  // What stands right behind `before`, which was taken last: blanks are a token of their own here.
  Token take_joined(const Token& before);

  // Whether that symbol is next, with nothing between it and what was taken.
  bool next_is_joined(std::string_view symbol) {
    return peek().is_symbol(symbol) && next_.begin == taken_end_;
  }
  bool next_is(std::string_view keyword) { return peek().is_keyword(keyword); }
  bool take_if(std::string_view keyword) { return take_if(TokenKind::Keyword, keyword); }
  bool take_if_symbol(std::string_view symbol) { return take_if(TokenKind::Symbol, symbol); }
  // A word that is no keyword: FILL, fill. Quoted it is a name.
  bool next_is_word(std::string_view upper_case);
  bool take_if_word(std::string_view upper_case);
  Status expect(std::string_view keyword);
  Status expect_symbol(std::string_view symbol);
  // An identifier; also the word `default`, which InfluxDB wants in quotes.
  Result<std::string> expect_name();
  // A whole number that is not negative.
  Result<std::int64_t> expect_integer();
  // Also INF, which is 0: forever.
  Result<std::int64_t> expect_duration();

  // "found X, expected Y at line 1, char 8", of the next token.
  Status unexpected(std::string_view wanted);
  static Status unexpected(const Token& token, std::string_view wanted);
  static Status wrong(const Token& token, std::string_view what);
  static Status wrong(std::string_view what);

  // One more of what a statement may have kNodesMax of.
  Status count_node();
  void begin_statement() { nodes_ = 0; }

  // Held while what is in brackets is parsed.
  class Nesting {
   public:
    explicit Nesting(TokenReader& reader) : reader_(reader) { ++reader_.nesting_; }
    ~Nesting() { --reader_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Status check() const;

   private:
    TokenReader& reader_;
  };

 private:
  bool take_if(TokenKind kind, std::string_view text);
  Token bound(Token token) const;

  Lexer lexer_;
  const Parameters& parameters_;
  Token next_;
  bool has_next_ = false;
  std::size_t taken_end_ = 0;
  int nesting_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace edgecase::influxql
