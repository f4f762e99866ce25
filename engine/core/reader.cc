#include "core/reader.h"

#include <algorithm>
#include <utility>

#include "core/hidden.h"

namespace edgecase::engine {
FullKeyRange full_key_range(NamespaceId id, const KeyRange& range) {
  FullKeyRange full;
  full.lower = make_full_key(id, range.lower);
  if (!range.upper.empty()) {
    full.upper = make_full_key(id, range.upper);
  } else if (id != UINT32_MAX) {
    full.upper = make_full_key(id + 1, {});
  }
  return full;
}

namespace {

// The newest entry of a key that was found so far, and where.
struct Newest {
  bool is_there = false;
  FoundEntry entry;
  std::uint8_t level = 0;
  // The failure of a table that could not be read, and how new what it holds may be: something
  // newer counts all the same, something older never.
  Status failure = {};
  SequenceNumber failed_max = 0;
};

Status look_into_table(const TableMetadata& table, TableCache& tables, ByteView full_key,
                       bool fill_cache, Newest& newest) {
  if (!newest.is_there) {
    EC_ASSIGN_OR_RETURN(newest.is_there, tables.find(table, full_key, fill_cache, newest.entry));
    newest.level = table.level;
    return ok();
  }
  FoundEntry other;
  EC_ASSIGN_OR_RETURN(const bool is_there, tables.find(table, full_key, fill_cache, other));
  if (is_there && other.sequence > newest.entry.sequence) {
    newest.entry = std::move(other);
    newest.level = table.level;
  }
  return ok();
}

void look_into(const TableMetadata& table, TableCache& tables, ByteView full_key, bool fill_cache,
               Newest& newest) {
  Status looked = look_into_table(table, tables, full_key, fill_cache, newest);
  if (looked.ok()) return;
  if (newest.failure.ok()) newest.failure = std::move(looked);
  newest.failed_max = std::max(newest.failed_max, table.sequence_max);
}

// Tables come with the largest sequence first: behind one that can hold nothing newer than what was
// found nothing newer is found.
Status find_in_tables(const Version& version, TableCache& tables, ByteView full_key,
                      bool fill_cache, Newest& newest) {
  const auto is_older = [&newest](SequenceNumber sequence_max) {
    return newest.is_there && newest.entry.sequence > sequence_max;
  };
  for (const TablePointer& table : version.level0) {
    if (is_older(table->sequence_max)) break;
    look_into(*table, tables, full_key, fill_cache, newest);
  }
  const auto tree = version.trees.find(namespace_of(full_key));
  if (tree != version.trees.end()) {
    for (const Run& run : tree->second) {
      if (is_older(run.sequence_max)) break;
      if (const TablePointer* table = run.find(full_key))
        look_into(**table, tables, full_key, fill_cache, newest);
    }
  }
  if (newest.failure.ok() || (newest.is_there && newest.entry.sequence > newest.failed_max))
    return ok();
  return newest.failure;
}

bool find_in_memory(const ReadView& view, SequenceNumber visible, ByteView full_key,
                    FoundEntry& entry) {
  const auto look = [&](const Memtable& memtable) {
    auto found = memtable.get(full_key, visible);
    if (found) entry = *std::move(found);
    return found.has_value();
  };
  return look(*view.active) || std::any_of(view.immutables.begin(), view.immutables.end(),
                                           [&](const auto& memtable) { return look(*memtable); });
}

}  // namespace

Result<bool> find_entry(const VisibleView& at, TableCache& tables, ByteView full_key,
                        bool fill_cache, HitCounters& hits, FoundEntry& entry) {
  if (find_in_memory(*at.view, at.visible, full_key, entry)) {
    hits.memtables.fetch_add(1, std::memory_order_relaxed);
  } else {
    Newest newest;
    EC_TRY(find_in_tables(*at.view->version, tables, full_key, fill_cache, newest));
    if (!newest.is_there) return false;
    hits.levels[newest.level].fetch_add(1, std::memory_order_relaxed);
    entry = std::move(newest.entry);
  }
  // What is older than the entry that is hidden is hidden, too.
  return !is_hidden(at, full_key, entry.sequence);
}

}  // namespace edgecase::engine
