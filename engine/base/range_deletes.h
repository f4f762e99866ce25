// Range deletes: entries of [lower, upper) that are older are gone.
//
// RangeDeletes answers which sequence covers a key; it is made whole from a list, and immutable.
#pragma once

#include <span>
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

}  // namespace edgecase::engine
