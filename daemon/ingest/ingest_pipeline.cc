#include "ingest/ingest_pipeline.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::ingest {
namespace {

// What an entry of a batch takes besides its value: kind, three varints, the key.
constexpr std::size_t kEntryOverheadBytes = 1 + 3 * 5 + wire::kReadingKeyBytes;
constexpr std::size_t kUsualEntryBytes = wire::kReadingKeyBytes + wire::kNumberValueBytes;

// How large slices that wait for others become (WriteBatch::size_bytes()): less than any memtable,
// and little enough that others need not wait long for their turn.
constexpr std::size_t kGatheredBytes = 7u << 18;

// How many readings of new series wait: each is looked up until durable, and takes memory.
constexpr std::size_t kNewReadingsWaitMax = 1'024;

constexpr std::size_t kReservedMaxBytes = 1u << 20;  // at first: most requests are small

// How often what can never be stored is left out of a slice: mostly once is enough.
constexpr int kSiftRoundsMax = 3;

Status check_values(std::span<const wire::Reading> readings) {
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
      times_(engine, catalog, clock, fences),
      feed_(clock),
      losses_(engine, clock, catalog, retention, audit_) {}

// What is looked at on its way through the steps. Borrows the batch.
struct IngestPipeline::Slice {
  std::span<const wire::Reading> readings;  // those that are still to be stored
  std::span<const Author> authors;
  std::vector<catalog::SeriesId>& ids;  // of each reading
  std::vector<std::int64_t>& times;     // the same
  bool has_new = false;                 // series that are new to the catalog

  // Where it is not the batch as it came: under names here, with other times, less what was left
  // out.
  catalog::Catalog::Placed placed = {};
  std::vector<wire::Reading> redated = {}, rest = {};
  std::vector<Author> rest_authors = {};
  std::vector<LostReading> lost = {};  // erased or evicted: in the batch, or in `redated`
  struct Refused {
    wire::Reading reading;
    Status why;
  };
  std::vector<Refused> refused = {};        // can never be stored
  std::vector<std::uint32_t> periods = {};  // whose records wait with the readings

  void leave_out(const std::vector<bool>& left_out);
};

void IngestPipeline::Slice::leave_out(const std::vector<bool>& left_out) {
  std::vector<wire::Reading> others;
  std::vector<Author> others_authors;
  std::size_t next_author = 0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    for (; next_author < authors.size() && authors[next_author].first_reading <= i; ++next_author) {
      others_authors.push_back(authors[next_author]);
      others_authors.back().first_reading = others.size();
    }
    if (!left_out[i]) others.push_back(readings[i]);
  }
  rest = std::move(others);
  rest_authors = std::move(others_authors);
  readings = rest;
  authors = rest_authors;
}

IngestRequest::IngestRequest(const auth::Principal& by, Pacing* paced_by, std::size_t bytes,
                             IngestBuffers& memory)
    : principal(by), pacing(paced_by), buffers(memory) {
  buffers.abandon();  // of a request that did not come to its end
  buffers.series.forget_places();
  buffers.gathered.batch.reserve(0, std::min(bytes, kReservedMaxBytes));
}

// --- a request ---

Status IngestPipeline::ingest(const auth::AuthorizedBatch& batch, Outcome* outcome,
                              std::span<const Author> authors,
                              std::span<const RecordChange> records, Pacing* pacing,
                              erase::Copied copied, catalog::Origins origins) {
  IngestBuffers buffers;
  IngestRequest request(batch.principal(), pacing, 0, buffers);
  request.comes_whole = true;
  request.authors = authors;
  request.records = records;
  request.copied = copied;
  request.origins = copied.is_copy ? catalog::Origins() : origins;
  Outcome own;
  EC_TRY(add(request, batch, outcome == nullptr ? own : *outcome));
  return finish(request);
}

Status IngestPipeline::add(IngestRequest& request, const auth::AuthorizedBatch& batch,
                           Outcome& outcome) {
  const std::vector<wire::Reading>& readings = batch.batch().readings;
  if (readings.empty() && request.records.empty()) return ok();
  IngestBuffers& buffers = request.buffers;
  buffers.series.begin(batch.batch().text_id(), batch.batch().numbering);
  Slice slice{
      .readings = readings, .authors = request.authors, .ids = buffers.ids, .times = buffers.times};
  const std::uint64_t not_stored_before = outcome.not_stored();
  Status status = take(request, slice, outcome);
  if (!status.ok()) {
    failed_batches_.fetch_add(1, std::memory_order_relaxed);
    buffers.abandon();
    request.inside.reset();
    return status;
  }
  request.brought += readings.size();
  request.stored += readings.size() - (outcome.not_stored() - not_stored_before);
  // Everything is in the engine.
  if (buffers.gathered.batch.count() == 0) request.inside.reset();
  return ok();
}

Status IngestPipeline::finish(IngestRequest& request) {
  const Status status = write(request, Durability::Sync);
  request.buffers.abandon();
  request.inside.reset();
  if (!status.ok()) {
    failed_batches_.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  if (std::exchange(request.brought, 0) > 0) batches_.fetch_add(1, std::memory_order_relaxed);
  readings_.fetch_add(std::exchange(request.stored, 0), std::memory_order_relaxed);
  return ok();
}

// --- the steps of a slice ---

Status IngestPipeline::take(IngestRequest& request, Slice& slice, Outcome& outcome) {
  EC_TRY(enter(request, slice));
  // Devices of others are others, also to those who look at names below.
  EC_ASSIGN_OR_RETURN(slice.readings,
                      catalog_.place(slice.readings, request.origins, slice.placed, owner_));
  redate(slice);
  EC_TRY(refuse(request, slice, outcome));
  EC_TRY(resolve(request, slice, outcome));
  EC_TRY(admit(request, slice));
  EC_TRY(introduce(request, slice));
  EC_TRY(cover(slice));
  stamp(slice);
  EC_TRY(append(request, slice));
  EC_TRY(commit(request, slice));
  account(request, slice, outcome);
  return ok();
}

// No erasure begins or ends from here to the commit.
Status IngestPipeline::enter(IngestRequest& request, const Slice& slice) {
  if (fences_ == nullptr || request.inside || slice.readings.empty()) return ok();
  if (undated_ != nullptr) EC_TRY(undated_->date_this_boot(*fences_));
  request.inside.emplace(*fences_);
  return ok();
}

// A time that was handed out while the clock was not trusted gives way to what it turned out to be.
void IngestPipeline::redate(Slice& slice) const {
  if (undated_ == nullptr) return;
  const auto is_dated = [this](const wire::Reading& each) {
    return each.time_ns && wire::is_undated_time(*each.time_ns) && undated_->is_dated(each);
  };
  if (std::none_of(slice.readings.begin(), slice.readings.end(), is_dated)) return;
  slice.redated.assign(slice.readings.begin(), slice.readings.end());
  for (wire::Reading& each : slice.redated) {
    if (each.time_ns) each.time_ns = undated_->dated_ns(*each.time_ns);
  }
  slice.readings = slice.redated;
}

// What was erased or evicted does not come back, and what has become a tier takes no more.
Status IngestPipeline::refuse(const IngestRequest& request, Slice& slice,
                              const Outcome& outcome) const {
  const auto readings = slice.readings;
  std::vector<bool> erased, evicted, late;
  if (fences_ != nullptr) erased = fences_->refused(readings, request.copied, &catalog_);
  if (eviction_ != nullptr) evicted = eviction_->refused(readings);
  if (retention_ != nullptr) late = retention_->marks().refused(readings, catalog_);
  if (erased.empty() && evicted.empty() && late.empty()) return ok();
  // Where nobody is told of parts, a bad value is an error whatever becomes of its reading.
  if (!outcome.takes_parts) EC_TRY(check_values(readings));
  erased.resize(readings.size());
  evicted.resize(readings.size());
  late.resize(readings.size());
  std::vector<bool> left_out(readings.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    left_out[i] = erased[i] || evicted[i] || late[i];
    if (!left_out[i]) continue;
    const Loss loss = erased[i] ? Loss::Erased : evicted[i] ? Loss::Evicted : Loss::Expired;
    slice.lost.push_back({&readings[i], loss});
  }
  slice.leave_out(left_out);
  return ok();
}

// Finds or makes the series of each reading. What can never be stored costs itself alone, where
// somebody is told of it.
Status IngestPipeline::resolve(IngestRequest& request, Slice& slice, Outcome& outcome) {
  NewSeries& fresh = request.buffers.fresh;
  const std::size_t known = fresh.additions.size();
  for (int round = 0;; ++round) {
    Status status = check_values(slice.readings);
    if (status.ok()) {
      status = catalog_.resolve(slice.readings, slice.ids, fresh.additions, &request.buffers.series,
                                request.origins);
    }
    if (status.ok()) break;
    const bool is_for_good =
        status.code() == StatusCode::LimitReached || status.code() == StatusCode::InvalidArgument;
    if (!is_for_good || !outcome.takes_parts || round == kSiftRoundsMax) return status;
    const std::vector<catalog::Refusal> unfit_ones = unfit(slice.readings);
    if (unfit_ones.empty()) return status;
    std::vector<bool> left_out(slice.readings.size());
    for (const catalog::Refusal& each : unfit_ones) {
      left_out[each.reading] = true;
      slice.refused.push_back({slice.readings[each.reading], each.why});
    }
    slice.leave_out(left_out);
  }
  slice.has_new = fresh.additions.size() > known;
  if (known == 0 && retention_ != nullptr) fresh.retention_generation = retention_->generation();
  return ok();
}

// A device that owes readings brings no more.
Status IngestPipeline::admit(const IngestRequest& request, const Slice& slice) {
  if (request.pacing == nullptr || rates_.admit(slice.ids, clock_.boot_ns(), *request.pacing))
    return ok();
  return busy("a device is over limits.device-rate = " +
              std::to_string(rates_.limits().per_second) + " readings a second, try again in " +
              std::to_string(whole_seconds(request.pacing->owed_ns)) + " s");
}

// What topics say of devices that have no durable series yet is there before their first reading.
Status IngestPipeline::introduce(const IngestRequest& request, const Slice& slice) {
  if (devices_ == nullptr || !slice.has_new) return ok();
  const wire::Reading* last = nullptr;
  for (const wire::Reading& reading : slice.readings) {
    if (reading.metadata == nullptr || !reading.metadata->is_of_device()) continue;
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
                               {clock_.wall_ns(), "topic, from " + request.principal.name}));
  }
  return ok();
}

