#include "erase/erase_target.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "wire/names.h"
#include "wire/reading_key.h"

namespace edgecase::erase {
namespace {

using auth::Operation;
using catalog::DeviceEntry;
using catalog::DeviceName;
using catalog::SeriesEntry;

// No sensor is called so: whoever may erase it may erase any.
constexpr std::string_view kAnySensor = "\x01";

Bytes prefix_of(const catalog::SeriesId& id, std::size_t bytes) {
  Bytes key = wire::make_reading_key({id.device, id.sensor, 0});
  key.resize(bytes);
  return key;
}

// Selectors that the request stands for, each of one namespace or of all.
Result<std::vector<std::pair<std::string, wire::Selector>>> selectors_of(
    const catalog::DeviceIndex& devices, const EraseRequest& request) {
  std::vector<std::pair<std::string, wire::Selector>> selectors;
  if (request.devices.empty())
    return std::vector{std::pair(request.namespace_name, request.selector)};
  EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> found,
                      devices.find(request.namespace_name, request.devices));
  for (const DeviceName& name : found) {
    if (request.namespace_name.empty() && name.namespace_name.starts_with('_')) continue;
    selectors.emplace_back(name.namespace_name,
                           wire::Selector{wire::escape_name(name.device), "*"});
  }
  if (selectors.empty()) return not_found("no device of which this is said");
  return selectors;
}

// Devices that go whole: all their sensors are asked for, and may be erased.
Status add_devices(const catalog::Catalog& catalog, const catalog::DeviceIndex& index,
                   const auth::Principal& principal, const std::string& namespace_name,
                   const wire::Selector& selector, EraseTarget& target) {
  const auto may_go = [&](const std::string& of_namespace, const std::string& device) {
    return auth::allows(Operation::Erase, principal, of_namespace, device, kAnySensor);
  };
  std::set<DeviceName> added;
  for (DeviceEntry& entry : catalog.devices(namespace_name, selector.device)) {
    if (!may_go(entry.namespace_name, entry.device)) continue;
    added.insert({entry.namespace_name, entry.device});
    target.devices.push_back(std::move(entry));
  }
  EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> said,
                      index.select(namespace_name, selector.device));
  for (const DeviceName& name : said) {
    if (added.contains(name) || !may_go(name.namespace_name, name.device)) continue;
    target.devices.push_back({name.namespace_name, name.device, 0, 0});
  }
  return ok();
}

}  // namespace

Result<EraseTarget> resolve_target(const catalog::Catalog& catalog,
                                   const catalog::DeviceIndex& devices,
                                   const auth::Principal& principal, const EraseRequest& request) {
  if (request.from_ns && request.to_ns && *request.from_ns >= *request.to_ns)
    return invalid_argument("the range of times is empty: from is not before to");
  EC_TRY(auth::authorize(Operation::Erase, principal, request.namespace_name, request.selector));
  if (!request.namespace_name.empty() && !catalog.has_namespace(request.namespace_name))
    return not_found("no namespace " + request.namespace_name);
  EC_ASSIGN_OR_RETURN(const auto selectors, selectors_of(devices, request));
  EraseTarget target;
  std::size_t refused = 0;
  for (const auto& [namespace_name, selector] : selectors) {
    for (SeriesEntry& entry : catalog.select(namespace_name, selector)) {
      if (auth::allows(Operation::Erase, principal, entry.namespace_name, entry.device,
                       entry.sensor)) {
        target.series.push_back(std::move(entry));
      } else {
        ++refused;
      }
    }
    if (selector.sensor == "*")
      EC_TRY(add_devices(catalog, devices, principal, namespace_name, selector, target));
  }
  if (target.series.empty() && target.devices.empty()) {
    if (refused > 0) return not_allowed("nothing of what matches may be erased with this token");
    return not_found("nothing matches " + request.selector.device + "/" + request.selector.sensor);
  }
  std::set<std::pair<NamespaceId, std::uint32_t>> whole;
  for (const DeviceEntry& each : target.devices) whole.emplace(each.namespace_id, each.id);
  for (const SeriesEntry& each : target.series) {
    if (!whole.contains({each.id.namespace_id, each.id.device}))
      target.single_series.push_back(each);
  }
  if (request.has_all_times()) target.with_names = {target.devices, target.single_series};
  target.is_everything = request.devices.empty() && !wire::is_literal(request.selector.device) &&
                         refused == 0 &&
                         target.series.size() == catalog.select(request.namespace_name, {}).size();
  return target;
}

KeyRange range_of_series(const catalog::SeriesId& id, TimeRange range) {
  KeyRange keys;
  keys.lower = range.from_ns == INT64_MIN
                   ? prefix_of(id, wire::kSeriesPrefixBytes)
                   : wire::make_reading_key({id.device, id.sensor, range.from_ns});
  keys.upper = range.to_ns == INT64_MAX
                   ? catalog::span_of_prefix(0, prefix_of(id, wire::kSeriesPrefixBytes)).upper
                   : wire::make_reading_key({id.device, id.sensor, range.to_ns});
  return keys;
}

std::vector<catalog::KeySpan> spans_of_readings(const EraseTarget& target, TimeRange range) {
  std::vector<catalog::KeySpan> spans;
  const bool all_times = range == TimeRange{};
  const auto& single = all_times ? target.single_series : target.series;
  for (const SeriesEntry& each : single) {
    KeyRange keys = range_of_series(each.id, range);
    spans.push_back({each.id.namespace_id, std::move(keys.lower), std::move(keys.upper)});
  }
  if (!all_times) return spans;
  for (const DeviceEntry& each : target.devices) {
    if (each.id == 0) continue;
    spans.push_back(catalog::span_of_prefix(
        each.namespace_id, prefix_of({each.namespace_id, each.id, 0}, sizeof(each.id))));
  }
  return spans;
}

std::vector<catalog::KeySpan> merged(std::vector<catalog::KeySpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.namespace_id, a.lower) < std::tie(b.namespace_id, b.lower);
  });
  std::vector<catalog::KeySpan> fewer;
  for (catalog::KeySpan& span : spans) {
    catalog::KeySpan* const last = fewer.empty() ? nullptr : &fewer.back();
    if (last != nullptr && last->namespace_id == span.namespace_id &&
        (last->upper.empty() || span.lower <= last->upper)) {
      if (!last->upper.empty() && (span.upper.empty() || span.upper > last->upper))
        last->upper = std::move(span.upper);
    } else {
      fewer.push_back(std::move(span));
    }
  }
  return fewer;
}

}  // namespace edgecase::erase
