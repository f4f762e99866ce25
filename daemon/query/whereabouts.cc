#include "query/whereabouts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "catalog/erased.h"
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

// Ranges of keys to ask for, each with the locations it stands for.
struct Wanted {
  catalog::KeySpan span;
  std::set<std::string> locations;
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
    }
    return ok();
  }

  void finish(Whereabouts& found) {
    found.bytes = bytes_;
    for (auto& [path, file] : files_) found.files.push_back(std::move(file));
    std::stable_sort(found.files.begin(), found.files.end(),
                     [](const auto& a, const auto& b) { return a.share.bytes > b.share.bytes; });
  }

 private:
  Engine& engine_;
  std::map<std::string, Whereabouts::File> files_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<Whereabouts> find_whereabouts(Engine& engine, const catalog::Catalog& catalog,
                                     const catalog::DeviceIndex& devices,
                                     const auth::Principal& principal,
                                     const std::string& namespace_name,
                                     const wire::Selector& selector) {
  EC_TRY(auth::authorize(auth::Operation::Read, principal, namespace_name, selector));
  Whereabouts found;
  std::map<DeviceId, std::vector<SeriesEntry>> by_device;
  for (SeriesEntry& entry : catalog.select(namespace_name, selector)) {
    if (!auth::allows(auth::Operation::Read, principal, entry.namespace_name, entry.device,
                      entry.sensor)) {
      continue;
    }
    ++found.series;
    found.reach.add(entry.namespace_name, entry.device);
    by_device[{entry.id.namespace_id, entry.id.device}].push_back(std::move(entry));
  }
  if (by_device.empty())
    return not_found("nothing matches " + selector.device + "/" + selector.sensor);
  found.devices = by_device.size();
  const bool by_namespace = selector.device == "*" && selector.sensor == "*" && !principal.grant &&
                            by_device.size() > kLocatedDevicesMax;
  std::map<NamespaceId, std::set<std::string>> of_namespaces;
  Collector collector(engine);
  for (const auto& [id, entries] : by_device) {
    EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata said,
                        devices.metadata({entries.front().namespace_name, entries.front().device}));
    std::set<std::string> locations;
    if (!said.location.empty()) locations.insert(said.location);
    if (by_namespace) {
      of_namespaces[id.first].insert(locations.begin(), locations.end());
      continue;
    }
    const std::size_t all = catalog
                                .select(entries.front().namespace_name,
                                        {wire::escape_name(entries.front().device), "*"})
                                .size();
    const std::size_t prefix_bytes =
        all == entries.size() ? sizeof(id.second) : wire::kSeriesPrefixBytes;
    for (const SeriesEntry& entry : entries) {
      EC_TRY(collector.add(
          {catalog::span_of_prefix(id.first, prefix_of(entry.id, prefix_bytes)), locations}));
      if (all == entries.size()) break;
    }
  }
  for (const auto& [id, locations] : of_namespaces)
    EC_TRY(collector.add({{id, {}, {}}, locations}));
  collector.finish(found);
  return found;
}

}  // namespace edgecase::query
