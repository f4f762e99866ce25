// GroupCuts: where the groups of a series that is dense end, so that windows of time fit them: at
// multiples of a span, UTC's full hours. Whoever gathers a group asks ends_before() of each next
// entry of a key with an ordinal, and tells add() of those that it takes. Entries come in key
// order. One thread.
//
// A series is dense at the end of a span that has kSpanEntriesMin entries, or would have them if it
// had gone on as it began. A group of kOwnGroupMin of one series ends before another series as
// well: it has a summary of its own then.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

inline constexpr std::uint64_t kSpanEntriesMin = 128;
// About half a full group of numbers. With 128 flushes made so many groups that ingest of trucks'
// lines took 6 % more of the processor.
inline constexpr std::uint64_t kOwnGroupMin = 300;

class GroupCuts {
 public:
  // 0: groups end where they are full.
  explicit GroupCuts(std::int64_t span_ns)
      : span_ns_(static_cast<std::uint64_t>(span_ns > 0 ? span_ns : 0)) {}

  bool is_on() const { return span_ns_ > 0; }
  // Whether `prefix` is that of the entry that was added last.
  bool continues(ByteView prefix) const { return prefix == ByteView(prefix_); }
  // Whether a group that ends with the entry that was added last, `in_group` of it of one series,
  // should end before that of `prefix`, a full key's, and `ordinal`.
  bool ends_before(ByteView prefix, std::uint64_t ordinal, std::uint64_t in_group) const {
    if (span_ns_ == 0 || in_group == 0) return false;
    if (!continues(prefix)) return in_group >= kOwnGroupMin;
    return ordinal >= end_ && is_dense();
  }
  // The first ordinal of the series that was added to last before which its group may end.
  std::uint64_t end() const { return end_; }
  bool is_dense() const {
    // Floating point: no product of these is too large for it.
    return count_ >= kCrumb &&
           static_cast<double>(count_) * static_cast<double>(span_ns_) >=
               static_cast<double>(kSpanEntriesMin) * static_cast<double>(end_ - first_);
  }
  void add(ByteView prefix, std::uint64_t ordinal, std::uint64_t count = 1) {
    if (span_ns_ == 0) return;
    if (ordinal >= end_ || !continues(prefix)) {
      prefix_.assign(prefix);
      first_ = ordinal;
      count_ = 0;
      end_ = end_of(ordinal);
    }
    count_ += count;
  }

 private:
  // Fewer are no group of their own.
  static constexpr std::uint64_t kCrumb = 16;

  // An ordinal is a signed time, its sign turned round. None: the last one.
  std::uint64_t end_of(std::uint64_t ordinal) const {
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    const auto span = static_cast<std::int64_t>(span_ns_);
    const auto time = static_cast<std::int64_t>(ordinal ^ kSign);
    std::int64_t into = time % span;
    if (into < 0) into += span;
    std::int64_t end = 0;
    if (__builtin_add_overflow(time, span - into, &end)) return UINT64_MAX;
    return static_cast<std::uint64_t>(end) ^ kSign;
  }

  const std::uint64_t span_ns_;
  Bytes prefix_;
  std::uint64_t first_ = 0;  // of the span that was added to last
  std::uint64_t end_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace edgecase::engine
