// Reads the tokens of a text from the left, for the parsers beside it: for `$name` the word that it
// stands for. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/result.h"
#include "influxql/parser.h"
#include "influxql/token.h"

namespace edgecase::influxql {

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
