// Says how long readings are kept, and as what: as they came for a time, then as windows in tiers,
// each coarser and kept longer than the one before. As people write it: `7d then 1m:90d then
// 1h:forever`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/retention.h"
#include "edgecase/status.h"

namespace edgecase::wire {

// Windows of `every_ns`, aligned to the epoch, that are kept for so long.
struct Tier {
  std::int64_t every_ns = 0;
  std::int64_t keep_ns = kRetentionForever;

  friend bool operator==(const Tier&, const Tier&) = default;
};

inline constexpr std::size_t kTiersMax = 4;
inline constexpr std::int64_t kTierEveryMinNs = 1'000'000'000;  // and whole ones of it
// Windows of the first tier in one of the last: all of these become durable at once.
inline constexpr std::int64_t kTierRatioMax = 10'080;

struct Keeping {
  std::int64_t raw_ns = kRetentionForever;
  std::vector<Tier> tiers = {};  // the finest first

  friend bool operator==(const Keeping&, const Keeping&) = default;
};

// "30d" or "forever". InvalidArgument: neither, or nothing at all.
Result<std::int64_t> parse_keep_ns(std::string_view text);
// "1m:90d".
Result<Tier> parse_tier(std::string_view text);
// "1m:90d,1h:forever": as a parameter of HTTP has them; "": none.
Result<std::vector<Tier>> parse_tiers(std::string_view text);
// "7d then 1m:90d then 1h:forever": as a setting has it. Checked.
Result<Keeping> parse_keeping(std::string_view text);

// InvalidArgument: tiers behind `forever`; too many; an `every` that is no whole seconds, or no
// multiple of the one before; a tier that is not kept longer than what comes before it.
Status check_keeping(const Keeping& keeping);

std::string tier_text(const Tier& tier);                 // "1m:90d"
std::string tiers_text(const std::vector<Tier>& tiers);  // "1m:90d,1h:forever"
std::string keeping_text(const Keeping& keeping);        // "7d then 1m:90d then 1h:forever"

}  // namespace edgecase::wire
