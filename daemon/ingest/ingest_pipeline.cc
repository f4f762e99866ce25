#include "ingest/ingest_pipeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "wire/reading_key.h"
#include "wire/undated_time.h"

namespace edgecase::ingest {
namespace {

// What an entry of a batch takes besides its value: kind, three varints, the key.
constexpr std::size_t kEntryOverheadBytes = 1 + 3 * 5 + wire::kReadingKeyBytes;

// When the clock was set back by more than this, arrival times follow it; a smaller step back, or a
// clock too coarse to tell two batches apart, must not give one time twice.
constexpr std::int64_t kArrivalHoldNs = 1'000'000'000;

// Of slices that wait for others (WriteBatch::size_bytes()): less than any memtable, and little
// enough that others need not wait long for their turn.
constexpr std::size_t kGatheredBytes = 7u << 18;

// Of new series among them: each is looked up until its series is durable, and these take memory.
constexpr std::size_t kNewReadingsWaitMax = 1'024;

Status check_values(const std::vector<wire::Reading>& readings) {
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const wire::Reading& reading = readings[i];
    if (wire::is_good_number(reading.value)) continue;
    const Status status = wire::check_value(reading.value);
    if (status.ok()) continue;
    return status.with_context("reading " + std::to_string(i + 1) + ", " +
                               std::string(reading.device) + "/" + std::string(reading.sensor) +
                               ": ");
  }
  return ok();
}

}  // namespace

IngestPipeline::IngestPipeline(Engine& engine, catalog::Catalog& catalog, Clock& clock,
                               retention::RetentionService* retention,
                               catalog::DeviceIndex* devices, audit::AuditLog* audit,
                               erase::Fences* fences, DeviceRateLimits rates)
    : engine_(engine),
      catalog_(catalog),
      clock_(clock),
      retention_(retention),
      devices_(devices),
      audit_(audit != nullptr && audit->is_on() ? audit : nullptr),
      fences_(fences),
      rates_(rates),
      device_times_(engine, catalog),
      feed_(clock) {}

Status IngestPipeline::ingest(const auth::AuthorizedBatch& batch, Outcome* outcome,
                              std::span<const Author> authors,
                              std::span<const RecordChange> records, Pacing* pacing) {
  const std::vector<wire::Reading>& readings = batch.batch().readings;
  if (readings.empty()) return records.empty() ? ok() : write_records(records);
  Outcome own;
  Outcome& all = outcome == nullptr ? own : *outcome;
  const std::uint64_t not_stored_before = all.not_stored();
  Status status = store_allowed({batch.principal(), readings, authors, records, pacing}, all);
  if (status.ok()) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    readings_.fetch_add(readings.size() - (all.not_stored() - not_stored_before),
                        std::memory_order_relaxed);
  } else {
    failed_batches_.fetch_add(1, std::memory_order_relaxed);
  }
  return status;
}

std::vector<catalog::Refusal> IngestPipeline::unfit(std::span<const wire::Reading> readings) const {
  std::vector<catalog::Refusal> refused;
  std::vector<wire::Reading> good;
  std::vector<std::size_t> places;  // of the good ones
  for (std::size_t i = 0; i < readings.size(); ++i) {
    Status status =
        wire::is_good_number(readings[i].value) ? ok() : wire::check_value(readings[i].value);
    if (!status.ok()) {
      refused.push_back({i, std::move(status)});
      continue;
    }
    good.push_back(readings[i]);
    places.push_back(i);
  }
  for (catalog::Refusal& each : catalog_.unfit(good)) {
    each.reading = places[each.reading];
    refused.push_back(std::move(each));
  }
  std::sort(refused.begin(), refused.end(),
            [](const auto& a, const auto& b) { return a.reading < b.reading; });
  return refused;
}

