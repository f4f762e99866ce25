#include "compaction/garbage_probe.h"

#include "table/record_cursor.h"

namespace edgecase::engine {
namespace {

// Entries of the sampled group that are looked up: each look-up opens a group of a newer run.
constexpr std::uint64_t kLookedUpMax = 32;

}  // namespace

Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random) {
  std::vector<RecordCursor> newer;
  for (const MergeInput& run : plan.newer_groups) newer.push_back(tables.records(run));
  if (newer.empty()) return 0.0;
  RecordCursor sample = tables.records(plan.groups.front());
  sample.select_any(random);
  EC_TRY(sample.status());
  const std::uint64_t entries = sample.record().entries;
  EC_TRY(sample.open_item());
  // Every so many, from one of the first on: a share, not a count, is asked for.
  const std::uint64_t step = (entries + kLookedUpMax - 1) / kLookedUpMax;
  const std::uint64_t first = (random >> 16) % step;
  std::uint64_t looked_up = 0;
  std::uint64_t dead = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    if (i > 0) sample.next_entry();
    EC_TRY(sample.status());
    if (i % step != first) continue;
    ++looked_up;
    const EntryView& entry = sample.entry();
    for (RecordCursor& cursor : newer) {
      EC_ASSIGN_OR_RETURN(const bool superseded, cursor.supersedes(entry.full_key, entry.sequence));
      if (!superseded) continue;
      ++dead;
      break;
    }
  }
  return looked_up == 0 ? 0.0 : static_cast<double>(dead) / static_cast<double>(looked_up);
}

}  // namespace edgecase::engine
