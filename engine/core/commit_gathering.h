// CommitGathering says for how many writers the leader of a group commit waits before it syncs, and
// how long.
//
// Writers that take turns have a sync each: who comes while one is synced is too late for it, and
// who was synced comes again while the next one is. Where as many as wrote lately come within less
// than a sync takes, they share one, and each is done sooner. Where they do not, waiting was for
// nothing: it is tried again after twice as many groups as the last time.
//
// Source: PostgreSQL's commit_delay and commit_siblings, which are set there and learned here.
//
// Threads: none of its own; the engine calls it under its mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace edgecase::engine {

class CommitGathering {
 public:
  static constexpr std::int64_t kWaitMaxNs = 1'000'000;
  // No part of a sync that takes less is worth waiting for: to wake a thread takes as long.
  static constexpr std::int64_t kSyncMinNs = 60'000;
  static constexpr std::uint32_t kPassesMax = 1'023;

  // Writers that are worth waiting for, the leader among them. 1: none.
  std::size_t expected() const { return passes_left_ == 0 && wait_ns() > 0 ? expected_ : 1; }
  std::int64_t wait_ns() const {
    return sync_ns_ < kSyncMinNs ? 0 : std::min(sync_ns_, kWaitMaxNs);
  }

  // The leader waited; whether as many had come then.
  void waited(bool all_came) {
    passes_ = all_came ? 0 : std::min(2 * passes_ + 1, kPassesMax);
    passes_left_ = passes_;
  }

  // A group of `writers` was synced, which took so long; so many others have come meanwhile.
  void synced(std::size_t writers, std::size_t came_meanwhile, std::int64_t sync_ns) {
    sync_ns_ = sync_ns_ == 0 ? sync_ns : (7 * sync_ns_ + sync_ns) / 8;
    expected_ = writers + came_meanwhile;
    if (passes_left_ > 0) --passes_left_;
  }

 private:
  std::size_t expected_ = 1;
  std::int64_t sync_ns_ = 0;  // smoothed
  std::uint32_t passes_ = 0;  // groups that pass without waiting, after it was for nothing
  std::uint32_t passes_left_ = 0;
};

}  // namespace edgecase::engine
