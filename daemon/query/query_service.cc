#include "query/query_service.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/machine.h"
#include "query/cursors.h"
#include "query/series_scan.h"
#include "query/tiered_cursor.h"

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
  if (request.tiers && (request.every_ns != 0 || request.aggregate)) {
    return invalid_argument(
        "tiers gives windows as they are kept: leave it out with every and agg, which read them by "
        "themselves");
  }
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
  if (reach->series != nullptr) *reach->series = series;
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
                              const wire::Selection& selection, Rows& series,
                              std::uint64_t* withheld) const {
  EC_ASSIGN_OR_RETURN(const std::string read_for, auth::purpose_of(principal, purpose));
  if (devices_ == nullptr) return ok();
  std::uint64_t count = 0;
  Status refused;
  // A device's series follow one another.
  std::string namespace_name, device, sensor;
  std::uint32_t device_row = catalog::kNoDevice;
  bool is_refused = false;
  std::erase_if(series, [&](catalog::SeriesRow row) {
    const std::uint32_t next = catalog_.device_row_of(row);
    if (next == device_row && next != catalog::kNoDevice) return is_refused;
    if (!catalog_.read_names(row, namespace_name, device, sensor)) return true;
    device_row = next;
    const Status checked = devices_->check_purpose(namespace_name, device, read_for);
    is_refused = !checked.ok();
    if (is_refused && count++ == 0) refused = checked;
    return is_refused;
  });
  if (withheld != nullptr) *withheld = count;
  return count > 0 && series.empty() && selection.names_devices() ? refused : ok();
}

Result<QueryService::Found> QueryService::select_filtered(auth::Operation operation,
                                                          const auth::Principal& principal,
                                                          const std::string& namespace_name,
                                                          const wire::Selection& selection,
                                                          const catalog::DeviceFilter& filter,
                                                          const catalog::DevicePage& page) const {
  std::vector<wire::LeftSelector> left;
  EC_ASSIGN_OR_RETURN(const wire::Selection allowed,
                      auth::authorize(operation, principal, namespace_name, selection, left));
  Found found;
  for (const wire::LeftSelector& each : left)
    found.left_out.push_back(left_out_of(namespace_name, each));
  if (catalog_.is_damaged() && !allowed.is_exact()) found.left_out.push_back(lost_names());
  if (devices_ == nullptr) return found;
  catalog::DevicePage next = page;
  std::size_t count = 0;
  // Some may be left out, so that one page of names does not make one of devices.
  next.limit = std::min(page.limit, kNamesAtOnce);
  while (count < page.limit) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                        devices_->find(namespace_name, filter, next));
    for (const catalog::DeviceName& name : names) {
      if (count == page.limit) break;
      const wire::Selection of_device = allowed.within(name.device);
      if (of_device.selectors.empty()) continue;
      const std::size_t before = found.series.size();
      for (const catalog::SeriesRow row : catalog_.select_rows(name.namespace_name, of_device)) {
        if (may_reach(operation, principal, row)) found.series.push_back(row);
      }
      if (found.series.size() > before) ++count;
    }
    if (names.size() < next.limit) break;
    next.after = names.back();
  }
  return found;
}

Result<ReadingFilter> QueryService::filter(const auth::Principal& principal,
                                           const std::string& namespace_name,
                                           const wire::Selection& selection,
                                           std::string_view purpose, LeftOut* left_out) const {
  std::vector<wire::LeftSelector> left;
  EC_ASSIGN_OR_RETURN(wire::Selection allowed, auth::authorize(auth::Operation::Read, principal,
                                                               namespace_name, selection, left));
  EC_ASSIGN_OR_RETURN(std::string read_for, auth::purpose_of(principal, purpose));
  if (devices_ != nullptr && !namespace_name.empty() && allowed.names_devices()) {
    // Where one of them may be read, the others are passed over.
    Status refused;
    const bool is_any = std::any_of(
        allowed.selectors.begin(), allowed.selectors.end(), [&](const wire::Selector& each) {
          Status status =
              devices_->check_purpose(namespace_name, wire::unescape_name(each.device), read_for);
          if (refused.ok()) refused = status;
          return status.ok();
        });
    if (!is_any) return refused;
  }
  if (left_out != nullptr) {
    for (const wire::LeftSelector& each : left) left_out->add(left_out_of(namespace_name, each));
  }
  const auto is_asked = [this, allowed = std::move(allowed)](const wire::Reading& reading) {
    if (!allowed.matches(reading.device, reading.sensor)) return false;
    if (allowed.identity.empty()) return true;
    const auto entry = catalog_.find(reading.namespace_name, reading.device, reading.sensor);
    const auto identity =
        entry.ok() ? catalog::identity_of(*entry) : Result<wire::Identity>(entry.status());
    return identity.ok() && allowed.identity.hold_for(*identity);
  };
  return ReadingFilter([this, &principal, namespace_name, is_asked,
                        read_for = std::move(read_for)](const wire::Reading& reading) {
    const bool is_meant = namespace_name.empty() ? !reading.namespace_name.starts_with('_')
                                                 : reading.namespace_name == namespace_name;
    return is_meant && is_asked(reading) &&
           auth::allows(auth::Operation::Read, principal, reading.namespace_name, reading.device,
                        reading.sensor) &&
           (devices_ == nullptr ||
            devices_->check_purpose(reading.namespace_name, reading.device, read_for).ok());
  });
}

