#if defined(__clang__)
// It does not see through a CHECK who leads.
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

#include <doctest/doctest.h>

#include <array>
#include <thread>
#include <vector>

#include "core/commit_queue.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kSyncNs = 300'000;

}  // namespace

TEST_CASE(
    "commit gathering: one writer alone is never waited for, nor who comes after fast syncs") {
  CommitGathering gathering;
  CHECK(gathering.expected() == 1);
  for (int i = 0; i < 10; ++i) {
    gathering.synced(1, 0, kSyncNs);
    CHECK(gathering.expected() == 1);
  }
  CommitGathering fast;
  fast.synced(1, 1, CommitGathering::kSyncMinNs - 1);
  CHECK(fast.expected() == 1);
}

TEST_CASE("commit gathering: who takes turns is waited for, no longer than a sync takes") {
  CommitGathering gathering;
  gathering.synced(1, 1, kSyncNs);
  CHECK(gathering.expected() == 2);
  CHECK(gathering.wait_ns() == kSyncNs);
  gathering.waited(true);
  for (int i = 0; i < 10; ++i) {
    gathering.synced(2, 0, kSyncNs);
    CHECK(gathering.expected() == 2);
    gathering.waited(true);
  }
  // One of them ends.
  gathering.waited(false);
  gathering.synced(1, 0, kSyncNs);
  CHECK(gathering.expected() == 1);
  for (int i = 0; i < 100; ++i) gathering.synced(1, 0, 1'000 * kSyncNs);
  CHECK(gathering.wait_ns() == CommitGathering::kWaitMaxNs);
}

TEST_CASE("commit gathering: what was waited for in vain is tried again ever later") {
  CommitGathering gathering;
  std::uint64_t waits = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (gathering.expected() > 1) {
      ++waits;
      gathering.waited(false);
    }
    gathering.synced(1, 1, kSyncNs);
  }
  CHECK(waits > 10);  // never given up
  CHECK(waits < 25);
  // Once it pays, it is done again and again.
  while (gathering.expected() == 1) gathering.synced(1, 1, kSyncNs);
  gathering.waited(true);
  gathering.synced(2, 0, kSyncNs);
  CHECK(gathering.expected() == 2);
}

namespace {

WriteBatch batch_of(std::size_t value_bytes) {
  WriteBatch batch;
  batch.put(0, "key", Bytes(value_bytes, 'v'));
  return batch;
}

void wait_for_size(const CommitQueue& queue, std::size_t size) {
  while (queue.size() != size) std::this_thread::yield();
}

}  // namespace

TEST_CASE("commit queue: one leads at a time, whichever way it came") {
  CommitQueue queue;
  REQUIRE(queue.try_lead());
  CHECK_FALSE(queue.try_lead());
  queue.leave();

  CommitQueue::Writer writer;
  REQUIRE(queue.wait_for_turn(writer));
  CHECK(queue.group().empty());  // it has no batch
  CHECK_FALSE(queue.try_lead());
  queue.finish(0);
  CHECK(queue.size() == 0);
  REQUIRE(queue.try_lead());
  queue.leave();
}

TEST_CASE("commit queue: who queues up behind one that leads without a turn leads next") {
  CommitQueue queue;
  REQUIRE(queue.try_lead());
  bool is_over = false;
  std::thread next([&] {
    CommitQueue::Writer writer;
    CHECK(queue.wait_for_turn(writer));
    CHECK(is_over);
    queue.finish(0);
  });
  wait_for_size(queue, 1);
  is_over = true;
  queue.leave();
  next.join();
  CHECK(queue.try_lead());
}

TEST_CASE("commit queue: writers that wait are taken along as far as a group goes") {
  CommitQueue queue;
  const std::array<WriteBatch, 4> batches = {batch_of(1), batch_of(2), batch_of(1u << 20),
                                             batch_of(3)};
  // Nobody follows the writer without a batch, which is the fifth.
  const std::array<std::size_t, 6> expected_groups = {2, 0, 1, 1, 0, 0};
  REQUIRE(queue.try_lead());
  std::array<std::size_t, 6> groups{};
  std::array<bool, 6> led{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      CommitQueue::Writer writer;
      if (i < batches.size()) writer.batch = &batches[i];
      led[i] = queue.wait_for_turn(writer);
      if (!led[i]) {
        CHECK(writer.status.code() == StatusCode::Busy);
        return;
      }
      groups[i] = queue.group().size();
      for (CommitQueue::Writer* each : queue.group()) each->status = busy("done by another one");
      queue.finish(0);
    });
    wait_for_size(queue, i + 1);
  }
  queue.leave();
  for (std::thread& thread : threads) thread.join();
  CHECK(groups == expected_groups);
  CHECK(led == std::array<bool, 6>{true, false, true, true, true, true});
  CHECK(queue.size() == 0);
}

TEST_CASE("commit queue: what leaders change needs no lock of its own") {
  constexpr int kThreads = 4;
  constexpr int kTurns = 2'000;
  CommitQueue queue;
  int done = 0;  // the leader's
  std::vector<std::thread> threads;
  const WriteBatch batch = batch_of(1);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTurns; ++i) {
        if (t % 2 == 0 && queue.try_lead()) {
          ++done;
          queue.leave();
          continue;
        }
        CommitQueue::Writer writer;
        writer.batch = &batch;
        if (!queue.wait_for_turn(writer)) continue;
        done += static_cast<int>(queue.group().size());
        queue.finish(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(done == kThreads * kTurns);
  CHECK(queue.try_lead());
}

}  // namespace edgecase::engine
