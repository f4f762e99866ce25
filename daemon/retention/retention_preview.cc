// Previews what rules would do: RetentionService::preview().
#include <map>

#include "retention/retention_records.h"
#include "retention/retention_service.h"
#include "wire/reading_key.h"

namespace edgecase::retention {

// With mutex_ held. `readings` is what the series holds.
Result<PreviewSeries> RetentionService::preview_series(const std::vector<Rule>& next,
                                                       const catalog::SeriesEntry& entry,
                                                       std::int64_t now_ns,
                                                       std::uint64_t& readings) const {
  PreviewSeries series;
  series.now_ns = series_ns(rules_, entry.namespace_name, entry.device, entry.sensor, entry.id);
  series.then_ns = series_ns(next, entry.namespace_name, entry.device, entry.sensor, entry.id);
  KeyRange all;
  all.lower = wire::make_reading_key({entry.id.device, entry.id.sensor, INT64_MIN});
  all.upper = series_prefix({0, entry.id.device, entry.id.sensor + 1});
  EC_ASSIGN_OR_RETURN(const RangeStats stored, engine_.range_stats(entry.id.namespace_id, all, {}));
  readings = stored.entries;
  std::int64_t boundary_ns = 0;
  if (series.then_ns == kRetentionForever ||
      __builtin_sub_overflow(now_ns, series.then_ns, &boundary_ns))
    return series;
  const KeyRange going{all.lower,
                       wire::make_reading_key({entry.id.device, entry.id.sensor, boundary_ns})};
  EC_ASSIGN_OR_RETURN(const RangeStats gone, engine_.range_stats(entry.id.namespace_id, going, {}));
  const auto first_time = [&](const KeyRange& range) -> Result<std::optional<std::int64_t>> {
    EC_ASSIGN_OR_RETURN(const auto first, engine_.scan(entry.id.namespace_id, range, {}));
    wire::ReadingKey key;
    if (!first->valid() || !wire::decode_reading_key(first->key(), key))
      return std::optional<std::int64_t>();
    return std::optional<std::int64_t>(key.time_ns);
  };
  series.entry = entry;
  series.count = gone.entries;
  series.bytes = gone.stored_bytes;
  EC_ASSIGN_OR_RETURN(series.oldest_ns, first_time(going));
  EC_ASSIGN_OR_RETURN(series.next_ns, first_time({going.upper, all.upper}));
  if (series.next_ns && __builtin_add_overflow(*series.next_ns, series.then_ns, &*series.next_ns))
    series.next_ns.reset();
  return series;
}

Result<Preview> RetentionService::preview(const std::string& namespace_name,
                                          const wire::Selector& selector,
                                          std::optional<std::int64_t> retention_ns) const {
  const Rule rule{namespace_name, selector, kRetentionForever};
  return preview_all({&rule, 1}, retention_ns);
}

Result<Preview> RetentionService::preview_all(std::span<const Rule> rules,
                                              std::optional<std::int64_t> retention_ns) const {
  if (retention_ns && *retention_ns <= 0)
    return invalid_argument("a retention of nothing erases what comes");
  for (const Rule& rule : rules) EC_TRY(check_target(rule.namespace_name, rule.selector));
  const MutexLock lock(mutex_);
  std::vector<Rule> next = rules_;
  if (retention_ns) {
    for (const Rule& rule : rules) {
      next = with(next, {rule.namespace_name, rule.selector, *retention_ns});
      if (next.size() > kRulesMax) return too_many_rules();
    }
  }
  return preview_under(next, rules);
}

Result<Preview> RetentionService::preview_clear(std::span<const Rule> rules) const {
  for (const Rule& rule : rules) EC_TRY(check_target(rule.namespace_name, rule.selector));
  const MutexLock lock(mutex_);
  std::vector<Rule> next = rules_;
  for (const Rule& rule : rules)
    next = without(std::move(next), rule.namespace_name, rule.selector);
  return preview_under(next, rules);
}

Result<Preview> RetentionService::preview_under(const std::vector<Rule>& next,
                                                std::span<const Rule> rules) const {
  const std::int64_t now_ns = engine_.expiry_now_ns();
  Preview preview;
  const auto look_at = [&](const catalog::SeriesEntry& entry) EC_REQUIRES(mutex_) -> Status {
    std::uint64_t readings = 0;
    EC_ASSIGN_OR_RETURN(PreviewSeries series, preview_series(next, entry, now_ns, readings));
    Preview of_one{1, readings, series.count, series.bytes, series.oldest_ns, series.next_ns, {}};
    if (!series.entry.device.empty()) of_one.affected.push_back(std::move(series));
    preview.add(std::move(of_one));
    return ok();
  };
  // Selectors of one namespace may match the same series, which counts once.
  std::map<std::string, wire::Selection> selections;
  for (const Rule& rule : rules) {
    const auto [at, is_new] = selections.try_emplace(rule.namespace_name, rule.selector);
    if (!is_new) at->second.selectors.push_back(rule.selector);
  }
  for (const auto& [name, selection] : selections) EC_TRY(catalog_.each(name, selection, look_at));
  return preview;
}

void Preview::add(Preview more) {
  const auto take_earlier = [](std::optional<std::int64_t>& sum,
                               const std::optional<std::int64_t>& other) {
    if (other && (!sum || *other < *sum)) sum = other;
  };
  series += more.series;
  readings += more.readings;
  count += more.count;
  bytes += more.bytes;
  take_earlier(oldest_ns, more.oldest_ns);
  take_earlier(next_ns, more.next_ns);
  for (PreviewSeries& each : more.affected) {
    if (affected.size() < kPreviewSeriesMax) affected.push_back(std::move(each));
  }
}

}  // namespace edgecase::retention
