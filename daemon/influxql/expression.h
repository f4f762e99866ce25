// Expressions of InfluxQL, for the parser of statements. See parser.h.
#pragma once

#include "influxql/token_reader.h"

namespace edgecase::influxql {

// What stands in a field, a condition or GROUP BY.
Result<Expr> parse_expression(TokenReader& reader);
// The same, or a regular expression alone.
Result<Expr> parse_expression_or_regex(TokenReader& reader);

}  // namespace edgecase::influxql
