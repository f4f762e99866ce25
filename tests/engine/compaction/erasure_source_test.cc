#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>

#include "compaction/compactor.h"
#include "compaction/erasure_source.h"
#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {

// Rounds of erasing, by a compactor alone: what one is of, and what it may cost the merges beside.

namespace {

using test::key_of;

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

struct RoundFixture : test::SourceFixture {
  RoundFixture() {
    host.finish = [this](SequenceNumber through) -> Result<bool> {
      left_when_done = entries_of_erased();
      EC_TRY(versions->finish_erasures(through));
      return true;
    };
  }

  void make_compactor(std::uint64_t discarded_bytes_min) {
    CompactorContext with_limit = context_of_sources();
    with_limit.rule = &rule;
    with_limit.discarded_bytes_min = discarded_bytes_min;
    compactor = std::make_unique<Compactor>(with_limit);
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

  CoveredRule rule{versions};
  std::unique_ptr<Compactor> compactor;
  std::optional<std::size_t> left_when_done;
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
  CHECK(store.compactor->erasures().stats().erasures == 1);
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
    const std::uint64_t erasures = store.compactor->erasures().stats().erasures;
    store.flush(0, 0, 1, make_range_delete(1, "x" + key_of(round), "x" + key_of(round + 1), 0));
    store.compactor->erase_now();
    while (store.compactor->erasures().stats().erasures == erasures)
      REQUIRE(store.executor.run_one());
    if (store.compactor->stats().relocations > 0) break;
    ++discarded;
    lost_bytes += in_merge;
  }
  CHECK(discarded >= 1);
  CHECK(store.compactor->stats().relocations > 0);
  CHECK(lost_bytes <= kDiscardedMin + store.compactor->stats().value_bytes / 4);
}

}  // namespace

// How long what failed waits.

namespace {

constexpr std::int64_t kOneSecondNs = 1'000'000'000;

}  // namespace

TEST_CASE("what fails waits twice as long each time, a minute at most, until it succeeds") {
  RetryDelay retry;
  CHECK(retry.left_ns(0) <= 0);
  std::int64_t now_ns = 5 * kOneSecondNs;
  for (const std::int64_t want_s : {1, 2, 4, 8, 16, 32, 60, 60}) {
    CHECK(retry.note_failure(now_ns) == want_s * kOneSecondNs);
    CHECK(retry.left_ns(now_ns) == want_s * kOneSecondNs);
    now_ns += want_s * kOneSecondNs;
    CHECK(retry.left_ns(now_ns) == 0);
  }
  retry.note_success();
  CHECK(retry.note_failure(now_ns) == kOneSecondNs);
}

TEST_CASE(
    "what somebody waits for is tried at once, and its next failure waits longer all the same") {
  RetryDelay retry;
  CHECK(retry.note_failure(0) == kOneSecondNs);
  retry.end_wait();
  CHECK(retry.left_ns(1) <= 0);
  CHECK(retry.note_failure(1) == 2 * kOneSecondNs);
}

}  // namespace edgecase::engine
