#include "query/listings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "query/cursors.h"
#include "query/query_service.h"
#include "query/series_scan.h"
#include "wire/reading.h"

namespace edgecase::query {
namespace {

double rate_of(std::uint64_t steps, std::int64_t first_ns, std::int64_t last_ns) {
  // As doubles: the distance may be more than an int64 holds.
  const double seconds = (static_cast<double>(last_ns) - static_cast<double>(first_ns)) / 1e9;
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

// From so many series on one pass over all of a namespace costs less than one look at each.
constexpr std::size_t kSummaryMin = 256;

SeriesInfo named(catalog::SeriesEntry entry) {
  SeriesInfo info;
  info.namespace_name = std::move(entry.namespace_name);
  info.device = std::move(entry.device);
  info.sensor = std::move(entry.sensor);
  return info;
}

SeriesInfo describe(const SeriesSummary& summary, catalog::SeriesEntry entry) {
  const SeriesSummary::Row* const row = summary.find(entry.id);
  SeriesInfo info = named(std::move(entry));
  if (row == nullptr) return info;
  info.count = row->count;
  info.stored_bytes = row->stored_bytes;
  info.first_ns = row->first_ns;
  info.last_ns = row->last_ns;
  info.readings_per_second = rate_of(info.count - 1, row->first_ns, row->last_ns);
  return info;
}

Status describe(Engine& engine, const catalog::SeriesEntry& entry, const ReadOptions& options,
                SeriesInfo& info) {
  const KeyRange keys = key_range(entry.id, {kFirstTime, std::nullopt});
  EC_ASSIGN_OR_RETURN(const RangeStats stats,
                      engine.range_stats(entry.id.namespace_id, keys, options));
  info.count = stats.entries;
  info.stored_bytes = stats.stored_bytes;
  if (info.count == 0) return ok();
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    ReadOptions one_way = options;
    one_way.direction = direction;
    one_way.large_value_bytes = kLargeTextBytes;
    EC_ASSIGN_OR_RETURN(const auto iterator, engine.scan(entry.id.namespace_id, keys, one_way));
    EC_TRY(iterator->status());
    if (!iterator->valid()) continue;
    const std::int64_t time_ns = wire::time_of_reading_key(iterator->key().data());
    (direction == Direction::Forward ? info.first_ns : info.last_ns) = time_ns;
  }
  if (info.count > 0 && info.first_ns.has_value() && info.last_ns.has_value()) {
    info.readings_per_second = rate_of(info.count - 1, *info.first_ns, *info.last_ns);
  }
  return ok();
}

// Describes a series of which something is damaged: what can be read of it, one by one.
Status describe_rest(Engine& engine, const catalog::Catalog& catalog, catalog::SeriesRow row,
                     const ReadOptions& options, SeriesInfo& info, LeftOut& left_out) {
  ReadOptions all = options;
  all.fill_cache = false;
  all.large_value_bytes = kLargeTextBytes;
  SeriesScan scan(engine, catalog, {row}, {kFirstTime, std::nullopt}, all);
  EC_ASSIGN_OR_RETURN(const bool is_there, scan.next_series());
  if (!is_there) return ok();
  for (; scan.valid(); scan.next()) {
    wire::Value value;
    static_cast<void>(scan.value(value).ok());
    ++info.count;
    info.stored_bytes += wire::kReadingKeyBytes + value.text.size();
    if (!info.first_ns) info.first_ns = scan.time_ns();
    info.last_ns = scan.time_ns();
  }
  EC_TRY(scan.status());
  info.damaged = true;
  for (const LeftOutReadings& each : scan.damaged().left_out.named()) left_out.add(each);
  return ok();
}

void include(const SeriesInfo& series, DeviceInfo& device) {
  ++device.series;
  device.count += series.count;
  device.stored_bytes += series.stored_bytes;
  device.damaged = device.damaged || series.damaged;
  device.readings_per_second += series.readings_per_second;
  if (series.first_ns)
    device.first_ns = std::min(device.first_ns.value_or(*series.first_ns), *series.first_ns);
  if (series.last_ns)
    device.last_ns = std::max(device.last_ns.value_or(*series.last_ns), *series.last_ns);
}

}  // namespace

SeriesListing::SeriesListing(Engine& engine, const catalog::Catalog& catalog,
                             SeriesSummaries& summaries, std::vector<catalog::SeriesRow> rows,
                             std::shared_ptr<const Snapshot> moment, Patience* patience)
    : engine_(engine),
      catalog_(catalog),
      summaries_(summaries),
      rows_(std::move(rows)),
      is_of_moment_(moment != nullptr),
      is_summarized_(rows_.size() >= kSummaryMin),
      given_(engine) {
  options_.patience = patience;
  options_.snapshot = is_of_moment_ ? std::move(moment) : engine.snapshot();
}

// Summarizes the namespace that comes next. One series that cannot be read makes the pass fail as a
// whole; then each is asked for by itself.
Status SeriesListing::summarize(NamespaceId id) {
  if (!is_summarized_ || (summary_ != nullptr && summary_of_ == id)) return ok();
  summary_.reset();
  summary_of_ = id;
  auto made = is_of_moment_ ? SeriesSummary::make(engine_, id, options_)
                            : summaries_.now(id, options_.patience);
  if (made.ok()) {
    summary_ = std::move(made).value();
    return ok();
  }
  is_summarized_ = false;
  return made.status().code() == StatusCode::Cancelled ? made.status() : ok();
}

Result<bool> SeriesListing::next(SeriesInfo& info) {
  if (options_.snapshot == nullptr) options_.snapshot = engine_.snapshot();
  while (next_ < rows_.size()) {
    auto entry = catalog_.series_at(rows_[next_++]);
    if (!entry.ok()) continue;
    if (options_.snapshot->revocations() != engine_.revocations()) {
      options_.snapshot = engine_.snapshot();
      summary_.reset();
    }
    if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
    EC_TRY(summarize(entry->id.namespace_id));
    last_ = entry->id;
    give();
    if (summary_ != nullptr) {
      info = describe(*summary_, *std::move(entry));
      EC_ASSIGN_OR_RETURN(const bool is_listed, this->is_listed(info));
      if (is_listed) return true;
      continue;
    }
    info = named(*entry);
    const Status described = describe(engine_, *entry, options_, info);
    if (described.code() == StatusCode::Corruption) {
      info.count = info.stored_bytes = 0;
      info.first_ns = info.last_ns = std::nullopt;
      LeftOut of_series;
      EC_TRY(describe_rest(engine_, catalog_, rows_[next_ - 1], options_, info, of_series));
      if (of_series.empty())
        of_series.add({info.namespace_name, info.device, info.sensor, {}, {}, described});
      left_out_.add(of_series);
    } else {
      EC_TRY(described);
    }
    if (info.damaged) return true;
    EC_ASSIGN_OR_RETURN(const bool is_listed, this->is_listed(info));
    if (is_listed) return true;
  }
  options_.snapshot.reset();
  summary_.reset();
  return false;
}

Result<bool> SeriesListing::is_listed(const SeriesInfo& info) {
  if (!is_of_moment_ || info.count > 0) return true;
  if (last_.sensor > catalog::kTierSensorMax) return false;
  for (const catalog::TierSpace& tier : catalog::tier_spaces_of(engine_, last_.namespace_id)) {
    const catalog::KeySpan windows = catalog::windows_span(tier, last_);
    EC_ASSIGN_OR_RETURN(const RangeStats stored,
                        engine_.range_stats(tier.id, {windows.lower, windows.upper}, options_));
    if (stored.entries > 0) return true;
  }
  return false;
}

bool SeriesListing::is_overtaken() const {
  return options_.snapshot == nullptr || options_.snapshot->revocations() != engine_.revocations();
}

void SeriesListing::let_go() {
  if (options_.snapshot == nullptr) return;
  const bool is_overtaken = options_.snapshot->revocations() != engine_.revocations();
  const bool is_short = !is_of_moment_ && options_.snapshot->keeps_memory();
  if (is_overtaken) summary_.reset();
  if (is_overtaken || (is_short && engine_.is_short_of_memory())) options_.snapshot.reset();
}

Result<bool> DeviceListing::next(DeviceInfo& info) {
  SeriesInfo series;
  if (following_ && series_.is_overtaken()) {
    following_.reset();
    series_.again();
  }
  if (following_) {
    series = *std::exchange(following_, std::nullopt);
    series_.give();
  } else {
    EC_ASSIGN_OR_RETURN(const bool more, series_.next(series));
    if (!more) return false;
  }
  info = {};
  info.namespace_name = series.namespace_name;
  info.device = series.device;
  include(series, info);
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, series_.next(series));
    if (!more) return true;
    if (series.namespace_name != info.namespace_name || series.device != info.device) {
      following_ = std::move(series);
      return true;
    }
    include(series, info);
  }
}

