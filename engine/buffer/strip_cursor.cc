#include "buffer/memtable.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/coding.h"
#include "edgecase/engine.h"

namespace edgecase::engine {
namespace {

std::uint32_t size_of(const StripChunk& chunk) {
  return chunk.size.load(std::memory_order_acquire);
}

// The first entry of the lane for which `is_before` is false, as it is for all behind it. Looks
// from the end: what is asked for is mostly recent.
template <typename IsBefore>
StripPosition first_from(const StripLane& lane, const IsBefore& is_before) {
  StripPosition found;
  for (const StripChunk* chunk = lane.last.load(std::memory_order_acquire); chunk != nullptr;
       chunk = chunk->previous) {
    const SeriesEntry* const begin = chunk->entries();
    const std::uint32_t size = size_of(*chunk);
    const auto index =
        static_cast<std::uint32_t>(std::partition_point(begin, begin + size, is_before) - begin);
    if (index < size) found = {chunk, index};
    if (index > 0) break;
  }
  return found;
}

// Walks the lanes of a strip side by side, strip after strip.
class StripCursor final : public EntryCursor {
 public:
  using Strips = std::shared_ptr<const std::vector<const Strip*>>;

  StripCursor(std::shared_ptr<const void> owner, Strips strips, std::size_t from, std::size_t count,
              ByteView lower, ByteView upper, Direction direction, SequenceNumber visible,
              SequenceNumber newer_than)
      : owner_(std::move(owner)),
        strips_(std::move(strips)),
        from_(from),
        count_(count),
        lower_(lower),
        upper_(upper),
        direction_(direction),
        visible_(visible),
        newer_than_(newer_than) {
    if (direction_ == Direction::Forward) {
      go_to(0, lower_);
    } else {
      go_below(count_ - 1, upper_);
    }
  }

  bool valid() const override { return entry_ != nullptr; }
  const Status& status() const override { return status_; }
  ByteView full_key() const override { return key_; }
  Status load() override { return ok(); }
  SequenceNumber sequence() const override { return entry_->sequence(); }
  EntryKind kind() const override { return strip_kind(*entry_); }
  ByteView value() const override { return strip_value(*entry_, number_); }
  bool keeps_large_values() const override { return true; }  // no number is one

  void next() override {
    if (direction_ == Direction::Forward) {
      lanes_[lane_].next();
      settle_forward();
    } else {
      lanes_[lane_].previous();
      settle_reverse();
    }
  }

  SeriesRun take_run() override {
    const bool bounded = !upper_.empty() && at_ + 1 == count_;
    if (entry_ == nullptr || direction_ != Direction::Forward || bounded) return {};
    std::uint64_t end_ordinal = UINT64_MAX;
    for (std::size_t i = 0; i < kStripLanes; ++i) {
      const SeriesEntry* other = i == lane_ ? nullptr : lanes_[i].entry();
      if (other != nullptr) end_ordinal = std::min(end_ordinal, other->ordinal);
    }
    const std::uint32_t left = lanes_[lane_].left_in_chunk();
    std::uint32_t count = 0;
    while (count < left && entry_[count].ordinal < end_ordinal &&
           entry_[count].sequence() <= visible_ &&
           entry_[count].value_class() != SeriesClass::Other) {
      ++count;
    }
    if (count == 0) return {};
    const SeriesRun run{strip().prefix, {entry_, count}};
    lanes_[lane_].advance(count);
    settle_forward();
    return run;
  }

  std::size_t take_numbers(ByteView until, NumberRun& run) override {
    const std::size_t before = run.size();
    while (entry_ != nullptr && run.room() > 0 && strip().prefix == run.prefix) {
      if (!until.empty() && (direction_ == Direction::Forward ? key_ >= until : key_ <= until))
        break;
      const std::uint32_t count = numbers_in_lane(until, run);
      if (count == 0) break;
      for (std::uint32_t i = 0; i < count; ++i)
        run.add(entry_[i].ordinal, entry_[i].payload, entry_[i].sequence());
      if (direction_ == Direction::Forward) {
        lanes_[lane_].advance(count);
        settle_forward();
      } else {
        next();
      }
    }
    return run.size() - before;
  }

