// Range deletes: entries of [lower, upper) that are older are gone.
//
// RangeDeletes answers which sequence covers a key; it is made whole from a list, and immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/entry.h"

namespace edgecase::engine {

struct RangeDelete {
  Bytes lower;  // full keys
  Bytes upper;  // never empty: what is unbounded ends with its namespace
  SequenceNumber sequence = 0;
  bool erases = false;  // for good: its bytes go, too

  friend bool operator==(const RangeDelete&, const RangeDelete&) = default;
};

inline constexpr std::size_t kRangeBoundMaxBytes = 2048;  // longer than any key

// User keys; an empty `upper` is unbounded.
RangeDelete make_range_delete(NamespaceId id, ByteView lower, ByteView upper,
                              SequenceNumber sequence);

// The deletes that erase.
std::vector<RangeDelete> erasures_among(std::span<const RangeDelete> deletes);

// The part of disjoint `deletes`, in key order, that meets [first, last].
std::span<const RangeDelete> meeting(std::span<const RangeDelete> deletes, ByteView first,
                                     ByteView last);

class RangeDeletes {
 public:
  RangeDeletes() = default;
  explicit RangeDeletes(std::span<const RangeDelete> deletes);

  // The largest sequence, at most `visible`, of a delete that covers the key; 0: there is none.
  SequenceNumber covering(ByteView full_key, SequenceNumber visible) const;
  // The same, faster where keys mostly ascend; `hint` is kept from one to the next, 0 at first.
  SequenceNumber covering(ByteView full_key, SequenceNumber visible, std::size_t& hint) const;
  // Whether a delete newer than `sequence` covers some key of [first, last]; all of them.
  bool touches(ByteView first, ByteView last, SequenceNumber sequence) const;
  bool covers(ByteView first, ByteView last, SequenceNumber sequence) const;

  // The same ranges, disjoint, in key order, the newest sequence of each alone.
  std::vector<RangeDelete> newest() const;

 private:
  // Disjoint, in key order.
  struct Fragment {
    Bytes lower;
    Bytes upper;
    std::vector<SequenceNumber> sequences;  // the largest first
  };

  std::vector<Fragment>::const_iterator first_behind(ByteView full_key) const;
  SequenceNumber covering_of(std::size_t fragment, ByteView full_key, SequenceNumber visible) const;

  std::vector<Fragment> fragments_;
};

// Range deletes that come one after another and are asked for in between: what is asked is made of
// layers, of which each is more than kLayerFactor times as long as the next, newer one, so that
// one more range does not have all be made anew (as the logarithmic method of Bentley and Saxe,
// 1980, for searching in what grows).

// All ranges at one moment. Immutable.
class RangeDeleteLayers {
 public:
  // As of RangeDeletes.
  SequenceNumber covering(ByteView full_key, SequenceNumber visible) const;
  bool touches(ByteView first, ByteView last, SequenceNumber sequence) const;

 private:
  friend class RangeDeleteLog;
  std::vector<std::shared_ptr<const RangeDeletes>> layers_;
};

// Not thread-safe; what layers() answered is.
class RangeDeleteLog {
 public:
  static constexpr std::size_t kLayerFactor = 8;

  void add(RangeDelete range_delete) { list_.push_back(std::move(range_delete)); }
  // Instead of all there were.
  void set(std::vector<RangeDelete> list);
  // As they came.
  const std::vector<RangeDelete>& list() const { return list_; }
  // Null: there are none.
  std::shared_ptr<const RangeDeleteLayers> layers();

 private:
  struct Layer {
    std::size_t begin = 0;  // in the list; it ends where the next one begins
    std::shared_ptr<const RangeDeletes> deletes;
  };

  std::vector<RangeDelete> list_;
  std::vector<Layer> made_;
  std::size_t made_end_ = 0;  // of the list; what is behind it is in no layer
  std::shared_ptr<const RangeDeleteLayers> all_;
};

}  // namespace edgecase::engine
