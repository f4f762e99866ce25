// UnsentReadings are those that have not gone yet where they are to go (daemon/forward/). Whoever
// lets readings go (rules, tiers, eviction, erasures) asks it what waits, and says what goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "wire/selector.h"

namespace edgecase::retention {

// Why a reading goes before a target has it.
enum class Leaving : unsigned char { Expired, Evicted, Erased, Thinned };
inline constexpr std::size_t kLeavings = 4;

class UnsentReadings {
 public:
  virtual ~UnsentReadings() = default;

  // Readings of the series in [from, to) go in a moment: of each target that does not have them
  // they are counted, `weight` times. Looks at the store. Any thread.
  virtual void count_leaving(Leaving why, const catalog::SeriesEntry& series, std::int64_t from_ns,
                             std::int64_t to_ns, std::uint64_t weight) = 0;
  // From that time on readings wait for a target that spares them; INT64_MAX: none do. Any thread.
  virtual std::int64_t waits_from_ns(const catalog::SeriesEntry& series) const = 0;
  // The same of all series.
  virtual std::int64_t waits_from_ns() const = 0;
};

// What the rules of retention spare for a target: of what these selectors name nothing expires
// sooner than after `keep_ns`.
struct Hold {
  struct Part {
    std::string namespace_name;  // `*`: all
    wire::Selector selector;

    friend bool operator==(const Part& a, const Part& b) {
      return a.namespace_name == b.namespace_name && a.selector.device == b.selector.device &&
             a.selector.sensor == b.selector.sensor;
    }
  };
  std::string target;
  std::int64_t keep_ns = 0;
  std::vector<Part> parts;

  friend bool operator==(const Hold&, const Hold&) = default;
};

}  // namespace edgecase::retention