// A series has its rule of retention before its first reading.
Status IngestPipeline::cover(const Slice& slice) {
  return retention_ == nullptr ? ok() : retention_->cover(slice.readings, slice.ids, slice.has_new);
}

// A reading without a time gets the time of its arrival.
void IngestPipeline::stamp(Slice& slice) {
  const auto readings = slice.readings;
  slice.times.resize(readings.size());
  std::int64_t* const times = slice.times.data();
  std::vector<std::size_t> untimed;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    times[i] = readings[i].time_ns.value_or(0);
    if (!readings[i].time_ns) untimed.push_back(i);
  }
  if (untimed.empty()) return;
  const std::int64_t arrival = times_.take_arrival_times(static_cast<std::int64_t>(untimed.size()));
  if (untimed.size() == 1) {
    times[untimed.front()] = arrival;
    return;
  }
  // Further ones of one series get the nanoseconds behind it.
  std::map<std::tuple<NamespaceId, std::uint32_t, std::uint32_t>, std::int64_t> next;
  for (const std::size_t i : untimed) {
    const catalog::SeriesId& id = slice.ids[i];
    const auto series = std::make_tuple(id.namespace_id, id.device, id.sensor);
    times[i] = next.try_emplace(series, arrival).first->second++;
  }
}

// Into the batch of the request: records of new series and periods, readings, then the records of
// whoever brings them.
Status IngestPipeline::append(IngestRequest& request, Slice& slice) {
  Gathered& gathered = request.buffers.gathered;
  // This slice follows, and with it, or after it, a commit that is synced.
  if (gathered.batch.size_bytes() >= kGatheredBytes) EC_TRY(write(request, Durability::Async));
  request.buffers.fresh.additions.append_to(gathered.batch);
  if (undated_ != nullptr) slice.periods = undated_->append_records(slice.times, gathered.batch);
  if (request.comes_whole) {
    gathered.batch.reserve(slice.readings.size(), slice.readings.size() * kUsualEntryBytes);
  }
  EC_TRY(append_readings(slice, gathered.batch));
  EC_TRY(append_records(request.records, gathered.batch));
  if (audit_ != nullptr) gathered.devices.add(*audit_, slice.readings, slice.ids, slice.authors);
  gathered.readings += slice.readings.size();
  return ok();
}