namespace {

// How often a request that waits for another one's pass looks whether its client is still there.
constexpr std::int64_t kLookAgainNs = 20'000'000;

std::pair<std::uint32_t, std::uint32_t> ids_of(ByteView key) {
  std::uint32_t ids[2] = {};
  for (std::size_t i = 0; i < wire::kSeriesPrefixBytes; ++i)
    ids[i / 4] = ids[i / 4] << 8 | static_cast<unsigned char>(key[i]);
  return {ids[0], ids[1]};
}

}  // namespace

Result<std::shared_ptr<const SeriesSummary>> SeriesSummary::make(Engine& engine, NamespaceId id,
                                                                 const ReadOptions& options) {
  auto summary = std::make_shared<SeriesSummary>();
  EC_TRY(engine.summarize(id, {}, wire::kSeriesPrefixBytes, options, [&](const PrefixStats& stats) {
    if (stats.first.size() != wire::kReadingKeyBytes) return ok();
    const auto [device, sensor] = ids_of(stats.first);
    summary->rows_.push_back({device, sensor, stats.entries, stats.stored_bytes,
                              wire::time_of_reading_key(stats.first.data()),
                              wire::time_of_reading_key(stats.last.data())});
    return ok();
  }));
  return std::shared_ptr<const SeriesSummary>(std::move(summary));
}

