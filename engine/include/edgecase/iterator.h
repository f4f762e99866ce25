// Reading a range: Iterator, a cursor over one snapshot of one namespace's keys, in one direction,
// and what it hands out beside single entries: numbers in columns, summaries, large values in
// pieces.
//
// An iterator is owned by one thread. It keeps the tables it reads alive; close it soon. What is
// erased, or comes under a shorter rule, while it is open it passes over from its next step on
// (Engine::revocations()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase {

// A value that is read in pieces, for those that are too large to lie in memory as a whole. All of
// it was checked before it is given out, and each piece is the one that was checked. Owned by one
// thread; keeps what it reads alive, as its iterator does: let go of it soon.

inline constexpr std::size_t kLargeValuePieceBytes = 64u << 10;
inline constexpr std::uint64_t kNoLargeValues = UINT64_MAX;

class LargeValue {
 public:
  virtual ~LargeValue() = default;

  virtual std::uint64_t size_bytes() const = 0;
  // Tells values of one key apart: another one that was put later has another.
  virtual std::uint64_t sequence() const = 0;
  // What comes next, at most kLargeValuePieceBytes, until the next call; the first piece has a KiB
  // at least, where the value has, and an empty one is the end. May read a drive. NotFound: it was
  // erased, or has come under a shorter rule, since.
  virtual Result<ByteView> next_piece() = 0;
};

enum class Direction : unsigned char { Forward, Reverse };

// Half open: `lower` included, `upper` not; an empty `upper` is unbounded.
struct KeyRange {
  Bytes lower;
  Bytes upper;
};

// Numbers of one series side by side, in the iterator's order: keys that are alike but for their
// last 8 bytes, values with the same tag. What Iterator::take_numbers() fills.
struct NumberColumns {
  // No more are taken at once.
  static constexpr std::size_t kMax = 4096;

  std::vector<std::uint64_t> ordinals;  // the last 8 bytes of the keys, big-endian
  std::vector<std::uint64_t> bits;      // what the values have behind their tag, little-endian
  bool is_float = true;                 // the tag: kFloatTag, else kIntegerTag

  std::size_t size() const { return ordinals.size(); }
  bool empty() const { return ordinals.empty(); }
  void clear() {
    ordinals.clear();
    bits.clear();
  }
};

enum class NumberType : unsigned char { Float, Integer };

// What is known of many entries of one series (GroupCodec::Series) without reading their values.
// Numbers are the bits of a double or of a signed integer, as `type` says.
struct NumberSummary {
  NumberType type = NumberType::Float;
  std::uint64_t count = 0;
  // The last 8 bytes of the first and of the last key, big-endian; the numbers there.
  std::uint64_t first_ordinal = 0;
  std::uint64_t last_ordinal = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  // No double among them is a zero of another sign than some other one.
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  // Integers: exact. Doubles: `sum` + `sum_low`, unrounded, at most (count * 2^-52)^2 of the sum of
  // their magnitudes off the exact one.
  std::uint64_t sum = 0;
  double sum_low = 0;
};

// What the doubles of one group come to in windows of equal length of the last 8 bytes of their
// keys: windows begin where dividing these by `every` leaves `phase`. One without a double is left
// out.
struct WindowSums {
  struct Window {
    std::uint32_t number = 0;  // from 0 on, where the group begins
    std::uint32_t count = 0;
    double sum = 0;  // as NumberSummary has it
    double sum_low = 0;
  };

  std::uint64_t every = 1;
  std::uint64_t phase = 0;
  std::uint64_t first_ordinal = 0;
  std::uint64_t last_ordinal = 0;
  std::vector<Window> windows;

  // Nothing of the group lies in that window before it.
  std::uint64_t begin_of(std::size_t window) const {
    const std::uint64_t into = (first_ordinal % every + (every - phase)) % every;
    return window == 0 ? first_ordinal : first_ordinal - into + windows[window].number * every;
  }
};

// What Iterator::take_window_sums() has taken.
enum class TakenSums : unsigned char { Nothing, Numbers, Sums };

// Whether a summary will do in place of what it is of.
using SummaryTest = std::function<bool(const NumberSummary& summary)>;

class Iterator {
 public:
  virtual ~Iterator() = default;

  // Positioned on an entry. False at the end and after an error: look at status().
  virtual bool valid() const = 0;
  virtual void next() = 0;
  // To the first entry at or after (Reverse: at or before) `key`, within the range; may go either
  // way.
  virtual void seek(ByteView key) = 0;
  // Only when valid(); until the next call of next() or seek(). value() may read a drive: after it,
  // valid() may have become false with status() telling why, and what it returned is empty.
  virtual ByteView key() const = 0;
  virtual ByteView value() = 0;
  // With ReadOptions::large_value_bytes: the value, where it has so many bytes or more; value() is
  // empty then. Null: value() has it. Reads all of it once, to check it. Corruption, IoError,
  // Unavailable as value(); NotFound: it was erased since. Good for as long as the engine is there.
  virtual Result<std::unique_ptr<LargeValue>> large_value() {
    return std::unique_ptr<LargeValue>();
  }
  // For speed, in place of key(), value() and next(): the current entry and those behind it, as far
  // as they are numbers of one series, their keys lie before `end` (Reverse: behind it; empty: no
  // bound), and they are to be had without reading on. They are what one would have got one by
  // one; what is revoked afterwards is the caller's to drop. The iterator then stands behind them.
  // 0: none were taken; where it is valid() still, its entry is to be had by value().
  virtual std::size_t take_numbers(ByteView /*end*/, NumberColumns& columns) {
    columns.clear();
    return 0;
  }
  // The place of the entry in the order of commits (Engine::committed()). Only when valid().
  virtual std::uint64_t position() const = 0;
  // With ReadOptions::summaries, only when valid(): whether it stood on the first entry (Reverse:
  // the last) of a group that nothing else cuts (no newer entry, delete, erasure or expiry), whose
  // keys all lie before `end` (Reverse: behind it; empty: no bound), of which `summary` is known,
  // and `wanted`, where there is such a test; it is behind the group then, and no drive of values
  // was asked. False: it stands on an entry whose value is at hand, as valid() and key() now say:
  // what is damaged (ReadOptions::on_damage) it has stepped over. Ask this before value(),
  // large_value() and position() of each entry.
  virtual bool take_summary(ByteView /*end*/, NumberSummary& /*summary*/,
                            const SummaryTest& /*wanted*/ = {}) {
    return false;
  }
  // As take_summary(), of a group that several windows share, forward alone. Sums: it is behind the
  // group, what that was summed up to is kept for whoever asks again, and often no drive of values
  // was asked. Numbers: it could not be summed up, and `columns` has what take_numbers() would have
  // given. Nothing: ask take_summary().
  virtual TakenSums take_window_sums(ByteView /*end*/, std::uint64_t /*every*/,
                                     std::uint64_t /*phase*/, WindowSums& /*sums*/,
                                     NumberColumns& /*columns*/) {
    return TakenSums::Nothing;
  }
  virtual const Status& status() const = 0;
};

}  // namespace edgecase