Status IngestPipeline::forget(const catalog::SeriesId& series,
                              std::span<const std::int64_t> times_ns) {
  // What is being moved would come back under its new time.
  std::unique_lock<std::mutex> no_moves;
  if (undated_ != nullptr && std::any_of(times_ns.begin(), times_ns.end(), wire::is_undated_time)) {
    no_moves = undated_->hold_moves();
  }
  WriteBatch batch;
  char key[wire::kReadingKeyBytes];
  for (const std::int64_t time_ns : times_ns) {
    wire::encode_reading_key({series.device, series.sensor, time_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
    const std::int64_t moved_ns = dated_ns(time_ns);
    if (moved_ns == time_ns) continue;
    wire::encode_reading_key({series.device, series.sensor, moved_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
  }
  return engine_.write(batch, Durability::Async);
}

bool IngestPipeline::is_believable(std::int64_t time_ns) const {
  std::optional<std::int64_t> trusted_now_ns;
  if (clock_.trust() == ClockTrust::Trusted) trusted_now_ns = clock_.wall_ns();
  return is_believable_time(time_ns, trusted_now_ns, time_ahead_ns_);
}

// What was erased, and what was dated, is no longer what was remembered of it.
DeviceTimes::Replaced IngestPipeline::settle_times(std::span<const DeviceTimes::Asked> asked) {
  if (asked.empty()) return {};
  std::uint64_t epoch = catalog_.generation();
  if (fences_ != nullptr) epoch += fences_->changes();
  if (undated_ != nullptr) epoch += undated_->changes();
  return device_times_.settle(asked, epoch);
}

IngestPipeline::Counters IngestPipeline::counters() const {
  return {batches_.load(std::memory_order_relaxed), readings_.load(std::memory_order_relaxed),
          failed_batches_.load(std::memory_order_relaxed)};
}

// No erasure begins or ends meanwhile.
Status IngestPipeline::store_allowed(const Incoming& incoming, Outcome& outcome) {
  if (fences_ == nullptr) return store_inside(incoming, outcome);
  if (undated_ != nullptr) EC_TRY(undated_->date_this_boot(*fences_));
  const erase::Fences::Pass pass = fences_->enter();
  return store_inside(incoming, outcome);
}

Status IngestPipeline::store_inside(const Incoming& incoming, Outcome& outcome) {
  if (fences_ == nullptr) return store_others(incoming, {}, outcome);
  if (undated_ != nullptr) return store_dated(incoming, outcome);
  return store_others(incoming, fences_->refused(incoming.readings), outcome);
}

// Times that were handed out while the clock was not trusted, and are known by now, are these.
Status IngestPipeline::store_dated(const Incoming& incoming, Outcome& outcome) {
  const auto is_dated = [this](const wire::Reading& each) { return undated_->is_dated(each); };
  const std::vector<wire::Reading>& readings = incoming.readings;
  if (std::none_of(readings.begin(), readings.end(), is_dated))
    return store_others(incoming, fences_->refused(readings), outcome);
  std::vector<wire::Reading> dated = readings;
  for (wire::Reading& each : dated) {
    if (each.time_ns) each.time_ns = undated_->dated_ns(*each.time_ns);
  }
  return store_others({incoming.principal, dated, incoming.authors, incoming.records,
                       incoming.pacing, incoming.slices},
                      fences_->refused(dated), outcome);
}

// All but those that were erased, and those that were evicted.
Status IngestPipeline::store_others(const Incoming& incoming, std::vector<bool> is_refused,
                                    Outcome& outcome) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  const std::vector<bool> evicted =
      eviction_ == nullptr ? std::vector<bool>() : eviction_->refused(readings);
  if (is_refused.empty() && evicted.empty()) return store_fitting(incoming, outcome);
  std::vector<bool> erased = std::exchange(is_refused, evicted);
  erased.resize(readings.size());
  is_refused.resize(readings.size());
  std::transform(erased.begin(), erased.end(), is_refused.begin(), is_refused.begin(),
                 std::logical_or<>());
  if (!outcome.takes_parts) EC_TRY(check_values(readings));
  EC_TRY(store_rest(incoming, is_refused, outcome, 0));
  const auto erasures = static_cast<std::uint64_t>(std::count(erased.begin(), erased.end(), true));
  const auto all =
      static_cast<std::uint64_t>(std::count(is_refused.begin(), is_refused.end(), true));
  std::vector<LostReading> lost;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (is_refused[i]) lost.push_back({i, erased[i] ? Loss::Erased : Loss::Evicted});
  }
  account(incoming.principal, readings, lost, outcome);
  if (erasures > 0) fences_->count_refused(erasures);
  if (all > erasures) eviction_->count_refused(all - erasures);
  return ok();
}

Status IngestPipeline::store(const Incoming& incoming, Outcome& outcome) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  EC_TRY(check_values(readings));
  Slices* const slices = incoming.slices;
  std::vector<catalog::SeriesId> own_ids;
  std::vector<std::int64_t> own_times;
  std::vector<catalog::SeriesId>& ids = slices == nullptr ? own_ids : slices->ids;
  NewSeries own_fresh;
  NewSeries& fresh = slices == nullptr ? own_fresh : slices->fresh;
  const std::size_t known = fresh.additions.size();
  EC_TRY(catalog_.resolve(readings, ids, fresh.additions,
                          slices == nullptr ? nullptr : &slices->series));
  if (incoming.pacing != nullptr && !rates_.admit(ids, clock_.boot_ns(), *incoming.pacing)) {
    return busy("a device is over limits.device-rate = " +
                std::to_string(rates_.limits().per_second) + " readings a second, try again in " +
                std::to_string(whole_seconds(incoming.pacing->owed_ns)) + " s");
  }
  if (known == 0 && retention_ != nullptr) fresh.retention_generation = retention_->generation();
  std::vector<std::int64_t>& times = slices == nullptr ? own_times : slices->times;
  EC_TRY(store_taken(incoming, {ids, fresh, fresh.additions.size() > known}, times));
  ReplacedSearch own_search;
  ReplacedSearch& search = slices == nullptr ? own_search : slices->replaced;
  account(incoming.principal, readings, find_lost(readings, ids, times, search), outcome);
  // What is not stored is not counted, or a drive that refuses would use up every token.
  rates_.charge(ids, clock_.boot_ns());
  return ok();
}

Status IngestPipeline::store_taken(const Incoming& incoming, const Resolved& resolved,
                                   std::vector<std::int64_t>& times) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  const std::vector<catalog::SeriesId>& ids = resolved.ids;
  if (devices_ != nullptr && resolved.has_new) EC_TRY(introduce(incoming));
  if (retention_ != nullptr) EC_TRY(retention_->cover(readings, ids, resolved.has_new));
  take_times(readings, ids, times);
  EC_TRY(write(incoming, times, resolved));
  device_times_.note(ids, times, readings);
  // Of slices settle() sees to it.
  if (retention_ == nullptr || !resolved.has_new || incoming.slices != nullptr ||
      retention_->generation() == resolved.fresh.retention_generation)
    return ok();
  return retention_->cover(readings, ids, true);
}

