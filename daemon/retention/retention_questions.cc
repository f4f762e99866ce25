// RetentionService, as it is asked: what holds for a series, what waits for a target of forwarding,
// what rules would do (preview()), and what an erasure takes of them.

#include <algorithm>
#include <map>
#include <utility>

#include "catalog/catalog.h"
#include "retention/retention_records.h"
#include "retention/retention_service.h"
#include "wire/reading.h"

namespace edgecase::retention {
namespace {

// A window is this many times as much as a reading, where no window says so: a count, which hardly
// changes, and five numbers like the readings.
constexpr std::uint64_t kReadingsPerWindow = 5;

// Windows that hold readings from `first_ns` on: no more than there are readings.
std::uint64_t windows_for(std::int64_t first_ns, std::int64_t last_ns, std::int64_t every_ns,
                          std::uint64_t readings) {
  std::int64_t span_ns = 0;
  if (last_ns < first_ns) return 0;
  if (__builtin_sub_overflow(last_ns, first_ns, &span_ns)) return readings;
  return std::min(readings, static_cast<std::uint64_t>(span_ns / every_ns) + 1);
}

}  // namespace

wire::Keeping RetentionService::keeping(const catalog::SeriesEntry& entry) const {
  const MutexLock lock(mutex_);
  const Due due = of_series(rules_, entry);
  return {due.raw_ns, due.tiers == nullptr ? std::vector<wire::Tier>() : *due.tiers};
}

std::int64_t RetentionService::expiry_ns(const catalog::SeriesEntry& entry) const {
  const MutexLock lock(mutex_);
  return of_series(rules_, entry).engine_ns(0);
}

std::int64_t RetentionService::retention_ns(const catalog::SeriesEntry& entry) const {
  const MutexLock lock(mutex_);
  const Due due = of_series(rules_, entry);
  return due.has_tiers() ? due.tiers->back().keep_ns : due.raw_ns;
}

std::int64_t RetentionService::namespace_ns(std::string_view namespace_name) const {
  const MutexLock lock(mutex_);
  return outermost(rules_, namespace_name).raw_ns;
}

// With mutex_ held. `readings` is what the series holds.
Result<PreviewSeries> RetentionService::preview_series(const std::vector<Rule>& next,
                                                       const catalog::SeriesEntry& entry,
                                                       std::int64_t now_ns,
                                                       std::uint64_t& readings) const {
  PreviewSeries series;
  const auto keeping_of = [](const Due& due) {
    return wire::Keeping{due.raw_ns, due.tiers == nullptr ? std::vector<wire::Tier>() : *due.tiers};
  };
  series.now = keeping_of(of_series(rules_, entry));
  series.then = keeping_of(of_series(next, entry));
  EC_ASSIGN_OR_RETURN(series.windows, windows_going(entry, series.then, now_ns));
  if (series.windows > 0) series.entry = entry;
  KeyRange all;
  all.lower = wire::make_reading_key({entry.id.device, entry.id.sensor, INT64_MIN});
  all.upper = series_prefix({0, entry.id.device, entry.id.sensor + 1});
  EC_ASSIGN_OR_RETURN(const RangeStats stored, engine_.range_stats(entry.id.namespace_id, all, {}));
  readings = stored.entries;
  std::int64_t boundary_ns = 0;
  if (series.then.raw_ns == kRetentionForever ||
      __builtin_sub_overflow(now_ns, series.then.raw_ns, &boundary_ns))
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
  // What becomes windows is told apart from what goes.
  if (series.then.tiers.empty()) {
    series.count = gone.entries;
    series.bytes = gone.stored_bytes;
  } else {
    series.thinned = gone.entries;
  }
  EC_ASSIGN_OR_RETURN(series.oldest_ns, first_time(going));
  EC_TRY(preview_tiers(entry, gone.stored_bytes, now_ns, series));
  EC_ASSIGN_OR_RETURN(series.next_ns, first_time({going.upper, all.upper}));
  if (series.next_ns &&
      __builtin_add_overflow(*series.next_ns, series.then.raw_ns, &*series.next_ns))
    series.next_ns.reset();
  return series;
}

// `bytes`: of the readings that are due.
Status RetentionService::preview_tiers(const catalog::SeriesEntry& entry, std::uint64_t bytes,
                                       std::int64_t now_ns, PreviewSeries& series) const {
  std::int64_t due_ns = 0;
  if (series.then.tiers.empty() || __builtin_sub_overflow(now_ns, series.then.raw_ns, &due_ns))
    return ok();
  ReadOptions backwards;
  backwards.direction = Direction::Reverse;
  const KeyRange due{wire::make_reading_key({entry.id.device, entry.id.sensor, INT64_MIN}),
                     wire::make_reading_key({entry.id.device, entry.id.sensor, due_ns})};
  EC_ASSIGN_OR_RETURN(const auto last, engine_.scan(entry.id.namespace_id, due, backwards));
  const std::vector<catalog::TierSpace> spaces =
      catalog::tier_spaces_of(engine_, entry.id.namespace_id);
  for (const wire::Tier& tier : series.then.tiers) {
    PreviewTier& shown = series.tiers.emplace_back(PreviewTier{tier, {}});
    for (const catalog::TierSpace& space : spaces) {
      if (space.every_ns != tier.every_ns) continue;
      EC_ASSIGN_OR_RETURN(shown.amount, catalog::windows_of(engine_, space, entry.id));
    }
    if (series.thinned == 0 || !series.oldest_ns || !last->valid()) continue;
    const std::int64_t last_ns = wire::time_of_reading_key(last->key().data());
    const std::uint64_t per_window = shown.amount.windows > 0
                                         ? shown.amount.bytes / shown.amount.windows + 1
                                         : kReadingsPerWindow * bytes / series.thinned + 1;
    std::int64_t first_ns = *series.oldest_ns, kept_ns = 0;
    // What its tier would not keep does not become a window that stays.
    if (tier.keep_ns != kRetentionForever &&
        !__builtin_sub_overflow(now_ns, tier.keep_ns, &kept_ns))
      first_ns = std::max(first_ns, kept_ns);
    const std::uint64_t windows = windows_for(first_ns, last_ns, tier.every_ns, series.thinned);
    shown.amount += {windows, windows * per_window};
  }
  return ok();
}

// Windows that the tiers of `then` keep no longer, or that are of none of them.
Result<std::uint64_t> RetentionService::windows_going(const catalog::SeriesEntry& entry,
                                                      const wire::Keeping& then,
                                                      std::int64_t now_ns) const {
  std::uint64_t going = 0;
  if (entry.id.sensor > catalog::kTierSensorMax) return going;
  for (const catalog::TierSpace& space : catalog::tier_spaces_of(engine_, entry.id.namespace_id)) {
    const auto tier = std::find_if(then.tiers.begin(), then.tiers.end(), [&](const auto& each) {
      return each.every_ns == space.every_ns;
    });
    std::int64_t before_ns = INT64_MAX;
    const bool is_kept = tier != then.tiers.end();
    if (is_kept && (tier->keep_ns == kRetentionForever ||
                    __builtin_sub_overflow(now_ns, tier->keep_ns, &before_ns)))
      continue;
    const catalog::SeriesId id =
        catalog::tier_series(space.id, entry.id, catalog::TierColumn::Count);
    const KeyRange range{wire::make_reading_key({id.device, id.sensor, INT64_MIN}),
                         wire::make_reading_key({id.device, id.sensor, before_ns})};
    EC_ASSIGN_OR_RETURN(const RangeStats gone, engine_.range_stats(space.id, range, {}));
    going += gone.entries;
  }
  return going;
}

Result<Preview> RetentionService::preview(const std::string& namespace_name,
                                          const wire::Selector& selector,
                                          std::optional<wire::Keeping> keeping) const {
  const Rule rule{namespace_name, selector};
  return preview_all({&rule, 1}, std::move(keeping));
}

Result<Preview> RetentionService::preview_all(std::span<const Rule> rules,
                                              std::optional<wire::Keeping> keeping) const {
  if (keeping) EC_TRY(wire::check_keeping(*keeping));
  for (const Rule& rule : rules) EC_TRY(check_target(rule.namespace_name, rule.selector));
  const MutexLock lock(mutex_);
  std::vector<Rule> next = rules_;
  if (keeping) {
    for (const Rule& rule : rules) {
      next = with(next, {rule.namespace_name, rule.selector, keeping->raw_ns, keeping->tiers});
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
    Preview of_one;
    of_one.series = 1;
    of_one.readings = readings;
    of_one.count = series.count;
    of_one.bytes = series.bytes;
    of_one.thinned = series.thinned;
    of_one.windows = series.windows;
    of_one.tiers = series.tiers;
    of_one.oldest_ns = series.oldest_ns;
    of_one.next_ns = series.next_ns;
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
  thinned += more.thinned;
  windows += more.windows;
  for (const PreviewTier& each : more.tiers) {
    const auto known = std::find_if(tiers.begin(), tiers.end(), [&](const PreviewTier& other) {
      return other.tier == each.tier;
    });
    if (known == tiers.end()) {
      tiers.push_back(each);
    } else {
      known->amount += each.amount;
    }
  }
  take_earlier(oldest_ns, more.oldest_ns);
  take_earlier(next_ns, more.next_ns);
  for (PreviewSeries& each : more.affected) {
    if (affected.size() < kPreviewSeriesMax) affected.push_back(std::move(each));
  }
}

// RetentionService, as it spares what waits for a target of forwarding (UnsentReadings).

std::int64_t RetentionService::held_ns(std::string_view namespace_name, const std::string* device,
                                       const std::string* sensor) const {
  std::int64_t held_ns = 0;
  const auto takes = [&](const Hold::Part& part) {
    if (part.namespace_name != "*" && part.namespace_name != namespace_name) return false;
    const auto matches = [](const std::string& glob, const std::string* name) {
      return name == nullptr ? glob == "*" : wire::glob_matches(glob, *name);
    };
    return matches(part.selector.device, device) && matches(part.selector.sensor, sensor);
  };
  for (const Hold& hold : holds_) {
    if (!namespace_name.starts_with('_') &&
        std::any_of(hold.parts.begin(), hold.parts.end(), takes))
      held_ns = std::max(held_ns, hold.keep_ns);
  }
  return held_ns;
}

Status RetentionService::set_holds(std::vector<Hold> holds) {
  const MutexLock lock(mutex_);
  if (holds == holds_ && !has_untold_holds_) return ok();
  const bool had_any = has_untold_holds_ || !holds_.empty();
  const Bytes key(1, kHoldRecord);
  if (!holds.empty() && !had_any) {
    WriteBatch batch;
    batch.put(records_, key, Bytes(1, kRecordVersion));
    EC_TRY(engine_.write(batch, Durability::Sync));
  }
  const bool is_over = holds.empty() && had_any;
  holds_ = std::move(holds);
  has_untold_holds_ = false;
  EC_TRY(align(rules_));
  if (!is_over) return ok();
  WriteBatch batch;
  batch.remove(records_, key);
  batch.set_makes_room();
  return engine_.write(batch, Durability::Async);
}

namespace {

// A rule of all namespaces stays while another one has a device of that name.
bool names_device(const Rule& rule, const catalog::DeviceEntry& device,
                  const catalog::Catalog& catalog) {
  if (!wire::is_literal(rule.selector.device) ||
      wire::unescape_name(rule.selector.device) != device.device)
    return false;
  if (!rule.namespace_name.empty()) return rule.namespace_name == device.namespace_name;
  const auto named = catalog.select({}, {rule.selector.device, "*"});
  return std::all_of(named.begin(), named.end(), [&](const catalog::SeriesEntry& each) {
    return each.namespace_name == device.namespace_name;
  });
}

bool names_series(const Rule& rule, const catalog::SeriesEntry& series) {
  return rule.namespace_name == series.namespace_name && rule.selector.is_exact() &&
         wire::unescape_name(rule.selector.device) == series.device &&
         wire::unescape_name(rule.selector.sensor) == series.sensor;
}

}  // namespace

Result<std::vector<Rule>> RetentionService::plan_erasure(const catalog::Erased& erased,
                                                         const catalog::SpanTaker& take) {
  for (const catalog::DeviceEntry& device : erased.devices) {
    if (device.id == 0) continue;
    Bytes prefix = kTopicRecord + topic_key({device.namespace_id, device.id, 0});
    prefix.resize(prefix.size() - sizeof(std::uint32_t));  // without the sensor
    EC_TRY(take(catalog::span_of_prefix(records_, prefix)));
  }
  for (const catalog::SeriesEntry& series : erased.series)
    EC_TRY(take(catalog::span_of_prefix(records_, kTopicRecord + topic_key(series.id))));
  EC_TRY(marks_.plan_erasure(records_, erased, take));
  std::vector<Rule> gone;
  for (const Rule& rule : rules_) {
    const bool named =
        std::any_of(erased.devices.begin(), erased.devices.end(),
                    [&](const auto& device) { return names_device(rule, device, catalog_); }) ||
        std::any_of(erased.series.begin(), erased.series.end(),
                    [&](const auto& series) { return names_series(rule, series); });
    if (!named) continue;
    gone.push_back(rule);
    EC_TRY(take(catalog::span_of_key(records_, rule_key(rule.namespace_name, rule.selector))));
  }
  return gone;
}

// Where no rule goes, only what the engine has for the erased
// does: all the rest is as it was.
Status RetentionService::forget(const catalog::Erased& erased, const std::vector<Rule>& rules) {
  std::vector<RetentionRule> changes;
  const auto drop = [&](NamespaceId id, Bytes lower, Bytes upper) {
    engine_.each_retention_rule(id, {std::move(lower), std::move(upper)},
                                [&](ByteView prefix, std::int64_t) {
                                  changes.push_back({id, Bytes(prefix), std::nullopt});
                                });
  };
  for (const catalog::DeviceEntry& device : erased.devices) {
    if (device.id == 0) continue;
    const auto first = topics_.lower_bound(topic_key({device.namespace_id, device.id, 0}));
    topics_.erase(first, topics_.lower_bound(topic_key({device.namespace_id, device.id + 1, 0})));
    drop(device.namespace_id, device_prefix(device.id), device_prefix(device.id + 1));
    for (const catalog::TierSpace& space : catalog::tier_spaces_of(engine_, device.namespace_id))
      drop(space.id, device_prefix(device.id), device_prefix(device.id + 1));
  }
  for (const catalog::SeriesEntry& series : erased.series) {
    topics_.erase(topic_key(series.id));
    const Bytes prefix = series_prefix(series.id);
    drop(series.id.namespace_id, prefix, prefix + '\0');
    for (const catalog::TierSpace& space :
         catalog::tier_spaces_of(engine_, series.id.namespace_id)) {
      const auto columns = [&](catalog::TierColumn column) {
        return series_prefix(catalog::tier_series(space.id, series.id, column));
      };
      if (series.id.sensor <= catalog::kTierSensorMax)
        drop(space.id, columns(catalog::TierColumn::Count),
             columns(catalog::TierColumn::Numbers) + '\0');
    }
  }
  marks_.forget(erased);
  tell_memory();
  if (rules.empty()) return apply(std::move(changes));
  for (const Rule& rule : rules) {
    std::erase_if(rules_, [&](const Rule& each) {
      return same_rule(each, rule.namespace_name, rule.selector);
    });
  }
  return align(rules_);
}

}  // namespace edgecase::retention
