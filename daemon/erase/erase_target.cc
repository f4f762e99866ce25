#include "erase/erase_target.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "catalog/tier_spaces.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::erase {
namespace {

using auth::Operation;
using catalog::DeviceName;
using catalog::SeriesEntry;

// No sensor is called so: whoever may erase it may erase any.
constexpr std::string_view kAnySensor = "\x01";
constexpr std::size_t kDevicesPerPage = 1000;

Bytes prefix_of(const catalog::SeriesId& id, std::size_t bytes) {
  Bytes key = wire::make_reading_key({id.device, id.sensor, 0});
  key.resize(bytes);
  return key;
}

// Takes a namespace, or all, and a selection.
using SelectionTaker = std::function<Status(const std::string&, const wire::Selection&)>;

// Selections that the request stands for, one after another.
Status each_selection(const catalog::DeviceIndex& devices, const EraseRequest& request,
                      const wire::Selection& selection, const SelectionTaker& take) {
  if (request.devices.empty()) return take(request.namespace_name, selection);
  bool is_any = false;
  for (catalog::DevicePage page{std::nullopt, kDevicesPerPage};;) {
    EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> found,
                        devices.find(request.namespace_name, request.devices, page));
    for (const DeviceName& name : found) {
      if (request.namespace_name.empty() && name.namespace_name.starts_with('_')) continue;
      is_any = true;
      wire::Selection of_device = wire::Selector{wire::escape_name(name.device), "*"};
      of_device.identity = selection.identity;
      EC_TRY(take(name.namespace_name, of_device));
    }
    if (found.size() < page.limit) break;
    page.after = found.back();
  }
  return is_any ? ok() : not_found("no device of which this is said");
}

// Devices that go whole: all their sensors are asked for, and may be erased.
Status add_devices(const catalog::Catalog& catalog, const catalog::DeviceIndex& index,
                   const auth::Principal& principal, const std::string& namespace_name,
                   const wire::Selector& selector, EraseTarget& target) {
  const auto may_go = [&](const std::string& of_namespace, const std::string& device) {
    return auth::allows(Operation::Erase, principal, of_namespace, device, kAnySensor);
  };
  for (const std::uint32_t row : catalog.select_device_rows(namespace_name, selector.device)) {
    const auto entry = catalog.device_at(row);
    if (entry.ok() && may_go(entry->namespace_name, entry->device))
      target.devices.push_back({entry->namespace_id, entry->id, row});
  }
  return index.each(namespace_name, selector.device, [&](const DeviceName& name) {
    const bool has_number =
        !catalog.select_device_rows(name.namespace_name, wire::escape_name(name.device)).empty();
    if (!has_number && may_go(name.namespace_name, name.device)) target.only_said.push_back(name);
    return ok();
  });
}

// The series that may be erased; answers how many may not.
std::size_t add_series(const catalog::Catalog& catalog, const auth::Principal& principal,
                       const std::string& namespace_name, const wire::Selection& selection,
                       std::vector<catalog::SeriesRow>& series) {
  std::size_t refused = 0;
  for (const catalog::SeriesRow row : catalog.select_rows(namespace_name, selection)) {
    const auto entry = catalog.series_at(row);
    if (!entry.ok()) continue;
    if (auth::allows(Operation::Erase, principal, entry->namespace_name, entry->device,
                     entry->sensor)) {
      series.push_back(row);
    } else {
      ++refused;
    }
  }
  return refused;
}