  void seek(ByteView full_key) override {
    const auto begin = strips_->begin() + static_cast<std::ptrdiff_t>(from_);
    const auto end = begin + static_cast<std::ptrdiff_t>(count_);
    const ByteView prefix = full_key.substr(0, (*begin)->prefix.size());
    auto found = std::lower_bound(begin, end, prefix, [](const Strip* strip, ByteView wanted) {
      return strip->prefix < wanted;
    });
    if (direction_ == Direction::Forward) {
      if (found == end) return finish();
      go_to(static_cast<std::size_t>(found - begin), std::max(full_key, ByteView(lower_)));
      return;
    }
    // Reverse: the last at or below `full_key`, which is the last before its successor.
    Bytes after(full_key);
    after.push_back('\0');
    if (!upper_.empty() && upper_ < after) after = upper_;
    if (found == end) --found;
    go_below(static_cast<std::size_t>(found - begin), after);
  }

 private:
  const Strip& strip() const { return *(*strips_)[from_ + at_]; }

  // How many numbers of the run's class follow one another in the lane, from the current entry on,
  // before any other lane's and before both bounds, as far as one chunk has them. The current entry
  // lies before `until`. Reverse: looks at no more than that.
  std::uint32_t numbers_in_lane(ByteView until, const NumberRun& run) const {
    const SeriesClass wanted = run.columns.is_float ? SeriesClass::Float : SeriesClass::Integer;
    if (entry_->value_class() != wanted) return 0;
    if (direction_ == Direction::Reverse) return 1;
    std::uint64_t end_ordinal = UINT64_MAX;  // of which the next settle_forward() looks
    for (std::size_t i = 0; i < kStripLanes; ++i) {
      const SeriesEntry* other = i == lane_ ? nullptr : lanes_[i].entry();
      if (other != nullptr) end_ordinal = std::min(end_ordinal, other->ordinal);
    }
    for (const ByteView bound : {until, at_ + 1 == count_ ? ByteView(upper_) : ByteView()}) {
      const std::size_t prefix_bytes = strip().prefix.size();
      if (bound.size() == prefix_bytes + kOrdinalKeyBytes && bound.starts_with(strip().prefix)) {
        end_ordinal = std::min(end_ordinal, load_ordinal(bound.data() + prefix_bytes));
      } else if (!bound.empty() && bound.substr(0, prefix_bytes) <= strip().prefix) {
        return 1;
      }
    }
    const auto left = static_cast<std::uint32_t>(
        std::min<std::size_t>(lanes_[lane_].left_in_chunk(), run.room()));
    std::uint32_t count = 1;
    while (count < left && entry_[count].ordinal < end_ordinal &&
           entry_[count].sequence() <= visible_ && entry_[count].value_class() == wanted) {
      ++count;
    }
    return count;
  }

  void finish() {
    entry_ = nullptr;
    lanes_.fill({});
  }

  // Forward, from the strip at `at`, to its first key at or after `lower`.
  void go_to(std::size_t at, ByteView lower) {
    at_ = at;
    enter_strip();
    const std::size_t prefix_bytes = strip().prefix.size();
    const bool all_above = lower <= strip().prefix;
    const bool all_below = !all_above && lower.substr(0, prefix_bytes) != strip().prefix;
    for (std::size_t i = 0; i < kStripLanes; ++i) {
      const StripLane& lane = strip().lanes[i];
      if (all_below) {
        lanes_[i] = {};
      } else {
        lanes_[i] =
            all_above ? first_of(lane) : first_at_or_after_key(lane, lower.substr(prefix_bytes));
        const SeriesEntry* const entry = lanes_[i].entry();
        if (entry != nullptr && entry->sequence() <= newer_than_)
          lanes_[i] = first_newer(lane, newer_than_);
      }
    }
    settle_forward();
  }