// What is new is durable. Rules that were set since it was met know nothing of it.
Status IngestPipeline::settle(NewSeries& fresh) {
  if (fresh.additions.empty()) return ok();
  catalog_.confirm(fresh.additions);
  const std::vector<catalog::SeriesRow> rows = fresh.additions.series();
  fresh.additions.clear();
  if (retention_ == nullptr || retention_->generation() == fresh.retention_generation) return ok();
  std::vector<catalog::SeriesEntry> entries;
  for (const catalog::SeriesRow row : rows) {
    auto entry = catalog_.series_at(row);
    if (entry.ok()) entries.push_back(std::move(*entry));  // else it is gone again
  }
  std::vector<wire::Reading> readings;
  std::vector<catalog::SeriesId> ids;
  for (const catalog::SeriesEntry& entry : entries) {
    readings.push_back({entry.namespace_name, entry.device, entry.sensor, {}, {}});
    ids.push_back(entry.id);
  }
  return readings.empty() ? ok() : retention_->cover(readings, ids, true);
}

std::int64_t IngestPipeline::owed_ns(const wire::Reading& reading) {
  if (!rates_.is_on()) return 0;
  const auto entry = catalog_.find(reading.namespace_name, reading.device, reading.sensor);
  return entry.ok() ? rates_.owed_ns({&entry->id, 1}, clock_.boot_ns()) : 0;
}

