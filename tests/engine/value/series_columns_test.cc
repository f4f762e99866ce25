#include "value/series_columns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/coding.h"
#include "base/ordinal.h"
#include "edgecase/engine.h"
#include "edgecase/random.h"
#include "support/test_seed.h"
#include "support/vector_cursor.h"
#include "value/group.h"

namespace edgecase::engine {
namespace {

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
