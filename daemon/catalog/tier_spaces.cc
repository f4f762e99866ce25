#include "catalog/tier_spaces.h"

#include <algorithm>
#include <charconv>

#include "wire/reading.h"

namespace edgecase::catalog {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

std::string prefix_of(NamespaceId readings) {
  return std::string(kTierPrefix) + std::to_string(readings) + '.';
}

}  // namespace

std::string tier_space_name(NamespaceId readings, std::int64_t every_ns) {
  return prefix_of(readings) + std::to_string(every_ns / kSecondNs);
}

std::vector<TierSpace> tier_spaces_of(const Engine& engine, NamespaceId readings) {
  const std::string prefix = prefix_of(readings);
  std::vector<TierSpace> spaces;
  for (const NamespaceInfo& info : engine.namespaces()) {
    if (!info.name.starts_with(prefix)) continue;
    std::int64_t seconds = 0;
    const char* const end = info.name.data() + info.name.size();
    const auto read = std::from_chars(info.name.data() + prefix.size(), end, seconds);
    if (read.ec == std::errc() && read.ptr == end && seconds > 0 &&
        seconds <= INT64_MAX / kSecondNs)
      spaces.push_back({info.id, seconds * kSecondNs});
  }
  std::sort(spaces.begin(), spaces.end(),
            [](const TierSpace& a, const TierSpace& b) { return a.every_ns < b.every_ns; });
  return spaces;
}

Result<TierSpace> ensure_tier_space(Engine& engine, NamespaceId readings, std::int64_t every_ns) {
  const std::string name = tier_space_name(readings, every_ns);
  if (const auto found = engine.find_namespace(name); found.ok())
    return TierSpace{found->id, every_ns};
  NamespaceOptions options;
  options.codec = GroupCodec::Series;
  options.scope_bytes = 4;  // the device, as of readings
  EC_ASSIGN_OR_RETURN(const NamespaceId id, engine.create_namespace(name, options));
  return TierSpace{id, every_ns};
}

KeySpan windows_span(const TierSpace& tier, const SeriesId& series) {
  const auto prefix_of = [&](TierColumn column) {
    const SeriesId id = tier_series(tier.id, series, column);
    Bytes key = wire::make_reading_key({id.device, id.sensor, 0});
    key.resize(wire::kSeriesPrefixBytes);
    return key;
  };
  return {tier.id, prefix_of(TierColumn::Count),
          span_of_prefix(tier.id, prefix_of(TierColumn::Numbers)).upper};
}

Result<WindowAmount> windows_of(Engine& engine, const TierSpace& tier, const SeriesId& series) {
  if (series.sensor > kTierSensorMax) return WindowAmount{};
  const KeySpan all = windows_span(tier, series);
  const SeriesId id = tier_series(tier.id, series, TierColumn::Count);
  KeyRange counts{all.lower, wire::make_reading_key({id.device, id.sensor + 1, INT64_MIN})};
  EC_ASSIGN_OR_RETURN(const RangeStats of_counts, engine.range_stats(tier.id, counts, {}));
  EC_ASSIGN_OR_RETURN(const RangeStats of_all,
                      engine.range_stats(tier.id, {all.lower, all.upper}, {}));
  return WindowAmount{of_counts.entries, of_all.stored_bytes};
}

Status drop_tier_spaces(Engine& engine, NamespaceId readings) {
  for (const TierSpace& space : tier_spaces_of(engine, readings))
    EC_TRY(engine.drop_namespace(space.id));
  return ok();
}

}  // namespace edgecase::catalog
