// Gathers the entries of one group with GroupCodec::Series, as the columns that its body is made
// of; layout: value_format.h. What the CBuffer is for plain groups.
// Use: while there are entries: if nothing is taken { write the group; clear(); } again. Owned by
// one thread; copies what it is given, so its memory is one group's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/entry.h"
#include "edgecase/bytes.h"
#include "value/value_format.h"

namespace edgecase::engine {

inline constexpr std::uint64_t kSpanEntriesMin = 128;
// About half a full group of numbers. With 128 flushes made so many groups that ingest of trucks'
// lines took 6 % more of the processor.
inline constexpr std::uint64_t kOwnGroupMin = 300;

// GroupCuts: where the groups of a series that is dense end, so that windows of time fit them: at
// multiples of a span, UTC's full hours. Whoever gathers a group asks ends_before() of each next
// entry of a key with an ordinal, and tells add() of those that it takes. Entries come in key
// order. One thread.
//
// A series is dense at the end of a span that has kSpanEntriesMin entries, or would have them if it
// had gone on as it began. A group of kOwnGroupMin of one series ends before another series as
// well: it has a summary of its own then.
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

class Packer;

class SeriesColumns {
 public:
  // Closed at `group_bytes` of keys and values, or at `entries_max`; with `span_ns` where GroupCuts
  // says as well.
  SeriesColumns(std::size_t group_bytes, std::size_t entries_max, std::int64_t span_ns = 0);

  // Leading bytes of a user key that make its scope; from the next group on.
  void set_scope_bytes(std::size_t scope_bytes) { scope_bytes_ = scope_bytes; }
  std::size_t scope_bytes() const { return scope_bytes_; }
  // Entries keep sequences of their own, or else share the largest; from the next group on.
  void keep_sequences() { keeps_sequences_ = true; }

  // Entries lie behind all before them. False or 0: the group is closed, or of another scope. An
  // empty one takes anything.
  bool add(const EntryView& entry);
  // Answers how many from the front of `run` were taken. Its prefix must cover the scope.
  std::size_t add(const SeriesRun& run);

  bool empty() const { return classes_.empty(); }
  // Bytes of keys and values.
  std::size_t raw_bytes() const { return raw_bytes_; }
  // What follows is of at least one entry; views hold until the next add() or clear().
  const ItemSummary& summary();
  // What entries have of their own; empty: they share the largest. None may become larger than it.
  std::span<SequenceNumber> sequences() { return sequences_; }
  // An entry of each series, and every short key: what a filter is made of.
  std::span<const EntryView> heads();
  // The numbers of all entries, as they lie in values behind the tag, where they are of one series
  // and of one class, Double or Integer; else empty.
  std::span<const std::uint64_t> numbers_of_one_series(ValueClass& value_class) const;
  // Without a packer nothing is packed.
  void append_body(Bytes& out, Packer* packer = nullptr);
  void clear();

 private:
  // Neighbours whose keys share a prefix, or that are all short.
  struct Run {
    std::size_t key_offset = 0;  // in keys_: the first full key
    std::size_t key_size = 0;
    bool is_short = false;
    std::size_t begin = 0;  // its first entry
    std::size_t others_begin = 0;
    std::size_t shorts_begin = 0;
  };
  struct Piece {
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  bool takes(ByteView full_key_begin) const;
  void begin_run(ByteView full_key);
  bool continues(ByteView prefix) const;
  std::size_t in_last_run() const {
    return runs_.empty() || runs_.back().is_short ? 0 : classes_.size() - runs_.back().begin;
  }
  ByteView prefix_of(const Run& run) const;
  void append_run(Bytes& out, std::size_t index, ByteView previous_prefix, Packer* packer);
  unsigned append_ordinals(Bytes& out, std::span<const std::uint64_t> ordinals);
  void append_numbers(Bytes& out, std::size_t begin, std::size_t end);

  const std::size_t group_bytes_;
  const std::size_t entries_max_;
  std::size_t scope_bytes_ = 0;
  bool keeps_sequences_ = false;
  std::size_t raw_bytes_ = 0;
  GroupCuts cuts_;
  std::vector<Run> runs_;
  Bytes keys_;
  // One an entry.
  std::vector<std::uint8_t> classes_;    // ValueClass
  std::vector<std::uint64_t> ordinals_;  // 0 for short keys
  std::vector<std::uint64_t> numbers_;   // 0 for what is no number
  std::vector<SequenceNumber> sequences_;
  // Columns that only some entries have.
  std::vector<Piece> shorts_;  // user keys, in keys_
  std::vector<Piece> others_;  // in other_bytes_
  Bytes other_bytes_;

  ItemSummary summary_;
  Bytes last_key_;
  std::vector<EntryView> heads_;
  // For encoding.
  std::vector<std::uint64_t> column_;
  std::vector<ByteView> strings_;
  Bytes rest_;
  Bytes encoded_;
};

}  // namespace edgecase::engine
