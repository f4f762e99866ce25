// Parses what several statements of InfluxQL have, for parser.cc: clauses (clauses.cc) and
// expressions (expression.cc). Each takes its words, or, where they are not there and need not be,
// nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "influxql/token_reader.h"

namespace edgecase::influxql {

enum class Inner : unsigned char { Allowed, NotAllowed };

// Behind the word FROM; statements in brackets only where `inner` allows them.
Result<std::vector<Source>> parse_sources(TokenReader& reader, Inner inner);
Status parse_from(TokenReader& reader, Statement& made);
Status parse_where(TokenReader& reader, std::optional<Expr>& where);
Status parse_group_by(TokenReader& reader, std::vector<Expr>& dimensions);
// LIMIT and the like, by its keyword.
Status parse_count(TokenReader& reader, std::string_view keyword, std::int64_t& count);
Status parse_on(TokenReader& reader, std::string& database);
// What SHOW statements end with, in this order: ORDER BY, LIMIT, OFFSET.
Status parse_show_rest(TokenReader& reader, Statement& made);
// Behind the word SELECT.
Result<std::unique_ptr<SelectStatement>> parse_select(TokenReader& reader);

// What stands in a field, a condition or GROUP BY.
Result<Expr> parse_expression(TokenReader& reader);
// The same, or a regular expression alone.
Result<Expr> parse_expression_or_regex(TokenReader& reader);

}  // namespace edgecase::influxql
