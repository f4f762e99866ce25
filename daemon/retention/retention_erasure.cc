// RetentionService's end of an erasure.
#include <algorithm>
#include <utility>

#include "catalog/catalog.h"
#include "retention/retention_records.h"
#include "retention/retention_service.h"

namespace edgecase::retention {
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