// The series that were found, and devices that have no others. With `only_series` no device goes.
Status add_found(const catalog::Catalog& catalog, const auth::Principal& principal,
                 const SeriesFinder& find, bool only_series, EraseTarget& target) {
  EC_ASSIGN_OR_RETURN(target.series, find());
  catalog::SeriesId last;
  std::size_t of_last = 0;
  std::string namespace_name, device;
  const auto end_device = [&] {
    if (only_series || of_last == 0) return;
    if (!auth::allows(Operation::Erase, principal, namespace_name, device, kAnySensor)) return;
    const std::string glob = wire::escape_name(device);
    if (catalog.select_rows(namespace_name, {glob, "*"}).size() != of_last) return;
    for (const std::uint32_t row : catalog.select_device_rows(namespace_name, glob))
      target.devices.push_back({last.namespace_id, last.device, row});
  };
  for (const catalog::SeriesRow row : target.series) {
    const auto entry = catalog.series_at(row);
    if (!entry.ok()) continue;
    if (!auth::allows(Operation::Erase, principal, entry->namespace_name, entry->device,
                      entry->sensor))
      return not_allowed("this token may not erase all that the statement names");
    const bool is_next =
        entry->id.namespace_id != last.namespace_id || entry->id.device != last.device;
    if (is_next) {
      end_device();
      last = entry->id;
      of_last = 0;
      namespace_name = entry->namespace_name;
      device = entry->device;
    }
    ++of_last;
  }
  end_device();
  return ok();
}

// Adds the series that go with no device.
void add_single_series(const catalog::Catalog& catalog, EraseTarget& target) {
  for (const catalog::SeriesRow row : target.series) {
    const auto entry = catalog.series_at(row);
    if (!entry.ok()) continue;
    const EraseTarget::Device first{entry->id.namespace_id, entry->id.device, 0};
    const auto at = std::lower_bound(target.devices.begin(), target.devices.end(), first);
    const bool is_whole =
        at != target.devices.end() && at->namespace_id == first.namespace_id && at->id == first.id;
    if (!is_whole) target.single_series.push_back(row);
  }
}

template <typename Item>
void sort_once(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Names in full that nothing here has: a target may hold readings of them. A device that is known
// has its sensors' names, but for those that were erased.
void add_gone(const catalog::Catalog& catalog, const auth::Principal& principal,
              const std::string& namespace_name, const wire::Selection& allowed,
              const GoneFinder& is_elsewhere, EraseTarget& target) {
  if (is_elsewhere == nullptr || namespace_name.empty() || !allowed.identity.empty()) return;
  for (const wire::Selector& each : allowed.selectors) {
    if (!wire::is_literal(each.device) || (each.sensor != "*" && !wire::is_literal(each.sensor)))
      continue;
    GoneName name{namespace_name, wire::unescape_name(each.device), {}};
    if (each.sensor != "*") name.sensor = wire::unescape_name(each.sensor);
    const bool is_here =
        !catalog.select_rows(namespace_name, each).empty() ||
        std::any_of(target.only_said.begin(), target.only_said.end(), [&](const DeviceName& said) {
          return name.sensor.empty() && said.device == name.device;
        });
    const bool may_go = auth::allows(Operation::Erase, principal, namespace_name, name.device,
                                     name.sensor.empty() ? kAnySensor : name.sensor);
    if (!is_here && may_go && is_elsewhere(name)) target.gone.push_back(std::move(name));
  }
}

// Tells which of several selectors take nothing, so that nobody believes that they did.
void leave_out_idle(const catalog::Catalog& catalog, const EraseRequest& request,
                    const wire::Selection& allowed, EraseTarget& target) {
  if (allowed.selectors.size() < 2) return;
  for (const wire::Selector& each : allowed.selectors) {
    wire::Selection one = each;
    one.identity = allowed.identity;
    bool is_any = !catalog.select_rows(request.namespace_name, one).empty();
    if (!is_any && each.sensor == "*" && one.identity.empty()) {
      is_any = !catalog.select_device_rows(request.namespace_name, each.device).empty() ||
               std::any_of(target.only_said.begin(), target.only_said.end(),
                           [&each](const DeviceName& name) {
                             return wire::glob_matches(each.device, name.device);
                           });
    }
    is_any =
        is_any || std::any_of(target.gone.begin(), target.gone.end(), [&](const GoneName& name) {
          return each.matches(name.device, name.sensor) ||
                 (name.sensor.empty() && each.sensor == "*" &&
                  wire::glob_matches(each.device, name.device));
        });
    if (!is_any) target.left.push_back({each, not_found("nothing matches " + one.text())});
  }
}

}  // namespace

