#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/coding.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "support/vector_cursor.h"
#include "value/group.h"
#include "value/series_columns.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

std::uint64_t at(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns) ^ std::uint64_t{1} << 63;
}

// Before which of the entries, one every `step_ns` from `begin_ns` on, the group ends first.
int first_cut(std::int64_t begin_ns, std::int64_t step_ns, int count,
              std::int64_t span_ns = kHour) {
  GroupCuts cuts(span_ns);
  for (int i = 0; i < count; ++i) {
    if (cuts.ends_before("series", at(begin_ns + i * step_ns), static_cast<std::uint64_t>(i)))
      return i;
    cuts.add("series", at(begin_ns + i * step_ns));
  }
  return -1;
}

TEST_CASE("groups of a dense series end at multiples of the span") {
  struct Case {
    std::int64_t begin_ns, step_ns;
    int want;
  };
  for (const Case& c :
       {Case{0, kSecond, 3600}, Case{1, kSecond, 3600}, Case{0, 28 * kSecond, 129},
        Case{0, 29 * kSecond, -1}, Case{3000 * kSecond, kSecond, 600},
        Case{3590 * kSecond, kSecond, 3610},  // ten are crumbs
        Case{-1000 * kSecond, kSecond, 1000}, Case{-kHour - 500 * kSecond, kSecond, 500}}) {
    CAPTURE(c.begin_ns);
    CAPTURE(c.step_ns);
    CHECK(first_cut(c.begin_ns, c.step_ns, 4000) == c.want);
  }
  CHECK(first_cut(0, kSecond, 4000, 0) == -1);
  CHECK(first_cut(0, kSecond, 4000, -1) == -1);
}

TEST_CASE("groups at both ends of time are cut where there is a next span") {
  CHECK(first_cut(INT64_MIN, kSecond, 4000) > 0);
  CHECK(first_cut(INT64_MAX - 3000 * kSecond, kSecond, 3000) != 0);
  GroupCuts cuts(kHour);
  cuts.add("series", at(INT64_MAX));
  CHECK_FALSE(cuts.ends_before("series", at(INT64_MAX), 1));
}

TEST_CASE("a long group ends before another series, a short one goes on") {
  GroupCuts cuts(kHour);
  cuts.add("series a", at(0));
  CHECK_FALSE(cuts.ends_before("series b", at(0), kOwnGroupMin - 1));
  CHECK(cuts.ends_before("series b", at(0), kOwnGroupMin));
  CHECK_FALSE(GroupCuts(0).ends_before("series b", at(0), kOwnGroupMin));
}

using test::OwnedEntry;

constexpr NamespaceId kSeriesNamespace = 7;

struct Series {
  Bytes prefix;  // of the full keys
  std::vector<SeriesEntry> entries;
};

std::vector<Series> some_series(SeededRandom& random) {
  std::vector<Series> all;
  SequenceNumber sequence = random.below(1000) + 1;
  for (char device = 0; device < 3; ++device) {
    for (char sensor = 0; sensor < 4; ++sensor) {
      Series series{make_full_key(kSeriesNamespace, Bytes{device, sensor}), {}};
      std::uint64_t ordinal = random.next() / 2;
      for (std::uint64_t n = random.below(60); n > 0; --n) {
        const std::uint64_t value_class = random.below(10) == 0 ? random.below(3) : 1;
        const std::uint64_t payload = value_class == 0 ? 0 : random.below(1000);
        series.entries.push_back({ordinal, sequence++ << 2 | value_class, payload});
        ordinal += 1'000'000'000 + (random.below(9) == 0 ? random.below(1000) : 0);
      }
      if (!series.entries.empty()) all.push_back(std::move(series));
    }
  }
  return all;
}

OwnedEntry owned(const Series& series, const SeriesEntry& entry) {
  OwnedEntry result;
  result.full_key = series.prefix + Bytes(8, '\0');
  store_ordinal(result.full_key.data() + series.prefix.size(), entry.ordinal);
  result.sequence = entry.sequence();
  if (entry.value_class() == SeriesClass::Delete) {
    result.kind = EntryKind::Delete;
    return result;
  }
  result.value.push_back(entry.value_class() == SeriesClass::Float ? kFloatTag : kIntegerTag);
  append_fixed64(result.value, entry.payload);
  return result;
}

struct WrittenColumns {
  Bytes group;
  Bytes first, last;
  std::uint64_t entries = 0, deletes = 0;
  SequenceNumber sequence_min = 0, sequence_max = 0;
  std::size_t heads = 0;

  bool operator==(const WrittenColumns&) const = default;
};

void write(SeriesColumns& columns, std::vector<WrittenColumns>& out) {
  WrittenColumns written;
  append_group(written.group, columns);
  const ItemSummary& summary = columns.summary();
  written.first = summary.first;
  written.last = summary.last;
  written.entries = summary.entries;
  written.deletes = summary.deletes;
  written.sequence_min = summary.sequence_min;
  written.sequence_max = summary.sequence_max;
  written.heads = columns.heads().size();
  out.push_back(std::move(written));
  columns.clear();
}

TEST_CASE("series columns: runs make the groups that single entries make") {
  const std::uint64_t seed = test::test_seed(31);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Series> all = some_series(random);
    if (all.empty()) continue;
    const std::size_t group_bytes = 200 + random.below(3000);
    const std::size_t entries_max = 20 + random.below(200);
    SeriesColumns columns(group_bytes, entries_max);
    columns.set_scope_bytes(1);

    std::vector<WrittenColumns> by_entry;
    for (const Series& series : all) {
      for (const SeriesEntry& entry : series.entries) {
        const OwnedEntry one = owned(series, entry);
        if (columns.add(one.view())) continue;
        write(columns, by_entry);
        REQUIRE(columns.add(one.view()));
      }
    }
    write(columns, by_entry);

    std::vector<WrittenColumns> by_run;
    for (const Series& series : all) {
      std::span<const SeriesEntry> rest = series.entries;
      while (!rest.empty()) {
        const std::size_t size = 1 + random.below(rest.size());
        const std::size_t taken = columns.add(SeriesRun{series.prefix, rest.first(size)});
        if (taken == 0) write(columns, by_run);
        rest = rest.subspan(taken);
      }
    }
    write(columns, by_run);
    REQUIRE(by_run.size() == by_entry.size());
    CHECK(by_run == by_entry);
  }
}

}  // namespace
}  // namespace edgecase::engine
