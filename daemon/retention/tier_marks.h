// Marks say how far each series is thinned: before its mark it has windows alone, from there on
// readings as they came (TIERS.md). A mark becomes durable in the batch that makes the windows and
// takes the readings. A reading from before it is refused: its window is made, and would not be
// told from one that was counted already.
//
// Records, in the namespace `_retention`; numbers are big-endian:
//   'W' namespace id (4) device id (4) sensor id (4)
//     ->  version (1), mark ns (8), then of each tier that reaches up to it: window ns (8)
//
// Thread-safe. A store without tiers pays one comparison a batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "wire/reading.h"

namespace edgecase::retention {

struct TierMark {
  std::int64_t before_ns = INT64_MIN;  // INT64_MIN: nothing is thinned
  // Readings before this are gone for good; those up to the mark are hidden, and their bytes wait.
  std::int64_t erased_ns = INT64_MIN;
  std::vector<std::int64_t> every_ns;  // of the tiers that there are of what lies before

  friend bool operator==(const TierMark&, const TierMark&) = default;
};

class TierMarks {
 public:
  static constexpr char kRecord = 'W';

  // At start. Corruption, Unsupported.
  Status load(ByteView key, ByteView value) EC_EXCLUDES(mutex_);

  TierMark find(const catalog::SeriesId& series) const EC_EXCLUDES(mutex_);
  // Series with readings that are hidden and wait, `most` at most.
  std::vector<catalog::SeriesId> waiting(std::size_t most) const EC_EXCLUDES(mutex_);
  // Before this time some series is thinned; INT64_MIN: none is.
  std::int64_t latest_ns() const { return latest_ns_.load(std::memory_order_relaxed); }
  std::size_t size() const EC_EXCLUDES(mutex_);

  // For the batch that makes it durable, then set() once it is.
  static void append(NamespaceId records, const catalog::SeriesId& series, const TierMark& mark,
                     WriteBatch& batch);
  void set(const catalog::SeriesId& series, TierMark mark) EC_EXCLUDES(mutex_);

  // From now on readings of the series from before this time are refused, while windows are made of
  // those that are there. Whoever calls holds the gate of the fences closed, so that none is on its
  // way in. withdraw_all() takes all of them back.
  void announce(const catalog::SeriesId& series, std::int64_t before_ns) EC_EXCLUDES(mutex_);
  void withdraw_all() EC_EXCLUDES(mutex_);

  // A copy of what was stored once comes in parts, as a restore brings it: meanwhile, and
  // kCopyRestNs after, its readings are not late, so no tiers are made; kCopiesMaxNs after the
  // first in any case. By the clock of the store.
  static constexpr std::int64_t kCopyRestNs = 600'000'000'000;
  static constexpr std::int64_t kCopiesMaxNs = 86'400'000'000'000;
  void note_copied(std::int64_t now_ns);
  bool takes_copies(std::int64_t now_ns) const;

  // Which of the readings come late; empty: none. Whoever asks has passed the gate.
  std::vector<bool> refused(std::span<const wire::Reading> readings,
                            const catalog::Catalog& catalog) const EC_EXCLUDES(mutex_);

  // As those of the catalog.
  Status plan_erasure(NamespaceId records, const catalog::Erased& erased,
                      const catalog::SpanTaker& take) const;
  void forget(const catalog::Erased& erased) EC_EXCLUDES(mutex_);
  std::uint64_t memory_bytes() const EC_EXCLUDES(mutex_);

 private:
  using Key = std::tuple<NamespaceId, std::uint32_t, std::uint32_t>;
  struct Entry {
    std::int64_t before_ns = INT64_MIN;
    std::int64_t erased_ns = INT64_MIN;
    std::uint32_t tiers = 0;  // which of lists_
  };

  static Key key_of(const catalog::SeriesId& series) {
    return {series.namespace_id, series.device, series.sensor};
  }
  void raise_latest(std::int64_t before_ns);

  mutable SharedMutex mutex_;
  std::map<Key, Entry> marks_ EC_GUARDED_BY(mutex_);
  std::map<Key, std::int64_t> announced_ EC_GUARDED_BY(mutex_);
  // Lists of tiers: as many as rules had, however many series follow them.
  std::vector<std::vector<std::int64_t>> lists_ EC_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> latest_ns_{INT64_MIN};
  std::atomic<std::int64_t> first_copy_ns_{INT64_MIN}, last_copy_ns_{INT64_MIN};
};

}  // namespace edgecase::retention
