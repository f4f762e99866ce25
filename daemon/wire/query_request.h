// The request of a query, built from URL parameters by the daemon, from flags by the CLI.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/selection.h"

namespace edgecase::wire {

enum class Aggregate : std::uint8_t {
  Mean,
  Min,
  Max,
  Sum,
  Count,
  First,
  Last,
  Stddev,
  P50,
  P95,
  P99,
  MinMax  // two readings at most of each window, as they are stored: of it the least and the
          // greatest
};
// Takes what the same thing is called elsewhere too ("avg", "median", "STDDEV").
Result<Aggregate> parse_aggregate(std::string_view name);
// What a mistyped name was probably meant to be; empty: none.
std::string_view nearest_aggregate(std::string_view name);
std::string_view aggregate_name(Aggregate aggregate);  // "mean"

struct QueryRequest {
  std::string namespace_name{"default"};  // empty: all namespaces
  Selection selection;
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();  // included
  std::optional<std::int64_t> to_ns;                                // not included; unset: no end
  std::int64_t every_ns = 0;           // > 0: windows, aligned to the epoch
  std::optional<Aggregate> aggregate;  // with every_ns; alone: one window over the range
  std::optional<std::uint64_t> limit;  // readings in all
  bool descending = false;
  std::string purpose;  // what the readings are read for; empty: not stated
  // An owner whose devices are all meant, whatever their purposes: what belongs to somebody is for
  // them to have. Empty: all devices.
  std::string owner;
  // Only devices that are there for this purpose, that have this objection, these labels.
  std::string of_purpose, of_objection;
  std::vector<std::pair<std::string, std::string>> of_labels;
  // Windows of tiers too, as they are kept, where readings have become them: those that begin in
  // the range. Of readings alone, without an aggregate.
  bool tiers = false;
  bool exports = false;  // what `edgecase export` asks for: another permission than reading
  // Windows that cannot be answered have rows without a value (Reading::lack), up to this time
  // where the range has no end. Unset: they have none, and where a drive is away there is no
  // answer.
  std::optional<std::int64_t> lacks_to_ns;
};

}  // namespace edgecase::wire
