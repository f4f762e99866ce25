#include "query/query_service.h"

#include <algorithm>
#include <limits>

#include "query/cursors.h"
#include "query/series_scan.h"

namespace edgecase::query {
namespace {

const auth::Principal kItself{auth::PrincipalKind::LocalSocket, "daemon", nullptr};

double rate_of(std::uint64_t steps, std::int64_t first_ns, std::int64_t last_ns) {
  // As doubles: the distance may be more than an int64 holds.
  const double seconds = (static_cast<double>(last_ns) - static_cast<double>(first_ns)) / 1e9;
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

Status check_request(const wire::QueryRequest& request) {
  if (request.every_ns < 0) return invalid_argument("a window's length is negative");
  if (request.to_ns.has_value() && *request.to_ns < request.from_ns) {
    return invalid_argument("the range ends before it begins");
  }
  return ok();
}

void include_times(const std::optional<std::int64_t>& first,
                   const std::optional<std::int64_t>& last, DeviceInfo& device) {
  if (first.has_value()) {
    device.first_ns = std::min(device.first_ns.value_or(*first), *first);
  }
  if (last.has_value()) device.last_ns = std::max(device.last_ns.value_or(*last), *last);
}

void add_to(Reach* reach, const std::vector<catalog::SeriesEntry>& series) {
  if (reach == nullptr) return;
  for (const catalog::SeriesEntry& each : series) reach->add(each.namespace_name, each.device);
}

}  // namespace

void Reach::add(const std::string& namespace_name, const std::string& device) {
  if (last_.second == device && last_.first == namespace_name) return;
  last_ = {namespace_name, device};
  if (devices.size() < kDevicesMax) {
    devices.push_back(last_);
  } else {
    ++more;
  }
}

QueryService::QueryService(Engine& engine, const catalog::Catalog& catalog,
                           const catalog::DeviceIndex* devices)
    : engine_(engine), catalog_(catalog), devices_(devices) {}

Status QueryService::withhold(const auth::Principal& principal, std::string_view purpose,
                              const wire::Selector& selector,
                              std::vector<catalog::SeriesEntry>& series,
                              std::uint64_t* withheld) const {
  EC_ASSIGN_OR_RETURN(const std::string read_for, auth::purpose_of(principal, purpose));
  if (devices_ == nullptr) return ok();
  std::uint64_t count = 0;
  Status refused;
  // A device's series follow one another.
  std::string namespace_name, device;
  bool is_refused = false;
  std::erase_if(series, [&](const catalog::SeriesEntry& entry) {
    if (entry.namespace_name == namespace_name && entry.device == device) return is_refused;
    namespace_name = entry.namespace_name;
    device = entry.device;
    const Status checked = devices_->check_purpose(namespace_name, device, read_for);
    is_refused = !checked.ok();
    if (is_refused && count++ == 0) refused = checked;
    return is_refused;
  });
  if (withheld != nullptr) *withheld = count;
  return count > 0 && series.empty() && wire::is_literal(selector.device) ? refused : ok();
}

Result<std::vector<catalog::SeriesEntry>> QueryService::select_filtered(
    auth::Operation operation, const auth::Principal& principal, const std::string& namespace_name,
    const wire::Selector& selector, const catalog::DeviceFilter& filter,
    const catalog::DevicePage& page) const {
  EC_TRY(auth::authorize(operation, principal, namespace_name, selector));
  std::vector<catalog::SeriesEntry> series;
  if (devices_ == nullptr) return series;
  catalog::DevicePage next = page;
  std::size_t found = 0;
  // Some may be left out, so that one page of names does not make one of devices.
  while (found < page.limit) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                        devices_->find(namespace_name, filter, next));
    for (const catalog::DeviceName& name : names) {
      if (found == page.limit) break;
      if (!wire::glob_matches(selector.device, name.device)) continue;
      const std::size_t before = series.size();
      for (catalog::SeriesEntry& entry : catalog_.select(
               name.namespace_name, {wire::escape_name(name.device), selector.sensor})) {
        if (auth::allows(operation, principal, entry.namespace_name, entry.device, entry.sensor))
          series.push_back(std::move(entry));
      }
      if (series.size() > before) ++found;
    }
    if (names.size() < page.limit) break;
    next.after = names.back();
  }
  return series;
}

Result<ReadingFilter> QueryService::filter(const auth::Principal& principal,
                                           const std::string& namespace_name,
                                           const wire::Selector& selector,
                                           std::string_view purpose) const {
  EC_TRY(auth::authorize(auth::Operation::Read, principal, namespace_name, selector));
  EC_ASSIGN_OR_RETURN(std::string read_for, auth::purpose_of(principal, purpose));
  if (devices_ != nullptr && wire::is_literal(selector.device) && !namespace_name.empty()) {
    EC_TRY(devices_->check_purpose(namespace_name, wire::unescape_name(selector.device), read_for));
  }
  return ReadingFilter([this, &principal, namespace_name, selector,
                        read_for = std::move(read_for)](const wire::Reading& reading) {
    const bool is_meant = namespace_name.empty() ? !reading.namespace_name.starts_with('_')
                                                 : reading.namespace_name == namespace_name;
    return is_meant && selector.matches(reading.device, reading.sensor) &&
           auth::allows(auth::Operation::Read, principal, reading.namespace_name, reading.device,
                        reading.sensor) &&
           (devices_ == nullptr ||
            devices_->check_purpose(reading.namespace_name, reading.device, read_for).ok());
  });
}