Result<QueryService::Found> QueryService::select_requested(
    const auth::Principal& principal, const wire::QueryRequest& request) const {
  const catalog::DeviceFilter filter{request.owner, request.of_purpose, request.of_objection,
                                     request.of_labels};
  const bool is_owned = !request.owner.empty();
  const auth::Operation operation =
      request.exports || is_owned ? auth::Operation::Export : auth::Operation::Read;
  if (filter.empty())
    return select(operation, principal, request.namespace_name, request.selection);
  if (is_owned) EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(Found found, select_filtered(operation, principal, request.namespace_name,
                                                   request.selection, filter));
  if (!found.series.empty()) return found;
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
  const wire::Selection all;
  EC_ASSIGN_OR_RETURN(Found found, select(auth::Operation::Read, principal, namespace_name, all,
                                          catalog::RowOrder::Any));
  EC_TRY(withhold(principal, purpose, all, found.series,
                  reach == nullptr ? nullptr : &reach->withheld));
  return std::move(found.series);
}

bool QueryService::may_reach(auth::Operation operation, const auth::Principal& principal,
                             catalog::SeriesRow row) const {
  const auto entry = catalog_.series_at(row);
  return entry.ok() &&
         auth::allows(operation, principal, entry->namespace_name, entry->device, entry->sensor);
}

Result<QueryService::Found> QueryService::select(auth::Operation operation,
                                                 const auth::Principal& principal,
                                                 const std::string& namespace_name,
                                                 const wire::Selection& selection,
                                                 catalog::RowOrder order) const {
  std::vector<wire::LeftSelector> left;
  EC_ASSIGN_OR_RETURN(wire::Selection allowed,
                      auth::authorize(operation, principal, namespace_name, selection, left));
  if (!namespace_name.empty() && !namespace_name.starts_with('_') &&
      !catalog_.has_namespace(namespace_name)) {
    return not_found("no namespace " + namespace_name);
  }
  const auto rows_of = [&] {
    Rows rows = catalog_.select_rows(namespace_name, allowed, order);
    if (principal.grant) {
      std::erase_if(rows,
                    [&](catalog::SeriesRow row) { return !may_reach(operation, principal, row); });
    }
    return rows;
  };
  Found found{rows_of(), {}};
  const bool has_exact = std::any_of(allowed.selectors.begin(), allowed.selectors.end(),
                                     [](const wire::Selector& each) { return each.is_exact(); });
  if (has_exact && (found.series.empty() || allowed.selectors.size() > 1)) {
    std::erase_if(allowed.selectors, [&](const wire::Selector& each) {
      Status status = check_exact(namespace_name, each);
      if (status.ok()) return false;
      left.push_back({each, std::move(status)});
      return true;
    });
    if (allowed.selectors.empty()) return left.front().why;
    found.series = rows_of();  // a first write may have come in between
  }
  if (!found.series.empty() && allowed.selectors.size() + left.size() > 1) {
    for (const wire::Selector& each : allowed.selectors) {
      if (each.is_exact()) continue;  // looked for above
      const Rows rows = catalog_.select_rows(namespace_name, each);
      const bool is_there = std::any_of(rows.begin(), rows.end(), [&](catalog::SeriesRow row) {
        return !principal.grant || may_reach(operation, principal, row);
      });
      if (!is_there)
        left.push_back({each, not_found("nothing matches " + each.device + "/" + each.sensor)});
    }
  }
  // A request that names one series gets it whole or hears that there is none.
  if (catalog_.is_damaged() && !allowed.is_exact()) found.left_out.push_back(lost_names());
  for (const wire::LeftSelector& each : left)
    found.left_out.push_back(left_out_of(namespace_name, each));
  return found;
}

