#include "compaction/garbage_probe.h"

#include <set>
#include <utility>

#include "base/entry.h"
#include "edgecase/random.h"
#include "table/record_cursor.h"

namespace edgecase::engine {
namespace {

// Entries that are looked up, each in the newer runs: a share is known to some 6 % then.
constexpr std::uint64_t kLookedUpMax = 64;
// At so many places of the table: neighbours cost less, but often live and die together.
constexpr std::uint64_t kPlaces = 4;

// Keys of a new table that are looked for in older runs, and how few of them say nothing. Some
// records apart at each place: near enough for one block of a run to tell of most of them.
constexpr std::size_t kNewPlaces = 4;
constexpr std::size_t kNewKeysPerPlace = 8;
constexpr std::size_t kRecordsApart = 4;
constexpr std::size_t kNewKeysMin = 8;
// After this many items of series in a row it is left at that.
constexpr std::size_t kSeriesMax = 4;

struct Sample {
  std::uint64_t looked_up = 0;
  std::uint64_t dead = 0;
};

// A few entries from where `cursor` stands on.
Status sample_place(TableCache& tables, const MergePlan& plan, RecordCursor& cursor,
                    std::uint64_t random, Sample& sample) {
  std::vector<RecordCursor> newer;
  for (const MergeInput& run : plan.newer_groups)
    newer.push_back(tables.records(run, cursor.record().first));
  for (std::uint64_t left = kLookedUpMax / kPlaces; left > 0 && cursor.valid();) {
    const std::uint64_t entries = cursor.record().entries;
    EC_TRY(cursor.open_item());
    if (cursor.is_destroyed()) {
      cursor.next_record();
      continue;
    }
    // Every so many, from one of the first on: a share, not a count, is asked for.
    const std::uint64_t step = (entries + left - 1) / left;
    const std::uint64_t first = random % step;
    for (std::uint64_t i = 0; i < entries; ++i) {
      if (i > 0) cursor.next_entry();
      EC_TRY(cursor.status());
      if (i % step != first || left == 0) continue;
      --left;
      ++sample.looked_up;
      const EntryView& entry = cursor.entry();
      const SoughtKey key(entry.full_key);
      for (RecordCursor& run : newer) {
        EC_ASSIGN_OR_RETURN(const bool superseded, run.supersedes(key, entry.sequence));
        if (!superseded) continue;
        ++sample.dead;
        break;
      }
    }
    cursor.next_record();
  }
  return cursor.status();
}

// Full keys, ascending.
Result<std::vector<Bytes>> choose_keys(TableCache& tables, const TablePointer& table,
                                       std::uint64_t random) {
  SeededRandom draws(random);
  std::set<Bytes> keys;
  std::size_t series = 0;
  for (std::size_t place = 0; place < kNewPlaces; ++place) {
    RecordCursor cursor = tables.records({table});
    cursor.select_any(draws.next());
    for (std::size_t i = 0; i < kNewKeysPerPlace * kRecordsApart && cursor.valid(); ++i) {
      if (i % kRecordsApart == 0) {
        const bool is_series = cursor.record().type == ItemType::SeriesGroup;
        series = is_series ? series + 1 : 0;
        if (!is_series) keys.emplace(cursor.record().first);
        if (series == kSeriesMax) return std::vector<Bytes>(keys.begin(), keys.end());
      }
      cursor.next_record();
    }
    EC_TRY(cursor.status());
  }
  return std::vector<Bytes>(keys.begin(), keys.end());
}

// Takes out of `keys` those that some table of a run has an entry of.
Status take_found(TableCache& tables, const MergeInput& run, std::vector<Bytes>& keys) {
  if (keys.empty()) return ok();
  RecordCursor cursor = tables.records(run, keys.front());
  EC_TRY(cursor.status());
  std::vector<Bytes> left;
  for (Bytes& key : keys) {
    EC_ASSIGN_OR_RETURN(const bool found, cursor.supersedes(SoughtKey(key), 0));
    if (!found) left.push_back(std::move(key));
  }
  keys = std::move(left);
  return ok();
}

}  // namespace

Result<std::optional<double>> probe_replacing_share(TableCache& tables, const Version& version,
                                                    const TablePointer& table,
                                                    std::uint64_t random) {
  EC_ASSIGN_OR_RETURN(std::vector<Bytes> keys, choose_keys(tables, table, random));
  if (keys.size() < kNewKeysMin) return {std::nullopt};
  const auto all = static_cast<double>(keys.size());
  const std::set<NamespaceId> namespaces = [&] {
    std::set<NamespaceId> of_keys;
    for (const Bytes& key : keys) of_keys.insert(namespace_of(key));
    return of_keys;
  }();
  for (const TablePointer& older : version.level0)
    if (older->sequence_max < table->sequence_min) EC_TRY(take_found(tables, {older}, keys));
  for (const NamespaceId id : namespaces) {
    const auto tree = version.trees.find(id);
    if (tree == version.trees.end()) continue;
    for (const Run& run : tree->second) EC_TRY(take_found(tables, run.tables, keys));
  }
  return {1 - static_cast<double>(keys.size()) / all};
}

Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random) {
  if (plan.newer_groups.empty()) return 0.0;
  SeededRandom draws(random);
  Sample sample;
  for (std::uint64_t place = 0; place < kPlaces; ++place) {
    RecordCursor cursor = tables.records(plan.groups.front());
    cursor.select_any(draws.next());
    EC_TRY(cursor.status());
    EC_TRY(sample_place(tables, plan, cursor, draws.next(), sample));
  }
  return sample.looked_up == 0
             ? 0.0
             : static_cast<double>(sample.dead) / static_cast<double>(sample.looked_up);
}

}  // namespace edgecase::engine
