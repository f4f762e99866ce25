// The sole way of readings into the engine, for each way in: HTTP, the MQTT listener, the broker's
// client, imports and restores. DESIGN.md has the picture of its steps. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "audit/audit_log.h"
#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "catalog/names.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "erase/fences.h"
#include "ingest/outcome.h"
#include "ingest/reading_feed.h"
#include "ingest/reading_times.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::ingest {

// Limits how many readings a second each device may bring: a token bucket a device, of
// `limits.device-rate` tokens a second, at most `limits.device-burst` of them kept.
//
// A batch is never cut in two, so one that finds a token is taken whole, and its device owes the
// rest: until that is paid off, nothing more is taken of it. On the average nobody gets more than
// the rate, and no batch is too large ever to be taken. Devices that owe nothing and have spent
// nothing take no memory; the buckets of others never pass `devices_max`: what comes on top shares
// one bucket.
//
// Thread-safe. Times are of the boot clock.

struct DeviceRateLimits {
  std::uint32_t per_second = 0;  // 0: no limit
  std::uint32_t burst = 10'000;
  std::uint32_t devices_max = 20'000;
};

// For people and headers: rounded up.
constexpr std::int64_t whole_seconds(std::int64_t ns) {
  return (ns + 999'999'999) / 1'000'000'000;
}

// One request that may come in several pieces: a device that was taken once is taken to its end.
struct Pacing {
  std::unordered_set<std::uint64_t> taken;  // devices
  std::int64_t owed_ns = 0;  // where it was refused: how long until it may come again
};

class DeviceRates {
 public:
  explicit DeviceRates(const DeviceRateLimits& limits);

  bool is_on() const { return interval_ns_ != 0; }
  const DeviceRateLimits& limits() const { return limits_; }

  // How long the one of these devices that owes the most still does; 0: none owes anything.
  std::int64_t owed_ns(std::span<const catalog::SeriesId> of, std::int64_t now_ns);
  // Whether they may be taken: false where one owes that `pacing` has not seen yet.
  bool admit(std::span<const catalog::SeriesId> of, std::int64_t now_ns, Pacing& pacing);
  // One token for each, whether it is there or not.
  void charge(std::span<const catalog::SeriesId> of, std::int64_t now_ns);

  // Buckets that take memory.
  std::size_t held() const;
  // How often a batch was refused, or who brought it was made to wait.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  void count_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using Device = std::uint64_t;  // namespace and number
  static Device device_of(const catalog::SeriesId& id) {
    return std::uint64_t{id.namespace_id} << 32 | id.device;
  }
  std::int64_t owed_by(Device device, std::int64_t now_ns) EC_REQUIRES(mutex_);
  bool has_room(std::int64_t now_ns) EC_REQUIRES(mutex_);
  std::int64_t& bucket_of(Device device, std::int64_t now_ns) EC_REQUIRES(mutex_);

  const DeviceRateLimits limits_;
  const std::int64_t interval_ns_;  // of one token; 0: no limit
  const std::int64_t burst_ns_;
  std::atomic<std::int64_t> all_paid_ns_{0};  // nobody owes anything from then on
  std::atomic<std::uint64_t> refused_{0}, waits_{0};

  mutable Mutex mutex_;
  // When the bucket is full again.
  std::unordered_map<Device, std::int64_t> full_at_ns_ EC_GUARDED_BY(mutex_);
  // The same of those for whom there was no room.
  std::int64_t others_full_at_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t sweep_again_ns_ EC_GUARDED_BY(mutex_) = 0;
};

// A record of whoever brings the readings, durable with them or not at all. Borrows its bytes.
struct RecordChange {
  enum class Kind : std::uint8_t { Put, Remove };
  Kind kind = Kind::Put;
  NamespaceId namespace_id = 0;
  ByteView key;
  ByteView value;
};

// What waits for the next commit: a request that comes whole, or several slices of one.
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

// Memory of a request, which the next one may go on with (http/http_routes.h). One thread.
struct IngestBuffers {
  Gathered gathered;
  NewSeries fresh;
  catalog::SeriesMemo series;
  // What belongs to the slice at hand.
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

// A request from its first slice to its end. Slices are gathered into few commits, of which only
// the last waits for the drive; between two of them nothing but memory is touched, so that others
// have the log to themselves meanwhile.
//
//   IngestRequest request(principal, &pacing, body.size(), buffers);
//   while (decoder.next(batch)) { ...pipeline.add(request, *authorize_write(principal, batch), ...)
//   }
//   ...pipeline.finish(request)        // what was added is durable
//
// Requests of up to about 60,000 numbers are stored whole or not at all. Slices are committed as
// they come, with those before them, where they bring many readings of new series, or values that
// are not copied; while somebody follows what is stored; while devices are held to a rate. So a
// part of a larger request may be stored when a later slice fails.
//
// One thread. Everything it refers to outlives it. Erasures wait from the first add() to the next
// commit, or to the end.
struct IngestRequest {
  // `bytes` is about what the request has left to decode.
  IngestRequest(const auth::Principal& by, Pacing* paced_by, std::size_t bytes,
                IngestBuffers& memory);