Result<EraseTarget> resolve_target(const catalog::Catalog& catalog,
                                   const catalog::DeviceIndex& devices,
                                   const auth::Principal& principal, const EraseRequest& request,
                                   const GoneFinder& is_elsewhere) {
  if (request.to_ns && request.range().from_ns >= *request.to_ns)
    return invalid_argument("the range of times is empty: from is not before to");
  EraseTarget target;
  EC_ASSIGN_OR_RETURN(wire::Selection allowed,
                      auth::authorize(Operation::Erase, principal, request.namespace_name,
                                      request.selection, target.left));
  if (request.find) {
    EC_TRY(add_found(catalog, principal, request.find, !request.has_all_times(), target));
    if (target.series.empty()) return not_found("nothing matches");
    sort_once(target.devices);
    add_single_series(catalog, target);
    return target;
  }
  if (!request.namespace_name.empty() && !catalog.has_namespace(request.namespace_name))
    return not_found("no namespace " + request.namespace_name);
  std::size_t refused = 0;
  const auto add = [&](const std::string& of_namespace,
                       const wire::Selection& selection) -> Status {
    refused += add_series(catalog, principal, of_namespace, selection, target.series);
    // By identity series are meant, and not the devices that have no others.
    if (!selection.identity.empty()) return ok();
    for (const wire::Selector& each : selection.selectors) {
      if (each.sensor == "*")
        EC_TRY(add_devices(catalog, devices, principal, of_namespace, each, target));
    }
    return ok();
  };
  EC_TRY(each_selection(devices, request, allowed, add));
  if (request.devices.empty())
    add_gone(catalog, principal, request.namespace_name, allowed, is_elsewhere, target);
  if (target.series.empty() && target.device_count() == 0 && target.gone.empty()) {
    if (refused > 0) return not_allowed("nothing of what matches may be erased with this token");
    return not_found("nothing matches " + request.selection.text());
  }
  leave_out_idle(catalog, request, allowed, target);
  sort_once(target.devices);
  sort_once(target.only_said);
  sort_once(target.gone);
  add_single_series(catalog, target);
  target.is_everything =
      request.devices.empty() && !request.selection.names_devices() && refused == 0 &&
      target.gone.empty() &&
      target.series.size() == catalog.select_rows(request.namespace_name, wire::Selector()).size();
  return target;
}

catalog::Erased names_of(const catalog::Catalog& catalog, const EraseTarget& target) {
  catalog::Erased names;
  names.devices.reserve(target.device_count());
  for (const DeviceName& name : target.only_said)
    names.devices.push_back({name.namespace_name, name.device, 0, 0});
  for (const EraseTarget::Device& device : target.devices) {
    auto entry = catalog.device_at(device.row);
    if (entry.ok()) names.devices.push_back(std::move(entry).value());
  }
  names.series.reserve(target.single_series.size());
  for (const catalog::SeriesRow row : target.single_series) {
    auto entry = catalog.series_at(row);
    if (entry.ok()) names.series.push_back(std::move(entry).value());
  }
  sort_series(names);
  return names;
}

void sort_series(catalog::Erased& names) {
  std::sort(names.series.begin(), names.series.end(),
            [](const SeriesEntry& a, const SeriesEntry& b) {
              return std::tie(a.id.namespace_id, a.id.device, a.id.sensor) <
                     std::tie(b.id.namespace_id, b.id.device, b.id.sensor);
            });
}