  // `rest` is a key behind the prefix, of any length: short ones sort before all they begin.
  static StripPosition first_at_or_after_key(const StripLane& lane, ByteView rest) {
    char bytes[kOrdinalKeyBytes] = {};
    std::copy_n(rest.begin(), std::min(rest.size(), kOrdinalKeyBytes), bytes);
    const std::uint64_t ordinal = load_ordinal(bytes);
    StripPosition found = first_at_or_after(lane, ordinal);
    const bool longer = rest.size() > kOrdinalKeyBytes;
    if (longer && found.entry() != nullptr && found.entry()->ordinal == ordinal) found.next();
    return found;
  }

  // Reverse, from the strip at `at`, to its last key before `upper` (empty: its last).
  void go_below(std::size_t at, ByteView upper) {
    at_ = at;
    enter_strip();
    const std::size_t prefix_bytes = strip().prefix.size();
    const bool all_below = upper.empty() || upper.substr(0, prefix_bytes) > strip().prefix;
    const bool all_above = !all_below && upper <= strip().prefix;
    for (std::size_t i = 0; i < kStripLanes; ++i) {
      const StripLane& lane = strip().lanes[i];
      if (all_above) {
        lanes_[i] = {};
      } else if (all_below) {
        lanes_[i] = last_of(lane);
      } else {
        lanes_[i] = first_at_or_after_key(lane, upper.substr(prefix_bytes));
        if (lanes_[i].entry() == nullptr) {
          lanes_[i] = last_of(lane);
        } else {
          lanes_[i].previous();
        }
      }
    }
    settle_reverse();
  }

  void enter_strip() {
    key_.assign(strip().prefix);
    key_.resize(strip().prefix.size() + kOrdinalKeyBytes);
  }

  // What is not visible yet stands at the end of a lane. Where two lanes have a key, the later one
  // has the newer entry; the other is passed over.
  void settle_forward() {
    for (;;) {
      const SeriesEntry* nearest = nullptr;
      for (std::size_t i = 0; i < kStripLanes; ++i) {
        const SeriesEntry* entry = lanes_[i].entry();
        if (entry == nullptr) continue;
        if (entry->sequence() > visible_) {
          lanes_[i] = {};
          continue;
        }
        if (nearest != nullptr && entry->ordinal > nearest->ordinal) continue;
        if (nearest != nullptr && entry->ordinal == nearest->ordinal) lanes_[lane_].next();
        nearest = entry;
        lane_ = i;
      }
      if (nearest != nullptr) {
        take(nearest);
        if (!upper_.empty() && at_ + 1 == count_ && key_ >= upper_) finish();
        return;
      }
      if (++at_ >= count_) return finish();
      enter_strip();
      for (std::size_t i = 0; i < kStripLanes; ++i) {
        const StripLane& lane = strip().lanes[i];
        lanes_[i] = newer_than_ == 0 ? first_of(lane) : first_newer(lane, newer_than_);
      }
    }
  }

  void settle_reverse() {
    for (;;) {
      const SeriesEntry* nearest = nullptr;
      for (std::size_t i = 0; i < kStripLanes; ++i) {
        const SeriesEntry* entry = lanes_[i].entry();
        while (entry != nullptr && entry->sequence() > visible_) {
          lanes_[i].previous();
          entry = lanes_[i].entry();
        }
        // All before it are older still.
        if (entry != nullptr && entry->sequence() <= newer_than_) {
          lanes_[i] = {};
          entry = nullptr;
        }
        if (entry == nullptr) continue;
        if (nearest != nullptr && entry->ordinal < nearest->ordinal) continue;
        if (nearest != nullptr && entry->ordinal == nearest->ordinal) lanes_[lane_].previous();
        nearest = entry;
        lane_ = i;
      }
      if (nearest != nullptr) {
        take(nearest);
        if (at_ == 0 && key_ < lower_) finish();
        return;
      }
      if (at_ == 0) return finish();
      --at_;
      enter_strip();
      for (std::size_t i = 0; i < kStripLanes; ++i) lanes_[i] = last_of(strip().lanes[i]);
    }
  }

