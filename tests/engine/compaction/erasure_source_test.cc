// Rounds of erasing, by a compactor alone: what one is of, and what it may cost the merges beside.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compaction/compactor.h"
#include "engine/table/table_test_store.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;

Bytes key_of(int i) {
  Bytes key = std::to_string(i);
  return Bytes(6 - key.size(), '0') + key;
}

// What the range deletes of the current version cover.
class CoveredRule final : public DropRule {
 public:
  explicit CoveredRule(const std::unique_ptr<VersionSet>& versions) : versions_(versions) {}
  Verdict judge_item(const UMetaRecord& record) override {
    const auto deletes = versions_->current()->range_deletes;
    if (deletes == nullptr) return Verdict::Keep;
    if (deletes->covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
    return deletes->touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                            : Verdict::Keep;
  }
  bool drops_entry(ByteView full_key, SequenceNumber sequence) override {
    const auto deletes = versions_->current()->range_deletes;
    return deletes != nullptr && deletes->covering(full_key, UINT64_MAX) > sequence;
  }

 private:
  const std::unique_ptr<VersionSet>& versions_;
};

// An engine of which nothing is left to do but to finish.
struct RoundHost final : CompactionHost {
  explicit RoundHost(test::ManualExecutor& lane) : executor(lane) {}
  void schedule(std::int64_t delay_ns, std::function<void()> task) override {
    executor.schedule_after(Lane::Compaction, delay_ns, std::move(task));
  }
  void publish() override {}
  void revoke() override {}
  void report(const Status& health) override {
    if (!health.ok()) failures.push_back(health.to_string());
  }
  std::uint64_t user_bytes() const override { return 0; }
  std::uint64_t flushed_bytes() const override { return 0; }
  Status check_values() override { return ok(); }
  bool is_roomy() const override { return false; }
  bool release_reserve() override { return false; }
  std::set<FileNumber> lost_files() override {
    if (const auto now = std::exchange(at_a_pick, nullptr)) now();
    return {};
  }
  bool look_for_damage(const std::vector<TablePointer>&) override { return false; }
  ExpiryView expiry() override { return {}; }
  Result<bool> clear_expired_log() override { return true; }
  Result<bool> finish_erasure(SequenceNumber through) override { return finish(through); }

  test::ManualExecutor& executor;
  std::function<void()> at_a_pick;  // once, after the compactor has looked at the version
  std::function<Result<bool>(SequenceNumber)> finish;
  std::vector<std::string> failures;
};

struct RoundFixture : test::TableTestStore {
  RoundFixture() {
    options.group_bytes = 4096;
    options.compress = false;
    auto created = VersionSet::create(disk, "/m", store_id, nullptr);
    REQUIRE(created.ok());
    versions = std::move(created).value();
    REQUIRE(versions->create_namespace("plant", {}).ok());
    host.finish = [this](SequenceNumber through) -> Result<bool> {
      left_when_done = entries_of_erased();
      EC_TRY(versions->finish_erasures(through));
      return true;
    };
  }

  void make_compactor(std::uint64_t discarded_bytes_min) {
    compactor = std::make_unique<Compactor>(CompactorContext{options, environment, store_id,
                                                             *versions, *cache, host, remover,
                                                             &rule, nullptr, discarded_bytes_min});
  }

  // One edit, as a flush makes it: entries [from, to) of every `step`th key, and perhaps a range
  // that is erased.
  void flush(int from, int to, int step, std::optional<RangeDelete> erased = std::nullopt) {
    std::vector<OwnedEntry> entries;
    for (int i = from; i < to; i += step)
      entries.push_back(
          {make_full_key(1, key_of(i)), ++sequence, EntryKind::Put, Bytes(1000, 'v')});
    VersionEdit edit;
    if (!entries.empty()) {
      const auto numbers = versions->take_file_numbers(64);
      REQUIRE(numbers.ok());
      next_number = *numbers;
      REQUIRE(write(std::move(entries)).ok());
      edit.added_value_files = output.value_files;
      edit.added_tables = output.tables;
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

  // Counts entries of what is pending, in any table.
  std::size_t entries_of_erased() {
    std::size_t found = 0;
    const VersionState state = versions->state();
    for (const RangeDelete& each : state.erasures) {
      for (const TablePointer& table : state.version->tables) {
        const auto cursor = cache->cursor(table, each.lower, each.upper, Direction::Forward, false);
        for (; cursor->valid(); cursor->next())
          if (cursor->sequence() < each.sequence) ++found;
      }
    }
    return found;
  }

  test::ManualClock clock;
  test::ManualExecutor executor;
  SeededRandom random{1};
  EventListener listener;
  Environment environment{disk, clock, random, executor, listener};
  FileRemover remover{disk, [] { return true; }};
  std::unique_ptr<VersionSet> versions;
  CoveredRule rule{versions};
  RoundHost host{executor};
  std::unique_ptr<Compactor> compactor;
  std::optional<std::size_t> left_when_done;
  SequenceNumber sequence = 0;
};

TEST_CASE("a round is of the ranges of its version, though a flush comes in between") {
  RoundFixture store;
  store.make_compactor(256u << 20);
  // When the compactor looks, there is nothing; before it begins a round there are a table and a
  // range that is pending in it.
  store.host.at_a_pick = [&] {
    store.flush(0, 100, 1, make_range_delete(1, key_of(10), key_of(20), 0));
  };
  store.compactor->wake();
  store.executor.run_all();
  REQUIRE(store.left_when_done);
  CHECK(*store.left_when_done == 0);
  CHECK(store.host.failures.empty());
  CHECK(store.compactor->erasure_stats().erasures == 1);
}

TEST_CASE("what merges lose to erasures is bounded, and beyond it erasures wait for the merge") {
  constexpr int kKeys = 12'000;
  constexpr std::uint64_t kDiscardedMin = 5u << 20;
  RoundFixture store;
  // A slice of runs with such groups is all of them: one merge.
  store.options.group_bytes = 256u << 10;
  store.make_compactor(kDiscardedMin);
  for (int part = 0; part < 4; ++part) store.flush(part, kKeys, 4);
  store.compactor->wake();
  const auto written = [&] { return store.disk.used_bytes("/v"); };
  const std::uint64_t flushed = written();
  std::uint64_t lost_bytes = 0;
  int discarded = 0;
  for (int round = 0; round < 50 && store.compactor->stats().relocations == 0; ++round) {
    CAPTURE(round);
    // Into the middle of the merge that puts all of it into one order.
    const std::uint64_t before = written();
    for (int turn = 0; turn < 1000 && written() < before + (2u << 20); ++turn) {
      if (store.executor.run_one()) continue;
      store.clock.advance(1'000'000'000);
      store.executor.advance(1'000'000'000);
    }
    if (store.compactor->stats().relocations > 0) break;
    const std::uint64_t in_merge = written() - flushed;
    REQUIRE(in_merge >= 2u << 20);
    const std::uint64_t erasures = store.compactor->erasure_stats().erasures;
    store.flush(0, 0, 1, make_range_delete(1, "x" + key_of(round), "x" + key_of(round + 1), 0));
    store.compactor->erase_now();
    while (store.compactor->erasure_stats().erasures == erasures) REQUIRE(store.executor.run_one());
    if (store.compactor->stats().relocations > 0) break;
    ++discarded;
    lost_bytes += in_merge;
  }
  CHECK(discarded >= 1);
  CHECK(store.compactor->stats().relocations > 0);
  CHECK(lost_bytes <= kDiscardedMin + store.compactor->stats().value_bytes / 4);
}

}  // namespace
}  // namespace edgecase::engine
