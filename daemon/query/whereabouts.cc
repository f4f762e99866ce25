#include "query/whereabouts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "wire/reading_key.h"

namespace edgecase::query {
namespace {

using catalog::SeriesEntry;
using DeviceId = std::pair<NamespaceId, std::uint32_t>;

Bytes prefix_of(const catalog::SeriesId& id, std::size_t bytes) {
  Bytes key = wire::make_reading_key({id.device, id.sensor, 0});
  key.resize(bytes);
  return key;
}

// Keys to ask for, with the locations they stand for.
struct Wanted {
  catalog::KeySpan span;
  std::set<std::string> locations;
  bool are_windows = false;
};

class Collector {
 public:
  explicit Collector(Engine& engine) : engine_(engine) {}

  Status add(const Wanted& wanted) {
    EC_ASSIGN_OR_RETURN(
        std::vector<FileShare> shares,
        engine_.locate(wanted.span.namespace_id, {wanted.span.lower, wanted.span.upper}));
    for (FileShare& share : shares) {
      const auto [at, is_new] = files_.try_emplace(share.path);
      Whereabouts::File& file = at->second;
      const std::uint64_t bytes = share.bytes;
      const std::uint64_t before = file.share.bytes;
      file.share = std::move(share);
      file.share.bytes = before + bytes;
      file.locations.insert(wanted.locations.begin(), wanted.locations.end());
      bytes_ += bytes;
      if (wanted.are_windows) window_bytes_ += bytes;
    }
    return ok();
  }
  const std::vector<catalog::TierSpace>& tiers_of(NamespaceId id) {
    const auto [at, is_new] = tiers_.try_emplace(id);
    if (is_new) at->second = catalog::tier_spaces_of(engine_, id);
    return at->second;
  }

  void finish(Whereabouts& found) {
    found.bytes = bytes_;
    found.window_bytes = window_bytes_;
    for (auto& [path, file] : files_) found.files.push_back(std::move(file));
    std::stable_sort(found.files.begin(), found.files.end(),
                     [](const auto& a, const auto& b) { return a.share.bytes > b.share.bytes; });
  }

 private:
  Engine& engine_;
  std::map<std::string, Whereabouts::File> files_;
  std::map<NamespaceId, std::vector<catalog::TierSpace>> tiers_;
  std::uint64_t bytes_ = 0, window_bytes_ = 0;
};

// The series of one device, in which files they are, and their windows.
Status locate_device(const catalog::Catalog& catalog, const std::vector<SeriesEntry>& entries,
                     const std::set<std::string>& locations, Collector& collector) {
  const SeriesEntry& first = entries.front();
  const std::size_t all =
      catalog.select_rows(first.namespace_name, {wire::escape_name(first.device), "*"}).size();
  if (all == entries.size()) {
    const Bytes device = prefix_of(first.id, sizeof(first.id.device));
    const NamespaceId id = first.id.namespace_id;
    EC_TRY(collector.add({catalog::span_of_prefix(id, device), locations}));
    for (const catalog::TierSpace& tier : collector.tiers_of(id))
      EC_TRY(collector.add({catalog::span_of_prefix(tier.id, device), locations, true}));
    return ok();
  }
  for (const SeriesEntry& entry : entries) {
    const NamespaceId id = entry.id.namespace_id;
    EC_TRY(collector.add(
        {catalog::span_of_prefix(id, prefix_of(entry.id, wire::kSeriesPrefixBytes)), locations}));
    if (entry.id.sensor > catalog::kTierSensorMax) continue;
    for (const catalog::TierSpace& tier : collector.tiers_of(id))
      EC_TRY(collector.add({catalog::windows_span(tier, entry.id), locations, true}));
  }
  return ok();
}

DeviceId device_of(const SeriesEntry& entry) {
  return {entry.id.namespace_id, entry.id.device};
}

}  // namespace

Result<Whereabouts> find_whereabouts(const QueryService& service,
                                     const catalog::DeviceIndex& devices,
                                     const auth::Principal& principal,
                                     const std::string& namespace_name,
                                     const wire::Selection& selection) {
  EC_ASSIGN_OR_RETURN(QueryService::Found selected,
                      service.select(auth::Operation::Read, principal, namespace_name, selection));
  const catalog::Catalog& catalog = service.catalog();
  Whereabouts found;
  // A device's series follow one another; of all that matches no more than one device is held.
  std::optional<DeviceId> last;
  std::vector<catalog::SeriesRow>& rows = selected.series;
  for (LeftOutReadings& each : selected.left_out) found.left_out.add(std::move(each));
  std::erase_if(rows, [&](catalog::SeriesRow row) {
    const auto entry = catalog.series_at(row);
    if (!entry.ok()) return true;
    ++found.series;
    found.reach.add(entry->namespace_name, entry->device);
    if (std::exchange(last, device_of(*entry)) != device_of(*entry)) ++found.devices;
    return false;
  });
  if (rows.empty()) return not_found("nothing matches " + selection.text());
  const bool is_all =
      selection.identity.empty() &&
      std::any_of(selection.selectors.begin(), selection.selectors.end(),
                  [](const auto& each) { return each.device == "*" && each.sensor == "*"; });
  const bool by_namespace = is_all && !principal.grant && found.devices > kLocatedDevicesMax;
  std::map<NamespaceId, std::set<std::string>> of_namespaces;
  Collector collector(service.engine());
  std::vector<SeriesEntry> of_device;
  // What is damaged costs itself alone.
  const auto unless_damaged = [&found](const std::string& of_namespace, const std::string& device,
                                       Status status) {
    if (status.code() != StatusCode::Corruption) return status;
    found.left_out.add({of_namespace, device, "*", {}, {}, std::move(status)});
    return ok();
  };
  const auto add_device = [&]() -> Status {
    const SeriesEntry& first = of_device.front();
    const auto said = devices.metadata({first.namespace_name, first.device});
    EC_TRY(unless_damaged(first.namespace_name, first.device, said.status()));
    std::set<std::string> locations;
    if (said.ok() && !said->location.empty()) locations.insert(said->location);
    if (by_namespace) {
      of_namespaces[first.id.namespace_id].merge(locations);
      return ok();
    }
    return unless_damaged(first.namespace_name, first.device,
                          locate_device(catalog, of_device, locations, collector));
  };
  for (const catalog::SeriesRow row : rows) {
    auto entry = catalog.series_at(row);
    if (!entry.ok()) continue;
    if (!of_device.empty() && device_of(of_device.front()) != device_of(*entry)) {
      EC_TRY(add_device());
      of_device.clear();
    }
    of_device.push_back(*std::move(entry));
  }
  if (!of_device.empty()) EC_TRY(add_device());
  const std::string of_all = namespace_name.empty() ? "*" : namespace_name;
  for (const auto& [id, locations] : of_namespaces) {
    EC_TRY(unless_damaged(of_all, "*", collector.add({{id, {}, {}}, locations})));
    for (const catalog::TierSpace& tier : collector.tiers_of(id))
      EC_TRY(unless_damaged(of_all, "*", collector.add({{tier.id, {}, {}}, locations, true})));
  }
  collector.finish(found);
  return found;
}

}  // namespace edgecase::query
