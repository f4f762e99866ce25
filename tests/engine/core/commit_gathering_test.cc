#include "core/commit_gathering.h"

#include <doctest/doctest.h>

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

}  // namespace edgecase::engine