Result<std::vector<catalog::SeriesEntry>> QueryService::select_requested(
    const auth::Principal& principal, const wire::QueryRequest& request) const {
  const catalog::DeviceFilter filter{request.owner, request.of_purpose, request.of_objection,
                                     request.of_labels};
  const bool is_owned = !request.owner.empty();
  const auth::Operation operation =
      request.exports || is_owned ? auth::Operation::Export : auth::Operation::Read;
  if (filter.empty()) return select(operation, principal, request.namespace_name, request.selector);
  if (is_owned) EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(
      std::vector<catalog::SeriesEntry> series,
      select_filtered(operation, principal, request.namespace_name, request.selector, filter));
  if (!series.empty()) return series;
  return not_found(is_owned ? "nothing is stored of " + request.owner
                            : "nothing is stored of devices of which this is said");
}

Result<std::vector<catalog::SeriesEntry>> QueryService::select(
    auth::Operation operation, const auth::Principal& principal, const std::string& namespace_name,
    const wire::Selector& selector) const {
  EC_TRY(auth::authorize(operation, principal, namespace_name, selector));
  if (!namespace_name.empty() && namespace_name != wire::kDefaultNamespace &&
      namespace_name != wire::kRejectedNamespace && !catalog_.has_namespace(namespace_name)) {
    return not_found("no namespace " + namespace_name);
  }
  std::vector<catalog::SeriesEntry> series = catalog_.select(namespace_name, selector);
  if (principal.grant) {
    std::erase_if(series, [&](const catalog::SeriesEntry& entry) {
      return !auth::allows(operation, principal, entry.namespace_name, entry.device, entry.sensor);
    });
  }
  if (!series.empty() || !selector.is_exact()) return series;
  const std::string device = wire::unescape_name(selector.device);
  const std::string sensor = wire::unescape_name(selector.sensor);
  if (namespace_name.empty()) {
    return not_found("no series " + device + "/" + sensor + " in any namespace");
  }
  // For its words about what is missing; a first write may have come in between.
  EC_ASSIGN_OR_RETURN(catalog::SeriesEntry entry, catalog_.find(namespace_name, device, sensor));
  series.push_back(std::move(entry));
  return series;
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query(const auth::Principal& principal,
                                                           const wire::QueryRequest& request,
                                                           Reach* reach) {
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(std::vector<catalog::SeriesEntry> series,
                      select_requested(principal, request));
  if (request.owner.empty()) {
    EC_TRY(withhold(principal, request.purpose, request.selector, series,
                    reach == nullptr ? nullptr : &reach->withheld));
  }
  add_to(reach, series);
  return run(request, std::move(series), engine_.snapshot());
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query_at(
    const auth::Principal& principal, const wire::QueryRequest& request,
    std::shared_ptr<const Snapshot> moment, Reach* reach) {
  EC_TRY(auth::authorize_administration(principal));
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(
      std::vector<catalog::SeriesEntry> series,
      select(auth::Operation::Export, principal, request.namespace_name, request.selector));
  add_to(reach, series);
  return run(request, std::move(series), std::move(moment));
}

Result<std::unique_ptr<ReadingCursor>> QueryService::run(const wire::QueryRequest& request,
                                                         std::vector<catalog::SeriesEntry> series,
                                                         std::shared_ptr<const Snapshot> moment) {
  const bool from_the_beginning = request.from_ns == kFirstTime;
  ReadOptions options;
  options.snapshot = std::move(moment);
  options.direction = request.descending ? Direction::Reverse : Direction::Forward;
  // Runs through everything would push out of the cache what others need.
  options.fill_cache = !from_the_beginning || request.limit.has_value();
  const TimeRange range{request.from_ns, request.to_ns};
  SeriesScan scan(engine_, std::move(series), range, options);
  const std::uint64_t limit = request.limit.value_or(kNoLimit);
  if (request.every_ns == 0 && !request.aggregate.has_value()) {
    return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), limit, kNoLimit));
  }
  WindowOptions window;
  window.aggregate = request.aggregate.value_or(wire::Aggregate::Mean);
  window.every_ns = request.every_ns;
  if (!from_the_beginning) window.from_ns = request.from_ns;
  window.descending = request.descending;
  return std::unique_ptr<ReadingCursor>(new WindowCursor(std::move(scan), window, limit));
}