// Durable, unless it may wait for further slices.
Status IngestPipeline::commit(IngestRequest& request, Slice& slice) {
  if (slice.periods.empty() && may_wait(request)) return ok();
  EC_TRY(write(request, Durability::Sync));
  if (!slice.periods.empty()) undated_->confirm(slice.periods);
  feed_.publish(slice.readings, slice.times);
  return ok();
}

// What became of the readings, once nothing can go wrong with them any more.
void IngestPipeline::account(IngestRequest& request, const Slice& slice, Outcome& outcome) {
  times_.note(slice.ids, slice.times, slice.readings);
  std::vector<LostReading> lost = slice.lost;
  losses_.append_lost(slice.readings, slice.ids, slice.times, request.buffers.replaced, lost);
  losses_.account(request.principal, slice.readings, lost, outcome);
  for (const Slice::Refused& each : slice.refused) {
    outcome.refuse(each.reading, each.why);
    note_refused(each.reading);
  }
  for (const LostReading& each : slice.lost) {
    if (each.loss == Loss::Erased) fences_->count_refused(1);
    if (each.loss == Loss::Evicted) eviction_->count_refused(1);
  }
  // What is not stored is not counted, or a drive that refuses would use up every token.
  rates_.charge(slice.ids, clock_.boot_ns());
}

// --- what the steps are made of ---

