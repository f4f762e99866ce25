// decode -> authorize -> write -> ack: the sole caller of Engine::write for readings. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "audit/audit_log.h"
#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "catalog/series_memo.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "erase/fences.h"
#include "ingest/device_rates.h"
#include "ingest/device_times.h"
#include "ingest/outcome.h"
#include "ingest/reading_feed.h"
#include "ingest/stored_devices.h"
#include "ingest/undated_periods.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::ingest {

// Of the audit log's records of what was not kept (LossRecords).
inline constexpr std::string_view kLossOperation = "ingest.lost";

// A record of whoever brings the readings, durable with them or not at all. Borrows its bytes.
struct RecordChange {
  enum class Kind : std::uint8_t { Put, Remove };
  Kind kind = Kind::Put;
  NamespaceId namespace_id = 0;
  ByteView key;
  ByteView value;
};

// What one commit takes along: a batch, or several slices of a request (sliced_ingest.h).
struct Gathered {
  WriteBatch batch;
  StoredDevices devices;  // where there is an audit log
  std::uint64_t readings = 0;

  void clear() {
    batch.clear();
    devices.clear();
    readings = 0;
  }
};

// Devices and series that readings brought and that are not durable yet.
struct NewSeries {
  catalog::CatalogAdditions additions;
  std::uint64_t retention_generation = 0;  // when the first of them got its rules
};

// Of one request, from one slice to the next; another may go on with it.
struct Slices {
  Gathered gathered;
  NewSeries fresh;
  catalog::SeriesMemo series;
  // Of the slice at hand.
  std::vector<catalog::SeriesId> ids;
  std::vector<std::int64_t> times;
  ReplacedSearch replaced;

  // Nothing that waits is stored.
  void abandon() {
    gathered.clear();
    if (!fresh.additions.empty()) fresh.additions.clear();
  }
  std::size_t memory_bytes() const {
    return gathered.batch.memory_bytes() + gathered.devices.memory_bytes() + series.memory_bytes() +
           ids.capacity() * sizeof(ids[0]) + times.capacity() * sizeof(times[0]) +
           replaced.memory_bytes();
  }
};

// What is to be stored. Borrows all of it.
struct Incoming {
  const auth::Principal& principal;
  const std::vector<wire::Reading>& readings;
  std::span<const Author> authors;
  std::span<const RecordChange> records;
  Pacing* pacing = nullptr;  // null: taken, whatever its devices owe
  Slices* slices = nullptr;  // null: written at once
};

class IngestPipeline {
 public:
  // `retention` may be null: then nothing expires. `audit` may: then nothing is recorded; `fences`
  // too: then nothing is erased. All outlive the pipeline.
  IngestPipeline(Engine& engine, catalog::Catalog& catalog, Clock& clock,
                 retention::RetentionService* retention = nullptr,
                 catalog::DeviceIndex* devices = nullptr, audit::AuditLog* audit = nullptr,
                 erase::Fences* fences = nullptr, DeviceRateLimits rates = {});

  // Before anything is ingested; null: nothing is evicted. It outlives the pipeline.
  void refuse_evicted(retention::Eviction* eviction) { eviction_ = eviction; }
  // The same: what arrives without a time while the clock is not trusted is dated later
  // (redating.h). For a pipeline with fences. Null: it gets the time of the wall.
  void date_later(UndatedPeriods* periods) { undated_ = periods; }

  // Ok: every reading of the batch is durable (fsynced; concurrent callers share one fsync).
  // Otherwise none is stored, as long as the batch's encoding fits the engine's
  // (kBatchSizeMaxBytes; about 30 bytes a number). A larger one is written in pieces, in order:
  // when one fails, those before it stay, and sending the batch again stores the same once more.
  //
  // Readings without a time get the time of arrival: one a batch, but never twice the same for one
  // series, within the batch or between batches, though the clock stands still. Errors:
  // InvalidArgument (a bad name or value: names reading and reason), Busy / OutOfSpace / IoError /
  // Unavailable (try again later), NotAllowed. An empty batch is Ok.
  //
  // `outcome`, where given, counts what is not there as it was sent, though the answer is Ok; where
  // it takes parts, what can never be stored is among that. `authors` are in order. `records` are
  // written in their order, in the last piece of a batch that takes several, and also where there
  // is no reading, or none that may be stored. With `pacing` a batch is Busy while one of its
  // devices owes readings (device_rates.h); without it the batch is taken, and owed() says how long
  // whoever brought it should bring nothing more.
  Status ingest(const auth::AuthorizedBatch& batch, Outcome* outcome = nullptr,
                std::span<const Author> authors = {}, std::span<const RecordChange> records = {},
                Pacing* pacing = nullptr);

  // How long the device of a reading that was stored owes others; 0: it does not.
  std::int64_t owed_ns(const wire::Reading& reading);
  DeviceRates& rates() { return rates_; }

