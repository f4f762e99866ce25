// For who follows what is stored: a feed of it, in its order (ReadingFeed, `edgecase tail`), and a
// bell that rings when there is more (CommitBell).
//
// A follower asks with the position that its last page ended at, and gets what came since. What is
// kept is bounded by kBytesMax; a follower that comes too late is told how much it missed. So is
// what pages that are being sent keep beyond that. Nothing is kept, and publish() costs one load,
// once nobody has asked for kFollowNs. Thread-safe; no lock is held while pages are looked through.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::ingest {

class ReadingFeed {
 public:
  static constexpr std::size_t kBytesMax = 2u << 20;
  static constexpr std::size_t kPagesBytesMax = 2u << 20;
  static constexpr std::int64_t kFollowNs = 30'000'000'000;

  explicit ReadingFeed(Clock& clock);

  // Forgets what it keeps: followers are told that they missed it.
  void clear();

  // Windows that were made of readings of a series, and are durable; `every_ns` of each is set.
  void publish_windows(const catalog::SeriesEntry& series, std::span<const wire::Window> windows);
  // Readings that are durable now; `times_ns[i]` is that of `readings[i]`.
  void publish(std::span<const wire::Reading> readings, std::span<const std::int64_t> times_ns);

  // Whether anybody asked in the last kFollowNs, or nobody knows better yet.
  bool may_be_followed() const { return followed_until_ns_.load(std::memory_order_relaxed) != 0; }

  struct Position {
    std::uint64_t epoch = 0;  // another one after a restart, and after nobody asked for kFollowNs
    std::uint64_t next = 0;   // number of a reading within it
    friend bool operator==(const Position&, const Position&) = default;
  };
  struct Page {
    std::vector<std::shared_ptr<const void>> kept;  // what its readings point into
    Position next;                                  // where the page after this one begins
    std::uint64_t missed = 0;                       // came and went before they were asked for
    bool gap = false;  // nobody knows what came since the position: it is of another epoch
  };
  // Hands `visit` what came since `position`, until it answers false: the page ends before the
  // reading it was given then. Without a position, or after a gap: nothing, and what comes from now
  // on is kept. The readings live as long as `Page::kept`. Busy: kPagesBytesMax.
  Result<Page> read(const std::optional<Position>& position,
                    const std::function<bool(const wire::Reading&)>& visit);

 private:
  // Readings of one batch and the text they point into.
  struct Block {
    explicit Block(std::shared_ptr<std::atomic<std::size_t>> counter)
        : alive_bytes(std::move(counter)) {}
    ~Block() { alive_bytes->fetch_sub(bytes, std::memory_order_relaxed); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    const std::shared_ptr<std::atomic<std::size_t>> alive_bytes;
    std::uint64_t first = 0;
    std::unique_ptr<char[]> text;
    std::vector<wire::Reading> readings;
    std::deque<wire::SeriesIdentity> identities;  // of those that have one
    std::deque<wire::Window> windows;             // the same
    std::size_t bytes = 0;
  };

  std::shared_ptr<Block> copy(std::span<const wire::Reading> readings,
                              std::span<const std::int64_t> times_ns) const;
  void trim(std::size_t bytes_max) EC_REQUIRES(mutex_);
  std::vector<std::shared_ptr<const Block>> blocks_from(std::uint64_t position) const
      EC_REQUIRES(mutex_);

  Clock& clock_;
  std::atomic<std::int64_t> followed_until_ns_{0};  // by boot_ns()
  Mutex mutex_;
  std::deque<std::shared_ptr<const Block>> blocks_ EC_GUARDED_BY(mutex_);  // oldest first
  std::size_t bytes_ EC_GUARDED_BY(mutex_) = 0;
  // Bytes of these and of what pages keep besides.
  const std::shared_ptr<std::atomic<std::size_t>> alive_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  Position next_ EC_GUARDED_BY(mutex_);  // of the reading that comes next
};

// Rings when readings have become durable, for who goes on with them. Thread-safe; outlives those
// that wait and those that ring. Ringing costs two atomic operations while nobody waits.

class CommitBell {
 public:
  void ring() EC_EXCLUDES(mutex_) {
    rings_.fetch_add(1);
    if (waiting_.load() == 0) return;
    const MutexLock lock(mutex_);
    rung_.notify_all();
  }
  // To be taken before it is looked whether there is something to do.
  std::uint64_t rings() const { return rings_.load(); }
  // Until it has rung since it was `seen`, or so long. True: it has.
  bool wait(std::uint64_t seen, std::int64_t timeout_ns) EC_EXCLUDES(mutex_) {
    const auto until = CondVar::deadline_in(timeout_ns);
    MutexLock lock(mutex_);
    waiting_.fetch_add(1);
    while (rings_.load() == seen && rung_.wait_until(mutex_, until)) continue;
    waiting_.fetch_sub(1);
    return rings_.load() != seen;
  }

 private:
  std::atomic<std::uint64_t> rings_{0};
  std::atomic<std::uint32_t> waiting_{0};
  // Held from looking at rings_ to waiting, so that no ring is missed between.
  Mutex mutex_;
  CondVar rung_;
};

}  // namespace edgecase::ingest