// What topics say of devices that have no durable series yet is there before their first reading.
Status IngestPipeline::introduce(const Incoming& incoming) {
  const wire::Reading* last = nullptr;
  for (const wire::Reading& reading : incoming.readings) {
    if (reading.metadata == nullptr) continue;
    if (last != nullptr && last->device == reading.device &&
        last->namespace_name == reading.namespace_name) {
      continue;
    }
    last = &reading;
    const wire::Selector all_of_it{wire::escape_name(reading.device), "*"};
    if (!catalog_.select(reading.namespace_name, all_of_it).empty()) continue;
    catalog::DeviceMetadata metadata;
    metadata.owner = reading.metadata->owner;
    metadata.purposes = reading.metadata->purposes;
    EC_TRY(devices_->introduce({std::string(reading.namespace_name), std::string(reading.device)},
                               metadata,
                               {clock_.wall_ns(), "topic, from " + incoming.principal.name}));
  }
  return ok();
}

Status IngestPipeline::write(const Incoming& incoming, const std::vector<std::int64_t>& times,
                             const Resolved& resolved) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  Gathered own;
  Gathered& gathered = incoming.slices == nullptr ? own : incoming.slices->gathered;
  // This slice follows, and with it, or after it, a commit that is synced.
  if (gathered.batch.size_bytes() >= kGatheredBytes)
    EC_TRY(commit(incoming.principal, gathered, Durability::Async));
  resolved.fresh.additions.append_to(gathered.batch);
  std::vector<std::uint32_t> periods;
  if (undated_ != nullptr) periods = undated_->append_records(times, gathered.batch);
  EC_TRY(append_readings(incoming, times, resolved.ids, gathered.batch));
  EC_TRY(append_records(incoming.records, gathered.batch));
  if (audit_ != nullptr) gathered.devices.add(*audit_, readings, resolved.ids, incoming.authors);
  gathered.readings += readings.size();
  if (periods.empty() && may_wait(incoming, gathered.batch, resolved.fresh)) return ok();
  EC_TRY(commit(incoming.principal, gathered, Durability::Sync));
  if (incoming.slices == nullptr) {
    catalog_.confirm(resolved.fresh.additions);
  } else {
    EC_TRY(settle(resolved.fresh));
  }
  if (!periods.empty()) undated_->confirm(periods);
  feed_.publish(readings, times);
  return ok();
}

// For further slices: not where the next one would take the memory that it borrows, or where it is
// shown, or counted, only once it is durable.
bool IngestPipeline::may_wait(const Incoming& incoming, const WriteBatch& batch,
                              const NewSeries& fresh) const {
  return incoming.slices != nullptr && fresh.additions.readings() < kNewReadingsWaitMax &&
         batch.borrowed().empty() && !feed_.may_be_followed() && !rates_.is_on();
}

Status IngestPipeline::append_readings(const Incoming& incoming,
                                       std::span<const std::int64_t> times,
                                       std::span<const catalog::SeriesId> ids, WriteBatch& piece) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  if (incoming.slices == nullptr) {
    piece.reserve(readings.size(),
                  readings.size() * (wire::kReadingKeyBytes + wire::kNumberValueBytes));
  }
  Bytes value;
  char key[wire::kReadingKeyBytes], number[wire::kNumberValueBytes];
  for (std::size_t i = 0; i < readings.size(); ++i) {
    wire::encode_reading_key({ids[i].device, ids[i].sensor, times[i]}, key);
    if (wire::encode_number(readings[i].value, number) &&
        piece.size_bytes() + kEntryOverheadBytes + sizeof number <= kBatchSizeMaxBytes) {
      piece.put(ids[i].namespace_id, ByteView(key, sizeof key), ByteView(number, sizeof number));
      continue;
    }
    value.clear();
    const ByteView end = wire::append_value_begin(readings[i].value, value);
    const std::size_t bytes = value.size() + end.size() + kEntryOverheadBytes;
    if (piece.size_bytes() + bytes > kBatchSizeMaxBytes) {
      // The last piece's sync covers this one.
      EC_TRY(engine_.write(piece, Durability::Async));
      piece.clear();
    }
    piece.put(ids[i].namespace_id, ByteView(key, sizeof key), value, end);
  }
  return ok();
}

