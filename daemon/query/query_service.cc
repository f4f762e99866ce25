#include "query/query_service.h"

#include <algorithm>
#include <limits>

#include "edgecase/keyed_hash.h"

#include "query/cursors.h"
#include "query/series_scan.h"

namespace edgecase::query {
namespace {

const auth::Principal kItself{auth::PrincipalKind::LocalSocket, "daemon", nullptr};

// Names of devices that are held at once.
constexpr std::size_t kNamesAtOnce = 1'000;

Patience* patience_of(const Reach* reach) {
  return reach == nullptr ? nullptr : reach->patience;
}

Status check_request(const wire::QueryRequest& request) {
  if (request.every_ns < 0) return invalid_argument("a window's length is negative");
  if (request.to_ns.has_value() && *request.to_ns < request.from_ns) {
    return invalid_argument("the range ends before it begins");
  }
  return ok();
}

}  // namespace

void Reach::add(const std::string& namespace_name, const std::string& device) {
  if (last_.second == device && last_.first == namespace_name) return;
  last_ = {namespace_name, device};
  if (counts_once && !seen_.insert(KeyedHash()(namespace_name + '/' + device)).second) return;
  if (devices.size() < kDevicesMax) {
    devices.push_back(last_);
  } else {
    ++more;
  }
}

void QueryService::add_to(Reach* reach, const Rows& series) const {
  if (reach == nullptr) return;
  for (const catalog::SeriesRow row : series) {
    const auto entry = catalog_.series_at(row);
    if (!entry.ok()) continue;
    reach->add(entry->namespace_name, entry->device);
    reach->has_identities = reach->has_identities || !entry->identity.empty();
  }
}

QueryService::QueryService(Engine& engine, const catalog::Catalog& catalog,
                           const catalog::DeviceIndex* devices)
    : engine_(engine), catalog_(catalog), devices_(devices), summaries_(engine) {}

Status QueryService::withhold(const auth::Principal& principal, std::string_view purpose,
                              const wire::Selector& selector, Rows& series,
                              std::uint64_t* withheld) const {
  EC_ASSIGN_OR_RETURN(const std::string read_for, auth::purpose_of(principal, purpose));
  if (devices_ == nullptr) return ok();
  std::uint64_t count = 0;
  Status refused;
  // A device's series follow one another.
  std::string namespace_name, device;
  bool is_refused = false;
  std::erase_if(series, [&](catalog::SeriesRow row) {
    auto entry = catalog_.series_at(row);
    if (!entry.ok()) return true;
    if (entry->namespace_name == namespace_name && entry->device == device) return is_refused;
    namespace_name = std::move(entry->namespace_name);
    device = std::move(entry->device);
    const Status checked = devices_->check_purpose(namespace_name, device, read_for);
    is_refused = !checked.ok();
    if (is_refused && count++ == 0) refused = checked;
    return is_refused;
  });
  if (withheld != nullptr) *withheld = count;
  return count > 0 && series.empty() && wire::is_literal(selector.device) ? refused : ok();
}

Result<QueryService::Rows> QueryService::select_filtered(auth::Operation operation,
                                                         const auth::Principal& principal,
                                                         const std::string& namespace_name,
                                                         const wire::Selector& selector,
                                                         const catalog::DeviceFilter& filter,
                                                         const catalog::DevicePage& page) const {
  EC_TRY(auth::authorize(operation, principal, namespace_name, selector));
  Rows series;
  if (devices_ == nullptr) return series;
  catalog::DevicePage next = page;
  std::size_t found = 0;
  // Some may be left out, so that one page of names does not make one of devices.
  next.limit = std::min(page.limit, kNamesAtOnce);
  while (found < page.limit) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                        devices_->find(namespace_name, filter, next));
    for (const catalog::DeviceName& name : names) {
      if (found == page.limit) break;
      if (!wire::glob_matches(selector.device, name.device)) continue;
      const std::size_t before = series.size();
      for (const catalog::SeriesRow row : catalog_.select_rows(
               name.namespace_name, {wire::escape_name(name.device), selector.sensor})) {
        if (may_reach(operation, principal, row)) series.push_back(row);
      }
      if (series.size() > before) ++found;
    }
    if (names.size() < next.limit) break;
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

Result<QueryService::Rows> QueryService::select_requested(const auth::Principal& principal,
                                                          const wire::QueryRequest& request) const {
  const catalog::DeviceFilter filter{request.owner, request.of_purpose, request.of_objection,
                                     request.of_labels};
  const bool is_owned = !request.owner.empty();
  const auth::Operation operation =
      request.exports || is_owned ? auth::Operation::Export : auth::Operation::Read;
  if (filter.empty()) return select(operation, principal, request.namespace_name, request.selector);
  if (is_owned) EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(Rows series, select_filtered(operation, principal, request.namespace_name,
                                                   request.selector, filter));
  if (!series.empty()) return series;
  return not_found(is_owned ? "nothing is stored of " + request.owner
                            : "nothing is stored of devices of which this is said");
}

Result<QueryService::Rows> QueryService::readable(const auth::Principal& principal,
                                                  const std::string& namespace_name,
                                                  std::string_view purpose, Reach* reach) const {
  const bool is_there =
      namespace_name == wire::kDefaultNamespace || catalog_.has_namespace(namespace_name);
  if (!is_there || !auth::allows_namespace(principal, namespace_name))
    return not_found("database not found: " + namespace_name);
  const wire::Selector all;
  EC_ASSIGN_OR_RETURN(Rows series, select(auth::Operation::Read, principal, namespace_name, all));
  EC_TRY(withhold(principal, purpose, all, series, reach == nullptr ? nullptr : &reach->withheld));
  return series;
}

bool QueryService::may_reach(auth::Operation operation, const auth::Principal& principal,
                             catalog::SeriesRow row) const {
  const auto entry = catalog_.series_at(row);
  return entry.ok() &&
         auth::allows(operation, principal, entry->namespace_name, entry->device, entry->sensor);
}

Result<QueryService::Rows> QueryService::select(auth::Operation operation,
                                                const auth::Principal& principal,
                                                const std::string& namespace_name,
                                                const wire::Selector& selector) const {
  EC_TRY(auth::authorize(operation, principal, namespace_name, selector));
  if (!namespace_name.empty() && namespace_name != wire::kRejectedNamespace &&
      !catalog_.has_namespace(namespace_name)) {
    return not_found("no namespace " + namespace_name);
  }
  Rows series = catalog_.select_rows(namespace_name, selector);
  if (principal.grant) {
    std::erase_if(series,
                  [&](catalog::SeriesRow row) { return !may_reach(operation, principal, row); });
  }
  if (!series.empty() || !selector.is_exact()) return series;
  const std::string device = wire::unescape_name(selector.device);
  const std::string sensor = wire::unescape_name(selector.sensor);
  if (namespace_name.empty()) {
    return not_found("no series " + device + "/" + sensor + " in any namespace");
  }
  // For its words about what is missing; a first write may have come in between.
  EC_TRY(catalog_.find(namespace_name, device, sensor).status());
  return catalog_.select_rows(namespace_name, selector);
}

// A request that names one series gets it whole or hears that there is none.
bool QueryService::may_lack_names(const wire::Selector& selector) const {
  return catalog_.is_damaged() && !selector.is_exact();
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query(const auth::Principal& principal,
                                                           const wire::QueryRequest& request,
                                                           Reach* reach) {
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(Rows series, select_requested(principal, request));
  if (request.owner.empty()) {
    EC_TRY(withhold(principal, request.purpose, request.selector, series,
                    reach == nullptr ? nullptr : &reach->withheld));
  }
  add_to(reach, series);
  return run(request, std::move(series), nullptr, reach);
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query_at(
    const auth::Principal& principal, const wire::QueryRequest& request,
    std::shared_ptr<const Snapshot> moment, Reach* reach) {
  EC_TRY(auth::authorize_administration(principal));
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(Rows series, select(auth::Operation::Export, principal,
                                          request.namespace_name, request.selector));
  add_to(reach, series);
  return run(request, std::move(series), std::move(moment), reach);
}

Result<std::unique_ptr<ReadingCursor>> QueryService::run(const wire::QueryRequest& request,
                                                         Rows series,
                                                         std::shared_ptr<const Snapshot> moment,
                                                         const Reach* reach) {
  const bool from_the_beginning = request.from_ns == kFirstTime;
  ReadOptions options;
  options.snapshot = std::move(moment);
  options.patience = patience_of(reach);
  options.direction = request.descending ? Direction::Reverse : Direction::Forward;
  // Runs through everything would push out of the cache what others need.
  options.fill_cache = !from_the_beginning || request.limit.has_value();
  options.large_value_bytes = kLargeTextBytes;
  const TimeRange range{request.from_ns, request.to_ns};
  SeriesScan scan(engine_, catalog_, std::move(series), range, options);
  if (may_lack_names(request.selector)) scan.leave_out(lost_names());
  const std::uint64_t limit = request.limit.value_or(kNoLimit);
  if (request.every_ns == 0 && !request.aggregate.has_value()) {
    return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), limit, kNoLimit));
  }
  WindowOptions window;
  window.aggregate = request.aggregate.value_or(wire::Aggregate::Mean);
  window.every_ns = request.every_ns;
  if (!from_the_beginning) window.from_ns = request.from_ns;
  window.descending = request.descending;
  if (request.every_ns > 0) window.windows_max = limits().windows;
  return std::unique_ptr<ReadingCursor>(new WindowCursor(std::move(scan), window, limit));
}