const SeriesSummary::Row* SeriesSummary::find(const catalog::SeriesId& id) const {
  const auto found = std::lower_bound(
      rows_.begin(), rows_.end(), id, [](const Row& row, const catalog::SeriesId& wanted) {
        return std::tie(row.device, row.sensor) < std::tie(wanted.device, wanted.sensor);
      });
  const bool is_there =
      found != rows_.end() && found->device == id.device && found->sensor == id.sensor;
  return is_there ? &*found : nullptr;
}

Result<std::shared_ptr<const SeriesSummary>> SeriesSummaries::now(NamespaceId id,
                                                                  Patience* patience) {
  MutexLock lock(mutex_);
  Passes& passes = passes_[id];
  // One that runs may have begun before the call.
  const std::uint64_t wanted = passes.begun + 1;
  ++passes.askers;
  Result<std::shared_ptr<const SeriesSummary>> answer = std::shared_ptr<const SeriesSummary>();
  while (answer.ok() && *answer == nullptr) {
    if (passes.made != nullptr && passes.made_by >= wanted) {
      answer = passes.made;
    } else if (!passes.is_running) {
      passes.is_running = true;
      const std::uint64_t own = ++passes.begun;
      lock.unlock();
      ReadOptions options;
      options.fill_cache = false;
      options.patience = patience;
      answer = SeriesSummary::make(engine_, id, options);
      lock.lock();
      passes.is_running = false;
      if (answer.ok()) std::tie(passes.made, passes.made_by) = std::pair(*answer, own);
      ended_.notify_all();  // where it failed, another one tries
    } else {
      // The pass's maker may need the turn.
      if (patience != nullptr) {
        lock.unlock();
        patience->rest();
        lock.lock();
      }
      if (passes.is_running) ended_.wait_for(mutex_, kLookAgainNs);
      if (patience != nullptr) {
        lock.unlock();
        patience->resume();
        const Status status = patience->go_on();
        if (!status.ok()) answer = status;
        lock.lock();
      }
    }
  }
  if (--passes.askers == 0 && !passes.is_running) passes_.erase(id);
  return answer;
}

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