KeyRange range_of_series(const catalog::SeriesId& id, TimeRange range) {
  KeyRange keys;
  keys.lower = range.from_ns == INT64_MIN
                   ? prefix_of(id, wire::kSeriesPrefixBytes)
                   : wire::make_reading_key({id.device, id.sensor, range.from_ns});
  keys.upper = range.to_ns
                   ? wire::make_reading_key({id.device, id.sensor, *range.to_ns})
                   : catalog::span_of_prefix(0, prefix_of(id, wire::kSeriesPrefixBytes)).upper;
  return keys;
}

Status tell_readings(const catalog::Catalog& catalog, const EraseTarget& target, TimeRange range,
                     const catalog::SpanTaker& take) {
  const auto tell = [&](const catalog::SeriesId& id) {
    KeyRange keys = range_of_series(id, range);
    return take({id.namespace_id, std::move(keys.lower), std::move(keys.upper)});
  };
  const bool has_all_times = range == TimeRange{};
  for (const catalog::SeriesRow row : has_all_times ? target.single_series : target.series) {
    const auto entry = catalog.series_at(row);
    if (entry.ok()) EC_TRY(tell(entry->id));
  }
  if (!has_all_times) return ok();
  for (const EraseTarget::Device& each : target.devices) {
    EC_TRY(take(catalog::span_of_prefix(
        each.namespace_id, prefix_of({each.namespace_id, each.id, 0}, sizeof(each.id)))));
  }
  return ok();
}

TimeRange whole_windows(TimeRange range, std::int64_t every_ns) {
  const auto into_window = [=](std::int64_t time_ns) {
    const std::int64_t into = time_ns % every_ns;
    return into < 0 ? into + every_ns : into;
  };
  TimeRange whole = range;
  if (__builtin_sub_overflow(range.from_ns, into_window(range.from_ns), &whole.from_ns))
    whole.from_ns = INT64_MIN;
  if (!range.to_ns || into_window(*range.to_ns) == 0) return whole;
  std::int64_t end_ns = 0;
  whole.to_ns.reset();
  if (!__builtin_add_overflow(*range.to_ns, every_ns - into_window(*range.to_ns), &end_ns))
    whole.to_ns = end_ns;
  return whole;
}

Status tell_windows(const Engine& engine, const catalog::Catalog& catalog,
                    const retention::TierMarks& marks, const EraseTarget& target, TimeRange range,
                    const catalog::SpanTaker& take) {
  std::map<NamespaceId, std::vector<catalog::TierSpace>> tiers;
  const auto tiers_of = [&](NamespaceId id) -> const std::vector<catalog::TierSpace>& {
    const auto [at, is_new] = tiers.try_emplace(id);
    if (is_new) at->second = catalog::tier_spaces_of(engine, id);
    return at->second;
  };
  const bool has_all_times = range == TimeRange{};
  for (const catalog::SeriesRow row : has_all_times ? target.single_series : target.series) {
    const auto entry = catalog.series_at(row);
    // Without a mark there are no windows.
    if (!entry.ok() || marks.find(entry->id).every_ns.empty()) continue;
    for (const catalog::TierSpace& tier : tiers_of(entry->id.namespace_id)) {
      const TimeRange whole = whole_windows(range, tier.every_ns);
      for (std::uint32_t column = 0; column < catalog::kTierColumns; ++column) {
        KeyRange keys = range_of_series(
            catalog::tier_series(tier.id, entry->id, static_cast<catalog::TierColumn>(column)),
            whole);
        EC_TRY(take({tier.id, std::move(keys.lower), std::move(keys.upper)}));
      }
    }
  }
  if (!has_all_times) return ok();
  for (const EraseTarget::Device& each : target.devices) {
    for (const catalog::TierSpace& tier : tiers_of(each.namespace_id)) {
      EC_TRY(take(
          catalog::span_of_prefix(tier.id, prefix_of({tier.id, each.id, 0}, sizeof(each.id)))));
    }
  }
  return ok();
}

}  // namespace edgecase::erase