Result<std::unique_ptr<ReadingCursor>> QueryService::last(const auth::Principal& principal,
                                                          const std::string& namespace_name,
                                                          const wire::Selector& selector,
                                                          std::string_view purpose, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Rows series,
                      select(auth::Operation::Read, principal, namespace_name, selector));
  EC_TRY(withhold(principal, purpose, selector, series,
                  reach == nullptr ? nullptr : &reach->withheld));
  add_to(reach, series);
  ReadOptions options;
  options.direction = Direction::Reverse;
  options.patience = patience_of(reach);
  options.large_value_bytes = kLargeTextBytes;
  SeriesScan scan(engine_, catalog_, std::move(series), {kFirstTime, std::nullopt}, options);
  if (may_lack_names(selector)) scan.leave_out(lost_names());
  return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), kNoLimit, 1));
}

Result<SeriesListing> QueryService::list_series(const auth::Principal& principal,
                                                const std::string& namespace_name,
                                                const wire::Selector& selector,
                                                auth::Operation operation,
                                                std::optional<std::string> purpose, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Rows rows, select(operation, principal, namespace_name, selector));
  if (purpose) {
    EC_TRY(withhold(principal, *purpose, selector, rows,
                    reach == nullptr ? nullptr : &reach->withheld));
  }
  add_to(reach, rows);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(rows), nullptr,
                        patience_of(reach));
  if (may_lack_names(selector)) listing.leave_out(lost_names());
  return listing;
}

