// Sources of compaction's work without its lane: a version set on drives in memory, and a host that
// says what a test sets. A test asks a source, and carries out what that offers.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compaction/merge_job.h"
#include "compaction/useful_sources.h"
#include "compaction/work_source.h"
#include "engine/table/table_test_store.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"

namespace edgecase::test {

inline Bytes key_of(int i) {
  Bytes key = std::to_string(i);
  return Bytes(6 - key.size(), '0') + key;
}

// An engine of which nothing is left to do but to finish.
struct SourceHost final : engine::CompactionHost {
  explicit SourceHost(ManualExecutor& lane) : executor(lane) {}
  void schedule(std::int64_t delay_ns, std::function<void()> task) override {
    executor.schedule_after(Lane::Compaction, delay_ns, std::move(task));
  }
  void publish() override {}
  void revoke() override {}
  void report(const Status& health) override {
    if (!health.ok()) failures.push_back(health.to_string());
  }
  std::uint64_t user_bytes() const override { return 0; }
  std::uint64_t flushed_bytes() const override { return flushed; }
  Status check_drives() override { return ok(); }
  bool is_roomy() const override { return roomy; }
  bool release_reserve() override { return false; }
  std::set<engine::FileNumber> lost_files() override {
    if (const auto now = std::exchange(at_a_pick, nullptr)) now();
    return lost;
  }
  bool look_for_damage(const std::vector<engine::TablePointer>& tables) override {
    looked_at = tables.size();
    return finds_damage;
  }
  engine::ExpiryView expiry() override { return {}; }
  engine::RaiseLimits raise_limits() override { return {}; }
  Result<bool> clear_expired_log() override { return true; }
  Result<bool> finish_erasure(engine::SequenceNumber through) override { return finish(through); }

  ManualExecutor& executor;
  std::function<void()> at_a_pick;  // once, after the lane has looked at the version
  std::function<Result<bool>(engine::SequenceNumber)> finish;
  std::vector<std::string> failures;
  std::uint64_t flushed = 0;
  bool roomy = false;
  std::set<engine::FileNumber> lost;
  bool finds_damage = false;
  std::size_t looked_at = 0;
};

struct SourceFixture : TableTestStore {
  SourceFixture() {
    options.group_bytes = 4096;
    options.compress = false;
    auto created = engine::VersionSet::create(disk, "/m", store_id, nullptr);
    REQUIRE(created.ok());
    versions = std::move(created).value();
    REQUIRE(versions->create_namespace("plant", {}).ok());
  }

  engine::CompactorContext context_of_sources() {
    return {options, environment, store_id, *versions, *cache, host, remover};
  }
  engine::LaneView view(bool idle = false) const {
    return {versions->current(), versions->current(), idle};
  }

  // One edit, as a flush makes it: entries [from, to) of every `step`th key, and perhaps a range
  // that is erased.
  void flush(int from, int to, int step = 1,
             std::optional<engine::RangeDelete> erased = std::nullopt) {
    std::vector<OwnedEntry> entries;
    for (int i = from; i < to; i += step)
      entries.push_back({engine::make_full_key(1, key_of(i)), ++sequence, engine::EntryKind::Put,
                         Bytes(value_bytes, 'v')});
    engine::VersionEdit edit;
    if (!entries.empty()) {
      take_numbers();
      REQUIRE(write(std::move(entries)).ok());
      edit.added_value_files = output.value_files;
      edit.added_tables = output.tables;
      host.flushed += output.value_bytes;
    }
    if (erased) {
      erased->sequence = ++sequence;
      erased->erases = true;
      edit.range_deletes = {*erased};
      edit.erasures = {*erased};
    }
    edit.flushed_sequence = sequence;
    REQUIRE(versions->apply(edit).ok());
  }

  // Does what the lane does with an offer of a merge, and tells `source` and the estimate.
  void carry_out(engine::MergePlan plan, engine::WorkSource& source,
                 engine::GarbageEstimate* garbage = nullptr) {
    take_numbers();
    engine::MergeJob job(*cache, context(), std::move(plan), nullptr);
    for (bool done = false; !done;) {
      const auto stepped = job.step(1u << 20, 1u << 13);
      REQUIRE(stepped.ok());
      done = *stepped;
    }
    const engine::TableOutput made = job.take_output();
    for (const auto& file : made.value_files) cache->add_value_file(file);
    engine::VersionEdit edit;
    edit.added_value_files = made.value_files;
    edit.added_tables = made.tables;
    edit.removed_tables = job.replaced_tables();
    const auto before = versions->current();
    remove_unused_value_files(*before, edit);
    REQUIRE(versions->apply(edit).ok());
    const engine::FinishedMerge merge{job.plan(),        job.counters(), made, job.merged(made),
                                      job.leaves_rest(), *before,        edit};
    if (garbage != nullptr) garbage->note_merge(merge, *versions->current());
    source.committed(merge, true);
  }
  // Asks it for a merge, which there must be, and carries that out.
  void carry_out_next(engine::WorkSource& source, bool idle = false,
                      engine::GarbageEstimate* garbage = nullptr) {
    auto offer = source.next(view(idle));
    REQUIRE(offer.ok());
    REQUIRE(offer->kind == engine::Offer::Kind::Merge);
    carry_out(std::move(offer->plan), source, garbage);
  }

  void take_numbers() {
    const auto numbers = versions->take_file_numbers(256);
    REQUIRE(numbers.ok());
    next_number = *numbers;
  }

  std::size_t value_bytes = 1000;  // of each entry
  ManualClock clock;
  ManualExecutor executor;
  SeededRandom random{1};
  EventListener listener;
  Environment environment{disk, clock, random, executor, listener};
  engine::FileRemover remover{disk, [] { return true; }};
  std::unique_ptr<engine::VersionSet> versions;
  SourceHost host{executor};
  engine::SequenceNumber sequence = 0;
};

}  // namespace edgecase::test