  void take(const SeriesEntry* entry) {
    entry_ = entry;
    store_ordinal(key_.data() + key_.size() - kOrdinalKeyBytes, entry->ordinal);
  }

  std::shared_ptr<const void> owner_;  // keeps the arena
  Strips strips_;
  const std::size_t from_;
  const std::size_t count_;
  const Bytes lower_;
  const Bytes upper_;
  const Direction direction_;
  const SequenceNumber visible_;
  const SequenceNumber newer_than_;
  std::size_t at_ = 0;  // of the current strip, from `from_`
  std::array<StripPosition, kStripLanes> lanes_;
  std::size_t lane_ = 0;  // of the current entry
  const SeriesEntry* entry_ = nullptr;
  Bytes key_;
  mutable char number_[kTaggedBytes] = {};
  Status status_;
};

}  // namespace

EntryKind strip_kind(const SeriesEntry& entry) {
  return entry.value_class() == SeriesClass::Delete ? EntryKind::Delete : EntryKind::Put;
}

ByteView strip_value(const SeriesEntry& entry, char (&number)[kTaggedBytes]) {
  switch (entry.value_class()) {
    case SeriesClass::Delete: return {};
    case SeriesClass::Other: {
      const char* memory = reinterpret_cast<const char*>(entry.payload);
      std::uint64_t size = 0;
      std::memcpy(&size, memory, sizeof size);
      return {memory + sizeof size, size};
    }
    case SeriesClass::Float: number[0] = kFloatTag; break;
    case SeriesClass::Integer: number[0] = kIntegerTag; break;
  }
  std::memcpy(number + 1, &entry.payload, sizeof entry.payload);
  return {number, sizeof number};
}

void StripPosition::next() {
  advance(1);
}

void StripPosition::advance(std::uint32_t count) {
  index += count;
  if (index < size_of(*chunk)) return;
  chunk = chunk->next.load(std::memory_order_acquire);
  index = 0;
  if (chunk != nullptr && size_of(*chunk) == 0) chunk = nullptr;
}

void StripPosition::previous() {
  if (index > 0) {
    --index;
    return;
  }
  chunk = chunk->previous;
  if (chunk != nullptr) index = size_of(*chunk) - 1;
}

std::uint32_t StripPosition::left_in_chunk() const {
  return size_of(*chunk) - index;
}

StripPosition first_of(const StripLane& lane) {
  if (lane.last.load(std::memory_order_acquire) == nullptr) return {};
  return size_of(*lane.first) == 0 ? StripPosition{} : StripPosition{lane.first, 0};
}

StripPosition last_of(const StripLane& lane) {
  const StripChunk* chunk = lane.last.load(std::memory_order_acquire);
  // The newest chunk may not have its first entry yet.
  if (chunk != nullptr && size_of(*chunk) == 0) chunk = chunk->previous;
  return chunk == nullptr ? StripPosition{} : StripPosition{chunk, size_of(*chunk) - 1};
}

StripPosition first_at_or_after(const StripLane& lane, std::uint64_t ordinal) {
  return first_from(lane, [ordinal](const SeriesEntry& entry) { return entry.ordinal < ordinal; });
}

StripPosition first_newer(const StripLane& lane, SequenceNumber than) {
  return first_from(lane, [than](const SeriesEntry& entry) { return entry.sequence() <= than; });
}

std::unique_ptr<EntryCursor> make_strip_cursor(
    std::shared_ptr<const void> owner, std::shared_ptr<const std::vector<const Strip*>> strips,
    std::size_t from, std::size_t count, ByteView lower, ByteView upper, Direction direction,
    SequenceNumber visible, SequenceNumber newer_than) {
  return std::make_unique<StripCursor>(std::move(owner), std::move(strips), from, count, lower,
                                       upper, direction, visible, newer_than);
}

}  // namespace edgecase::engine