Result<SeriesListing> QueryService::list_series_of(std::string_view owner) {
  EC_ASSIGN_OR_RETURN(Rows rows, select_filtered(auth::Operation::Export, kItself, "", {},
                                                 catalog::owned_by(owner)));
  return SeriesListing(engine_, catalog_, summaries_, std::move(rows), nullptr, nullptr);
}

Result<SeriesListing> QueryService::list_series_at(const auth::Principal& principal,
                                                   const std::string& namespace_name,
                                                   const wire::Selector& selector,
                                                   std::shared_ptr<const Snapshot> moment,
                                                   Reach* reach) {
  EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(Rows rows,
                      select(auth::Operation::Export, principal, namespace_name, selector));
  add_to(reach, rows);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(rows), std::move(moment),
                        patience_of(reach));
  if (may_lack_names(selector)) listing.leave_out(lost_names());
  return listing;
}

Result<DeviceListing> QueryService::list_devices(const auth::Principal& principal,
                                                 const std::string& namespace_name,
                                                 const wire::Selector& selector,
                                                 const catalog::DeviceFilter& filter,
                                                 const catalog::DevicePage& page, Reach* reach) {
  EC_ASSIGN_OR_RETURN(
      Rows rows, filter.empty() ? select(auth::Operation::Read, principal, namespace_name, selector)
                                : select_filtered(auth::Operation::Read, principal, namespace_name,
                                                  selector, filter, page));
  rows = page_of(std::move(rows), page);
  add_to(reach, rows);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(rows), nullptr,
                        patience_of(reach));
  if (may_lack_names(selector)) listing.leave_out(lost_names());
  return DeviceListing(std::move(listing));
}

// A device's series follow one another.
QueryService::Rows QueryService::page_of(Rows series, const catalog::DevicePage& page) const {
  if (!page.after && page.limit == SIZE_MAX) return series;
  std::size_t devices = 0;
  catalog::DeviceName last;
  Rows rows;
  for (const catalog::SeriesRow row : series) {
    auto entry = catalog_.series_at(row);
    if (!entry.ok()) continue;
    catalog::DeviceName name{std::move(entry->namespace_name), std::move(entry->device)};
    if (page.after && name <= *page.after) continue;
    if (devices == 0 || name != last) {
      if (devices++ == page.limit) break;
      last = std::move(name);
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace edgecase::query