// For further slices: not where the next one would take the memory that it borrows, or where it is
// shown, or counted, only once it is durable.
bool IngestPipeline::may_wait(const IngestRequest& request) const {
  const IngestBuffers& buffers = request.buffers;
  return !request.comes_whole && buffers.fresh.additions.readings() < kNewReadingsWaitMax &&
         buffers.gathered.batch.borrowed().empty() && !feed_.may_be_followed() && !rates_.is_on();
}

Status IngestPipeline::append_readings(const Slice& slice, WriteBatch& batch) {
  const auto readings = slice.readings;
  Bytes value;
  char key[wire::kReadingKeyBytes], number[wire::kNumberValueBytes];
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const catalog::SeriesId& id = slice.ids[i];
    wire::encode_reading_key({id.device, id.sensor, slice.times[i]}, key);
    if (wire::encode_number(readings[i].value, number) &&
        batch.size_bytes() + kEntryOverheadBytes + sizeof number <= kBatchSizeMaxBytes) {
      batch.put(id.namespace_id, ByteView(key, sizeof key), ByteView(number, sizeof number));
      continue;
    }
    value.clear();
    const ByteView end = wire::append_value_begin(readings[i].value, value);
    const std::size_t bytes = value.size() + end.size() + kEntryOverheadBytes;
    if (batch.size_bytes() + bytes > kBatchSizeMaxBytes) {
      // The last piece's sync covers this one.
      EC_TRY(engine_.write(batch, Durability::Async));
      batch.clear();
    }
    batch.put(id.namespace_id, ByteView(key, sizeof key), value, end);
  }
  return ok();
}

Status IngestPipeline::append_records(std::span<const RecordChange> records, WriteBatch& batch) {
  for (const RecordChange& record : records) {
    const std::size_t bytes = record.key.size() + record.value.size() + kEntryOverheadBytes;
    if (batch.size_bytes() + bytes > kBatchSizeMaxBytes) {
      EC_TRY(engine_.write(batch, Durability::Async));
      batch.clear();
    }
    if (record.kind == RecordChange::Kind::Put) {
      batch.put(record.namespace_id, record.key, record.value);
    } else {
      batch.remove(record.namespace_id, record.key);
    }
  }
  return ok();
}

// What waits goes to the engine. The audit log's records wait when the commit begins, and are in
// its sync.
Status IngestPipeline::write(IngestRequest& request, Durability durability) {
  Gathered& gathered = request.buffers.gathered;
  if (gathered.batch.count() == 0) return ok();
  if (audit_ == nullptr || gathered.readings == 0) {
    EC_TRY(engine_.write(gathered.batch, durability));
    gathered.clear();
  } else {
    EC_ASSIGN_OR_RETURN(const audit::Ticket ticket,
                        audit_->append(gathered.devices.drafts(request.principal)));
    const Status written = engine_.write(gathered.batch, durability);
    if (!written.ok()) {
      audit::Record failed = audit::record_of(StoredDevices::kOperation, request.principal);
      failed.count = gathered.readings;
      audit_->amend(ticket, std::move(failed), written);
      return written;
    }
    gathered.clear();
    EC_TRY(audit_->settle(ticket));
  }
  if (durability != Durability::Sync) return ok();
  EC_TRY(settle(request.buffers.fresh));
  if (bell_ != nullptr) bell_->ring();
  return ok();
}

// What is new is durable. Rules set since it was met know nothing of it.
Status IngestPipeline::settle(NewSeries& fresh) {
  if (fresh.additions.empty()) return ok();
  catalog_.confirm(fresh.additions);
  const bool is_covered =
      retention_ == nullptr || retention_->generation() == fresh.retention_generation;
  const std::vector<catalog::SeriesRow> rows =
      is_covered ? std::vector<catalog::SeriesRow>() : fresh.additions.series();
  fresh.additions.clear();
  if (is_covered) return ok();
  std::vector<catalog::SeriesEntry> entries;
  for (const catalog::SeriesRow row : rows)
    if (auto entry = catalog_.series_at(row); entry.ok()) entries.push_back(std::move(*entry));
  std::vector<wire::Reading> readings;
  std::vector<catalog::SeriesId> ids;
  for (const catalog::SeriesEntry& entry : entries) {  // the others are gone again
    readings.push_back({entry.namespace_name, entry.device, entry.sensor, {}, {}});
    ids.push_back(entry.id);
  }
  return readings.empty() ? ok() : retention_->cover(readings, ids, true);
}

// --- beside the way in ---

std::int64_t IngestPipeline::owed_ns(const wire::Reading& reading) {
  if (!rates_.is_on()) return 0;
  const auto entry = catalog_.find(reading.namespace_name, reading.device, reading.sensor);
  return entry.ok() ? rates_.owed_ns({&entry->id, 1}, clock_.boot_ns()) : 0;
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

}  // namespace edgecase::ingest