// NotFound, in words about what is missing, where one series is named and not there.
Status QueryService::check_exact(const std::string& namespace_name,
                                 const wire::Selector& selector) const {
  if (!selector.is_exact()) return ok();
  const std::string device = wire::unescape_name(selector.device);
  const std::string sensor = wire::unescape_name(selector.sensor);
  if (!namespace_name.empty()) return catalog_.find(namespace_name, device, sensor).status();
  if (!catalog_.select_rows(namespace_name, selector).empty()) return ok();
  return not_found("no series " + device + "/" + sensor + " in any namespace");
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query(const auth::Principal& principal,
                                                           const wire::QueryRequest& request,
                                                           Reach* reach) {
  EC_ASSIGN_OR_RETURN(Found found, find_readable(principal, request, reach));
  return run(request, std::move(found), nullptr, reach);
}

Result<QueryService::Found> QueryService::find_readable(const auth::Principal& principal,
                                                        const wire::QueryRequest& request,
                                                        Reach* reach) const {
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(Found found, select_requested(principal, request));
  if (request.owner.empty()) {
    EC_TRY(withhold(principal, request.purpose, request.selection, found.series,
                    reach == nullptr ? nullptr : &reach->withheld));
  }
  add_to(reach, found.series);
  return found;
}

Result<std::unique_ptr<ReadingCursor>> QueryService::query_at(
    const auth::Principal& principal, const wire::QueryRequest& request,
    std::shared_ptr<const Snapshot> moment, Reach* reach) {
  EC_TRY(auth::authorize_administration(principal));
  EC_TRY(check_request(request));
  EC_ASSIGN_OR_RETURN(Found found, select(auth::Operation::Export, principal,
                                          request.namespace_name, request.selection));
  add_to(reach, found.series);
  return run(request, std::move(found), std::move(moment), reach);
}

Result<std::unique_ptr<ReadingCursor>> QueryService::run(const wire::QueryRequest& request,
                                                         Found found,
                                                         std::shared_ptr<const Snapshot> moment,
                                                         Reach* reach, std::uint64_t large_bytes) {
  const bool from_the_beginning = request.from_ns == kFirstTime;
  ReadOptions options;
  options.snapshot = std::move(moment);
  options.patience = patience_of(reach);
  options.direction = request.descending ? Direction::Reverse : Direction::Forward;
  // Runs through everything would push out of the cache what others need.
  options.fill_cache = !from_the_beginning || request.limit.has_value();
  options.large_value_bytes = large_bytes;
  const bool is_aggregate = request.every_ns > 0 || request.aggregate.has_value();
  const wire::Aggregate aggregate = request.aggregate.value_or(wire::Aggregate::Mean);
  options.summaries = is_aggregate && Aggregator(aggregate, request.descending).takes_summaries();
  const TimeRange range{request.from_ns, request.to_ns};
  if (request.tiers && marks_ != nullptr) {
    return std::unique_ptr<ReadingCursor>(
        new TieredCursor(engine_, catalog_, *marks_, std::move(found.series), range, options,
                         request.limit.value_or(kNoLimit), std::move(found.left_out)));
  }
  options.passes_drive_away = is_aggregate && request.lacks_to_ns.has_value();
  TierReading tiers;
  if (marks_ != nullptr && marks_->latest_ns() > request.from_ns) {
    const auto of_windows = is_aggregate ? std::optional(aggregate) : std::nullopt;
    tiers = query::read_tiers(engine_, *marks_, request.from_ns, request.every_ns, of_windows);
    for (const catalog::SeriesRow row : found.series) {
      const auto entry = catalog_.series_at(row);
      if (reach != nullptr && entry.ok())
        note_tiers(engine_, *marks_, entry->id, range, request.every_ns, of_windows, reach->tiers);
    }
  }
  SeriesScan scan(engine_, catalog_, std::move(found.series), range, options, std::move(tiers));
  scan.leave_out(std::move(found.left_out));
  const std::uint64_t limit = request.limit.value_or(kNoLimit);
  if (!is_aggregate) {
    return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), limit, kNoLimit));
  }
  WindowOptions window;
  window.aggregate = aggregate;
  window.every_ns = request.every_ns;
  if (!from_the_beginning) window.from_ns = request.from_ns;
  window.descending = request.descending;
  if (request.every_ns > 0) window.windows_max = limits().windows;
  window.lacks_to_ns = request.lacks_to_ns;
  if (request.lacks_to_ns && request.to_ns && *request.to_ns > kFirstTime)
    window.lacks_to_ns = *request.to_ns - 1;
  return std::unique_ptr<ReadingCursor>(new WindowCursor(std::move(scan), window, limit));
}