  // Readings that ingest() would refuse for what they are, in their order: a value, a name, a limit
  // of the catalog. The others of the batch fit together. Writes nothing.
  std::vector<catalog::Refusal> unfit(std::span<const wire::Reading> readings) const;
  // By whoever leaves such a reading out before it comes here.
  void note_refused(const wire::Reading& reading) {
    losses_.note(Loss::Refused, reading, clock_.wall_ns(), catalog_.generation());
  }
  LossLedger& losses() { return losses_; }
  // Null: nothing is recorded.
  audit::AuditLog* audit() const { return audit_; }

  // What arrives now has this time, or a little later one: the wall's, or an undated one.
  std::int64_t arrival_clock_ns();
  // The time that an undated one turned out to be, if it has; any other as it is.
  std::int64_t dated_ns(std::int64_t time_ns) const {
    return undated_ == nullptr ? time_ns : undated_->dated_ns(time_ns);
  }
  // arrival_clock_ns(), moved on where it must be so that no two calls, and no reading that
  // ingest() stamps, get the same. For who knows better than ingest() when a reading arrived.
  std::int64_t take_arrival_time() { return take_arrival_times(1); }
  // The first of so many.
  std::int64_t take_arrival_times(std::int64_t count);

  // How far ahead of a trusted clock a time that a device says may lie. Before anything is
  // ingested.
  void limit_time_ahead(std::int64_t ahead_ns) { time_ahead_ns_ = ahead_ns; }
  // Of a time that a device says, of what arrives now: is_believable_time().
  bool is_believable(std::int64_t time_ns) const;
  std::vector<DeviceTimes::Verdict> preview_times(std::span<const DeviceTimes::Asked> asked) {
    return device_times_.preview(asked);
  }
  // Those that are believable by themselves: DeviceTimes::settle().
  DeviceTimes::Replaced settle_times(std::span<const DeviceTimes::Asked> asked);

  // Deletes readings of one series: what the daemon itself keeps a bounded number of (`_rejected`).
  // Durable with the next ingest(). Errors: the engine's.
  Status forget(const catalog::SeriesId& series, std::span<const std::int64_t> times_ns);

  // What ingest() stores, as it comes.
  ReadingFeed& feed() { return feed_; }

  struct Counters {
    std::uint64_t batches = 0;  // acknowledged
    std::uint64_t readings = 0;
    std::uint64_t failed_batches = 0;
  };
  Counters counters() const;

 private:
  friend class SlicedIngest;
  Status introduce(const Incoming& incoming);
  struct Resolved {
    const std::vector<catalog::SeriesId>& ids;
    NewSeries& fresh;
    bool has_new = false;  // to whoever gathers; others may have brought it, too
  };
  Status store_allowed(const Incoming& incoming, Outcome& outcome);
  Status store_inside(const Incoming& incoming, Outcome& outcome);
  Status store_dated(const Incoming& incoming, Outcome& outcome);
  Status store_others(const Incoming& incoming, std::vector<bool> is_refused, Outcome& outcome);
  Status store_rest(const Incoming& incoming, const std::vector<bool>& is_left_out,
                    Outcome& outcome, int round);
  Status store_fitting(const Incoming& incoming, Outcome& outcome, int round = 0);
  Status store(const Incoming& incoming, Outcome& outcome);
  Status store_taken(const Incoming& incoming, const Resolved& resolved,
                     std::vector<std::int64_t>& times);
  std::vector<LostReading> find_lost(std::span<const wire::Reading> readings,
                                     std::span<const catalog::SeriesId> ids,
                                     std::span<const std::int64_t> times, ReplacedSearch& search);
  void account(const auth::Principal& principal, std::span<const wire::Reading> readings,
               std::span<const LostReading> lost, Outcome& outcome);
  void record_losses(const auth::Principal& principal, std::span<const wire::Reading> readings,
                     std::span<const LostReading> lost);
  Status append_readings(const Incoming& incoming, std::span<const std::int64_t> times,
                         std::span<const catalog::SeriesId> ids, WriteBatch& piece);
  Status append_records(std::span<const RecordChange> records, WriteBatch& piece);
  Status write_records(std::span<const RecordChange> records);
  Status write(const Incoming& incoming, const std::vector<std::int64_t>& times,
               const Resolved& resolved);
  bool may_wait(const Incoming& incoming, const WriteBatch& batch, const NewSeries& fresh) const;
  Status settle(NewSeries& fresh);
  Status commit(const auth::Principal& principal, Gathered& gathered, Durability durability);
  void take_times(const std::vector<wire::Reading>& readings,
                  const std::vector<catalog::SeriesId>& ids, std::vector<std::int64_t>& times);

  Engine& engine_;
  catalog::Catalog& catalog_;
  Clock& clock_;
  retention::RetentionService* const retention_;
  catalog::DeviceIndex* const devices_;
  audit::AuditLog* const audit_;
  erase::Fences* const fences_;
  retention::Eviction* eviction_ = nullptr;
  UndatedPeriods* undated_ = nullptr;
  DeviceRates rates_;
  DeviceTimes device_times_;
  std::int64_t time_ahead_ns_ = kTimeAheadNs;
  ReadingFeed feed_;
  LossLedger losses_;
  LossRecords loss_records_;
  std::atomic<std::int64_t> last_arrival_ns_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<std::uint64_t> batches_{0}, readings_{0}, failed_batches_{0};
};

}  // namespace edgecase::ingest