// Behind what `piece` holds.
Status IngestPipeline::append_records(std::span<const RecordChange> records, WriteBatch& piece) {
  for (const RecordChange& record : records) {
    const std::size_t bytes = record.key.size() + record.value.size() + kEntryOverheadBytes;
    if (piece.size_bytes() + bytes > kBatchSizeMaxBytes) {
      EC_TRY(engine_.write(piece, Durability::Async));
      piece.clear();
    }
    if (record.kind == RecordChange::Kind::Put) {
      piece.put(record.namespace_id, record.key, record.value);
    } else {
      piece.remove(record.namespace_id, record.key);
    }
  }
  return ok();
}

Status IngestPipeline::write_records(std::span<const RecordChange> records) {
  WriteBatch batch;
  EC_TRY(append_records(records, batch));
  return engine_.write(batch, Durability::Sync);
}

// The audit log's records wait when the commit begins, and are in its sync.
Status IngestPipeline::commit(const auth::Principal& principal, Gathered& gathered,
                              Durability durability) {
  if (audit_ == nullptr) {
    EC_TRY(engine_.write(gathered.batch, durability));
    gathered.clear();
    return ok();
  }
  EC_ASSIGN_OR_RETURN(const audit::Ticket ticket,
                      audit_->append(gathered.devices.drafts(principal)));
  const Status written = engine_.write(gathered.batch, durability);
  if (!written.ok()) {
    audit::Record failed = audit::record_of(StoredDevices::kOperation, principal);
    failed.count = gathered.readings;
    audit_->amend(ticket, std::move(failed), written);
    return written;
  }
  gathered.clear();
  return audit_->settle(ticket);
}

void IngestPipeline::take_times(const std::vector<wire::Reading>& readings,
                                const std::vector<catalog::SeriesId>& ids,
                                std::vector<std::int64_t>& times) {
  times.resize(readings.size());
  std::vector<std::size_t> untimed;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (readings[i].time_ns.has_value()) {
      times[i] = *readings[i].time_ns;
    } else {
      untimed.push_back(i);
    }
  }
  if (untimed.empty()) return;
  const std::int64_t arrival = take_arrival_times(static_cast<std::int64_t>(untimed.size()));
  if (untimed.size() == 1) {
    times[untimed.front()] = arrival;
    return;
  }
  // The second of one series gets the nanosecond after the first, and so on.
  std::map<std::tuple<NamespaceId, std::uint32_t, std::uint32_t>, std::int64_t> next;
  for (const std::size_t i : untimed) {
    const auto series = std::make_tuple(ids[i].namespace_id, ids[i].device, ids[i].sensor);
    times[i] = next.try_emplace(series, arrival).first->second++;
  }
}

std::int64_t IngestPipeline::arrival_clock_ns() {
  const bool is_trusted = clock_.trust() == ClockTrust::Trusted;
  if (!is_trusted && undated_ != nullptr) {
    if (const auto undated_ns = undated_->arrival_ns()) return *undated_ns;
  }
  // A clock that is behind must not date what arrives back to what was evicted, nor, while it is
  // known to be wrong, to what has expired: then the latest time that the store has known, and the
  // time since the machine was started, are nearer to the truth.
  std::int64_t now = clock_.wall_ns();
  if (!is_trusted) now = std::max(now, engine_.expiry_now_ns() + clock_.boot_ns());
  return eviction_ == nullptr ? now : std::max(now, eviction_->earliest_arrival_ns());
}

// Returns the first of `count` nanoseconds that no other batch gets.
std::int64_t IngestPipeline::take_arrival_times(std::int64_t count) {
  std::int64_t last = last_arrival_ns_.load(std::memory_order_relaxed);
  std::int64_t first = 0;
  do {
    const std::int64_t now = arrival_clock_ns();
    first = now > last || last - now > kArrivalHoldNs ? now : last + 1;
  } while (
      !last_arrival_ns_.compare_exchange_weak(last, first + count - 1, std::memory_order_relaxed));
  return first;
}

}  // namespace edgecase::ingest