Result<std::unique_ptr<ReadingCursor>> QueryService::last(const auth::Principal& principal,
                                                          const std::string& namespace_name,
                                                          const wire::Selection& selection,
                                                          std::string_view purpose, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Found found,
                      select(auth::Operation::Read, principal, namespace_name, selection));
  EC_TRY(withhold(principal, purpose, selection, found.series,
                  reach == nullptr ? nullptr : &reach->withheld));
  add_to(reach, found.series);
  ReadOptions options;
  options.direction = Direction::Reverse;
  options.patience = patience_of(reach);
  options.large_value_bytes = kLargeTextBytes;
  SeriesScan scan(engine_, catalog_, std::move(found.series), {kFirstTime, std::nullopt}, options);
  scan.leave_out(std::move(found.left_out));
  return std::unique_ptr<ReadingCursor>(new StoredCursor(std::move(scan), kNoLimit, 1));
}

Result<SeriesListing> QueryService::list_series(const auth::Principal& principal,
                                                const std::string& namespace_name,
                                                const wire::Selection& selection,
                                                auth::Operation operation,
                                                std::optional<std::string> purpose, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Found found, select(operation, principal, namespace_name, selection));
  if (purpose) {
    EC_TRY(withhold(principal, *purpose, selection, found.series,
                    reach == nullptr ? nullptr : &reach->withheld));
  }
  add_to(reach, found.series);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(found.series), nullptr,
                        patience_of(reach));
  listing.leave_out(std::move(found.left_out));
  return listing;
}

Result<SeriesListing> QueryService::list_series_of(std::string_view owner) {
  EC_ASSIGN_OR_RETURN(Found found, select_filtered(auth::Operation::Export, kItself, "", {},
                                                   catalog::owned_by(owner)));
  return SeriesListing(engine_, catalog_, summaries_, std::move(found.series), nullptr, nullptr);
}

Result<SeriesListing> QueryService::list_series_at(const auth::Principal& principal,
                                                   const std::string& namespace_name,
                                                   const wire::Selection& selection,
                                                   std::shared_ptr<const Snapshot> moment,
                                                   Reach* reach) {
  EC_TRY(auth::authorize_administration(principal));
  EC_ASSIGN_OR_RETURN(Found found,
                      select(auth::Operation::Export, principal, namespace_name, selection));
  add_to(reach, found.series);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(found.series), std::move(moment),
                        patience_of(reach));
  listing.leave_out(std::move(found.left_out));
  return listing;
}

Result<DeviceListing> QueryService::list_devices(const auth::Principal& principal,
                                                 const std::string& namespace_name,
                                                 const wire::Selection& selection,
                                                 const catalog::DeviceFilter& filter,
                                                 const catalog::DevicePage& page, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Found found,
                      filter.empty()
                          ? select(auth::Operation::Read, principal, namespace_name, selection)
                          : select_filtered(auth::Operation::Read, principal, namespace_name,
                                            selection, filter, page));
  Rows rows = page_of(std::move(found.series), page);
  add_to(reach, rows);
  SeriesListing listing(engine_, catalog_, summaries_, std::move(rows), nullptr,
                        patience_of(reach));
  listing.leave_out(std::move(found.left_out));
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

SideThread::~SideThread() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    called_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool SideThread::try_start(std::function<void()> job) {
  const MutexLock lock(mutex_);
  if (is_busy_ || is_ending_) return false;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
      pthread_setname_np(thread_.native_handle(), "query-side");
    } catch (const std::exception&) {
      return false;  // no memory, or no thread to be had
    }
  }
  is_busy_ = true;
  job_ = std::move(job);
  called_.notify_all();
  return true;
}

void SideThread::work() {
  // As threads that read have it: whoever stores, or asks for health, goes first.
  constexpr int kNice = 5;
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread
  MutexLock lock(mutex_);
  for (;;) {
    while (!job_ && !is_ending_) called_.wait(mutex_);
    if (!job_) return;
    std::function<void()> job = std::exchange(job_, nullptr);
    lock.unlock();
    job();
    job = nullptr;
    wipe_stack();
    lock.lock();
    is_busy_ = false;
  }
}

}  // namespace edgecase::query