Result<std::unique_ptr<ReadingCursor>> QueryService::last(const auth::Principal& principal,
                                                          const std::string& namespace_name,
                                                          const wire::Selector& selector,
                                                          std::string_view purpose, Reach* reach) {
  EC_ASSIGN_OR_RETURN(std::vector<catalog::SeriesEntry> series,
                      select(auth::Operation::Read, principal, namespace_name, selector));
  EC_TRY(withhold(principal, purpose, selector, series,
                  reach == nullptr ? nullptr : &reach->withheld));
  add_to(reach, series);
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  options.direction = Direction::Reverse;
  SeriesScan scan(engine_, std::move(series), {kFirstTime, std::nullopt}, options);
  return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), kNoLimit, 1));
}

Result<SeriesInfo> QueryService::describe(const catalog::SeriesEntry& entry,
                                          const ReadOptions& options) {
  SeriesInfo info;
  info.namespace_name = entry.namespace_name;
  info.device = entry.device;
  info.sensor = entry.sensor;
  const KeyRange keys = key_range(entry.id, {kFirstTime, std::nullopt});
  EC_ASSIGN_OR_RETURN(const RangeStats stats,
                      engine_.range_stats(entry.id.namespace_id, keys, options));
  info.count = stats.entries;
  info.stored_bytes = stats.stored_bytes;
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    ReadOptions one_way = options;
    one_way.direction = direction;
    EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(entry.id.namespace_id, keys, one_way));
    EC_TRY(iterator->status());
    if (!iterator->valid()) continue;
    const std::int64_t time_ns = wire::time_of_reading_key(iterator->key().data());
    (direction == Direction::Forward ? info.first_ns : info.last_ns) = time_ns;
  }
  if (info.count > 0 && info.first_ns.has_value() && info.last_ns.has_value()) {
    info.readings_per_second = rate_of(info.count - 1, *info.first_ns, *info.last_ns);
  }
  return info;
}

Result<std::vector<SeriesInfo>> QueryService::series(const auth::Principal& principal,
                                                     const std::string& namespace_name,
                                                     const wire::Selector& selector,
                                                     auth::Operation operation,
                                                     std::optional<std::string> purpose,
                                                     std::uint64_t* withheld) {
  EC_ASSIGN_OR_RETURN(std::vector<catalog::SeriesEntry> entries,
                      select(operation, principal, namespace_name, selector));
  if (purpose) EC_TRY(withhold(principal, *purpose, selector, entries, withheld));
  return describe(entries, engine_.snapshot());
}

Result<std::vector<SeriesInfo>> QueryService::series_of(std::string_view owner) {
  EC_ASSIGN_OR_RETURN(
      const std::vector<catalog::SeriesEntry> entries,
      select_filtered(auth::Operation::Export, kItself, "", {}, catalog::owned_by(owner)));
  return describe(entries, engine_.snapshot());
}

Result<std::vector<SeriesInfo>> QueryService::series_at(const auth::Principal& principal,
                                                        const std::string& namespace_name,
                                                        const wire::Selector& selector,
                                                        std::shared_ptr<const Snapshot> moment) {
  EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::SeriesEntry> entries,
                      select(auth::Operation::Export, principal, namespace_name, selector));
  EC_ASSIGN_OR_RETURN(std::vector<SeriesInfo> infos, describe(entries, std::move(moment)));
  std::erase_if(infos, [](const SeriesInfo& info) { return info.count == 0; });
  return infos;
}

Result<std::vector<SeriesInfo>> QueryService::describe(
    const std::vector<catalog::SeriesEntry>& entries, std::shared_ptr<const Snapshot> moment) {
  ReadOptions options;
  options.snapshot = std::move(moment);
  std::vector<SeriesInfo> infos;
  infos.reserve(entries.size());
  for (const catalog::SeriesEntry& entry : entries) {
    EC_ASSIGN_OR_RETURN(SeriesInfo info, describe(entry, options));
    infos.push_back(std::move(info));
  }
  return infos;
}

Result<std::vector<DeviceInfo>> QueryService::devices(const auth::Principal& principal,
                                                      const std::string& namespace_name,
                                                      const wire::Selector& selector,
                                                      const catalog::DeviceFilter& filter,
                                                      const catalog::DevicePage& page) {
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::SeriesEntry> entries,
                      filter.empty()
                          ? select(auth::Operation::Read, principal, namespace_name, selector)
                          : select_filtered(auth::Operation::Read, principal, namespace_name,
                                            selector, filter, page));
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  std::vector<DeviceInfo> devices;
  // A device's series follow one another.
  for (const catalog::SeriesEntry& entry : entries) {
    if (page.after && catalog::DeviceName{entry.namespace_name, entry.device} <= *page.after)
      continue;
    if (devices.empty() || devices.back().namespace_name != entry.namespace_name ||
        devices.back().device != entry.device) {
      if (devices.size() == page.limit) break;
      devices.emplace_back();
      devices.back().namespace_name = entry.namespace_name;
      devices.back().device = entry.device;
    }
    EC_ASSIGN_OR_RETURN(const SeriesInfo info, describe(entry, options));
    DeviceInfo& device = devices.back();
    ++device.series;
    device.count += info.count;
    device.stored_bytes += info.stored_bytes;
    device.readings_per_second += info.readings_per_second;
    include_times(info.first_ns, info.last_ns, device);
  }
  return devices;
}

}  // namespace edgecase::query
