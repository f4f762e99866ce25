// The sole way of readings into the engine, for each way in: HTTP, the MQTT listener, the broker's
// client, imports and restores. DESIGN.md has the picture of its steps. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "audit/audit_log.h"
#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "erase/fences.h"
#include "ingest/device_rates.h"
#include "ingest/ingest_request.h"
#include "ingest/outcome.h"
#include "ingest/reading_feed.h"
#include "ingest/reading_times.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::ingest {

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
