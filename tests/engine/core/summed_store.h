// SummedStore: a store of numbers in series groups that answers the same question value by value,
// by what is known of whole groups, and by sums of windows.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "engine/core/expiring_store.h"

namespace edgecase::test {

using engine::append_fixed64;
using engine::decode_fixed64;

inline Bytes value_of(double number) {
  Bytes value(1, kFloatTag);
  append_fixed64(value, std::bit_cast<std::uint64_t>(number));
  return value;
}
inline Bytes value_of(std::int64_t number) {
  Bytes value(1, kIntegerTag);
  append_fixed64(value, static_cast<std::uint64_t>(number));
  return value;
}
inline double as_double(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}

// What is known of the numbers of a range, in the order of their keys.
struct Known {
  std::uint64_t entries = 0;                           // others too
  std::optional<std::uint64_t> first, last, min, max;  // bits, of doubles
  double high = 0, low = 0, magnitude = 0;
  std::uint64_t integers = 0;  // their sum
  std::uint64_t taken = 0;     // groups, unread

  void add_double(std::uint64_t bits) {
    if (!min || as_double(bits) < as_double(*min)) min = bits;
    if (!max || as_double(bits) > as_double(*max)) max = bits;
  }
  void add(std::uint64_t bits) {
    if (!first) first = bits;
    last = bits;
    add_double(bits);
    add_sum(as_double(bits));
    magnitude += std::fabs(as_double(bits));
  }
  void add_sum(double number) {
    const double next = high + number;
    const double of_number = next - high;
    low += (high - (next - of_number)) + (number - of_number);
    high = next;
  }
};

struct SummedStore : EngineFixture {
  explicit SummedStore(bool encrypted = false) {
    options.group_bytes = 4096;
    options.memtable_bytes = 256u << 10;
    if (encrypted) {
      SecretKey key;
      key.fill(7);
      options.encryption = MasterKeys{key};
    }
    REQUIRE(open().ok());
    id = make_namespace("plant", {Placement::Values, GroupCodec::Series, 1});
  }

  void fill(const std::string& part, int count, double start = 20) {
    WriteBatch batch;
    for (int i = 0; i < count; ++i)
      batch.put(id, key_at(part, kStartNs + i * kSecond), value_of(start + i % 9 / 10.0));
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  std::unique_ptr<Iterator> scan(const KeyRange& range, ReadOptions how, bool summaries) {
    how.summaries = summaries;
    auto iterator = engine->scan(id, range, how);
    REQUIRE(iterator.ok());
    return *std::move(iterator);
  }

  // `end`: the end of a window, before which (reverse: behind which) summaries count.
  Known ask(const KeyRange& range, const ReadOptions& how, bool summaries, ByteView end = {}) {
    Known known;
    const auto iterator = scan(range, how, summaries);
    while (iterator->valid()) {
      NumberSummary numbers;
      if (iterator->take_summary(end, numbers)) {
        known.entries += numbers.count;
        ++known.taken;
        if (numbers.type == NumberType::Integer) {
          known.integers += numbers.sum;
          continue;
        }
        const bool is_turned = how.direction == Direction::Reverse;
        if (!known.first) known.first = is_turned ? numbers.last : numbers.first;
        known.last = is_turned ? numbers.first : numbers.last;
        known.add_double(numbers.min);
        known.add_double(numbers.max);
        known.add_sum(as_double(numbers.sum));
        known.add_sum(numbers.sum_low);
        continue;
      }
      if (!iterator->valid()) break;
      NumberColumns columns;
      if (summaries && iterator->take_numbers(end, columns) > 0) {
        known.entries += columns.size();
        for (const std::uint64_t bits : columns.bits) {
          if (columns.is_float) {
            known.add(bits);
          } else {
            known.integers += bits;
          }
        }
        continue;
      }
      const ByteView value = iterator->value();
      ++known.entries;
      if (value.size() == 9 && value.front() == kFloatTag) {
        known.add(decode_fixed64(value.data() + 1));
      } else if (value.size() == 9 && value.front() == kIntegerTag) {
        known.integers += decode_fixed64(value.data() + 1);
      }
      iterator->next();
    }
    INFO(iterator->status().to_string());
    REQUIRE(iterator->status().ok());
    return known;
  }

  // What windows of `every` add up to, by series and window; `sums`: as groups tell of them.
  // Answers how many groups did.
  using Windows = std::map<std::pair<Bytes, std::uint64_t>, Known>;
  std::uint64_t add_up(const KeyRange& range, const ReadOptions& how, std::uint64_t every,
                       std::uint64_t phase, bool sums, Windows& windows) {
    std::uint64_t told = 0;
    const auto iterator = scan(range, how, sums);
    const auto window_of = [&](std::uint64_t ordinal, const Bytes& part) -> Known& {
      return windows[{part, (ordinal + every - phase) / every}];
    };
    while (iterator->valid()) {
      const Bytes part(iterator->key().substr(0, iterator->key().size() - 8));
      WindowSums of_group;
      NumberColumns columns;
      const TakenSums taken = iterator->take_window_sums({}, every, phase, of_group, columns);
      if (taken == TakenSums::Sums) {
        ++told;
        for (std::size_t i = 0; i < of_group.windows.size(); ++i) {
          Known& known = window_of(of_group.begin_of(i), part);
          known.entries += of_group.windows[i].count;
          known.add_sum(of_group.windows[i].sum);
          known.add_sum(of_group.windows[i].sum_low);
        }
        continue;
      }
      if (taken == TakenSums::Nothing && iterator->valid() &&
          iterator->take_numbers({}, columns) == 0) {
        if (iterator->valid()) iterator->next();
        continue;
      }
      for (std::size_t i = 0; i < columns.size() && columns.is_float; ++i) {
        Known& known = window_of(columns.ordinals[i], part);
        ++known.entries;
        known.add_sum(as_double(columns.bits[i]));
      }
    }
    REQUIRE(iterator->status().ok());
    return told;
  }

  // Both ways, and once more by what the first time has kept.
  std::uint64_t compare_windows(const KeyRange& range, const ReadOptions& how) {
    std::uint64_t told = 0;
    for (const std::uint64_t phase : {0ul, 7'300'000'000ul}) {
      const std::uint64_t every = 60 * kSecond;
      Windows want;
      CHECK(add_up(range, how, every, phase, false, want) == 0);
      for (int round = 0; round < 2; ++round) {
        Windows got;
        told += add_up(range, how, every, phase, true, got);
        REQUIRE(got.size() == want.size());
        for (const auto& [window, known] : got) {
          CHECK(known.entries == want[window].entries);
          if (std::isfinite(known.low))
            CHECK(known.high + known.low == want[window].high + want[window].low);
        }
      }
    }
    return told;
  }

  // Both ways. Answers how many groups were not read.
  std::uint64_t compare(const KeyRange& range, const ReadOptions& how, ByteView end = {}) {
    if (how.direction == Direction::Forward) compare_windows(range, how);
    const Known want = ask(range, how, false);
    const Known got = ask(range, how, true, end);
    CHECK(want.taken == 0);
    CHECK(got.entries == want.entries);
    CHECK(got.first == want.first);
    CHECK(got.last == want.last);
    CHECK(got.min == want.min);
    CHECK(got.max == want.max);
    CHECK(got.integers == want.integers);
    const double n = static_cast<double>(want.entries);
    const double off = (got.high - want.high) + (got.low - want.low);
    CHECK(std::fabs(off) <= 2 * (n * 0x1p-52) * (n * 0x1p-52) * want.magnitude);
    return got.taken;
  }

  NamespaceId id = 0;
};

}  // namespace edgecase::test
