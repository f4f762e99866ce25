// InfluxQL to trees (statement.h). Grammar and messages are those of InfluxDB 1.8, so that what its
// clients look for in an error is there: "found X, expected Y at line 1, char 8".
// Bounded: bytes of the text by the caller, statements, nesting, nodes. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/result.h"
#include "influxql/statement.h"

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

// All statements of a text, at least one. InvalidArgument: "error parsing query: …" with the place;
// also of a byte that is no UTF-8.
// LimitReached: more than `statements_max`.
Result<std::vector<Statement>> parse_statements(std::string_view text, std::size_t statements_max,
                                                const Parameters& parameters = {});

}  // namespace edgecase::influxql