  const auth::Principal& principal;
  Pacing* const pacing;  // null: taken, whatever its devices owe
  IngestBuffers& buffers;
  bool comes_whole = false;                         // as one slice, which is committed at once
  std::span<const Author> authors = {};             // of that slice, in order
  std::span<const RecordChange> records = {};       // written behind it, in their order
  erase::Copied copied = {};                        // what its readings are a copy of
  catalog::Origins origins = catalog::kOwnOrigins;  // of whom they are, where they are none

  // A pass of the gate of fences: no two at once by one thread, which would wait for itself.
  struct Inside {
    explicit Inside(erase::Fences& fences) : pass(fences.enter()) {}
    const erase::Fences::Pass pass;
  };
  std::optional<Inside> inside;
  // Readings since the last finish().
  std::uint64_t brought = 0, stored = 0;
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
  void refuse_evicted(retention::Eviction* eviction) {
    eviction_ = eviction;
    times_.keep_behind(eviction);
  }
  // The same: what arrives without a time while the clock is not trusted is dated later
  // (redating.h). For a pipeline with fences. Null: it gets the time of the wall.
  void date_later(UndatedPeriods* periods) {
    undated_ = periods;
    times_.date_later(periods);
  }

  // The same: rings when readings have become durable. It outlives the pipeline; null: none.
  void ring(CommitBell* bell) { bell_ = bell; }

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
  // devices owes readings (DeviceRates); without it the batch is taken, and owed() says how long
  // whoever brought it should bring nothing more. `copied`: what the readings are a copy of;
  // `origins`: of whom they are, where they are none.
  Status ingest(const auth::AuthorizedBatch& batch, Outcome* outcome = nullptr,
                std::span<const Author> authors = {}, std::span<const RecordChange> records = {},
                Pacing* pacing = nullptr, erase::Copied copied = {},
                catalog::Origins origins = catalog::kOwnOrigins);

  // The same of one slice of a request, but durable only after finish(). After an error nothing
  // more may be added, and what was not committed is not stored. Adds to `outcome`.
  Status add(IngestRequest& request, const auth::AuthorizedBatch& slice, Outcome& outcome);
  // Idempotent.
  Status finish(IngestRequest& request);

  // How long the device of a reading that was stored owes others; 0: it does not.
  std::int64_t owed_ns(const wire::Reading& reading);
  DeviceRates& rates() { return rates_; }

  // Readings that ingest() would refuse for what they are, in their order: a value, a name, a limit
  // of the catalog. The others of the batch fit together. Writes nothing.
  std::vector<catalog::Refusal> unfit(std::span<const wire::Reading> readings) const;
  // By whoever leaves such a reading out before it comes here.
  void note_refused(const wire::Reading& reading) {
    losses_.ledger().note(Loss::Refused, reading, clock_.wall_ns(), catalog_.generation());
  }
  LossLedger& losses() { return losses_.ledger(); }
  // Null: nothing is recorded.
  audit::AuditLog* audit() const { return audit_; }

  // Which time readings get: of the device, or of arrival.
  ReadingTimes& times() { return times_; }

  // What ingest() stores, as it comes.
  ReadingFeed& feed() { return feed_; }

  struct Counters {
    std::uint64_t batches = 0;  // acknowledged
    std::uint64_t readings = 0;
    std::uint64_t failed_batches = 0;
  };
  Counters counters() const { return {batches_.load(), readings_.load(), failed_batches_.load()}; }

 private:
  struct Slice;

  // The steps of a slice, in their order: take() is their list.
  Status take(IngestRequest& request, Slice& slice, Outcome& outcome);
  Status enter(IngestRequest& request, const Slice& slice);
  void redate(Slice& slice) const;
  Status refuse(const IngestRequest& request, Slice& slice, const Outcome& outcome) const;
  Status resolve(IngestRequest& request, Slice& slice, Outcome& outcome);
  Status admit(const IngestRequest& request, const Slice& slice);
  Status introduce(const IngestRequest& request, const Slice& slice);
  Status cover(const Slice& slice);
  void stamp(Slice& slice);
  Status append(IngestRequest& request, Slice& slice);
  Status commit(IngestRequest& request, Slice& slice);
  void account(IngestRequest& request, const Slice& slice, Outcome& outcome);

  Status append_readings(const Slice& slice, WriteBatch& batch);
  Status append_records(std::span<const RecordChange> records, WriteBatch& batch);
  bool may_wait(const IngestRequest& request) const;
  Status write(IngestRequest& request, Durability durability);
  Status settle(NewSeries& fresh);

  Engine& engine_;
  catalog::Catalog& catalog_;
  Clock& clock_;
  retention::RetentionService* const retention_;
  catalog::DeviceIndex* const devices_;
  audit::AuditLog* const audit_;
  erase::Fences* const fences_;
  const catalog::Catalog::OwnerOfName owner_ =
      fences_ == nullptr ? catalog::Catalog::OwnerOfName() : fences_->owners();
  retention::Eviction* eviction_ = nullptr;
  UndatedPeriods* undated_ = nullptr;
  CommitBell* bell_ = nullptr;
  DeviceRates rates_;
  ReadingTimes times_;
  ReadingFeed feed_;
  Losses losses_;
  std::atomic<std::uint64_t> batches_{0}, readings_{0}, failed_batches_{0};
};

}  // namespace edgecase::ingest
