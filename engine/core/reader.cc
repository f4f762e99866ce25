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

// Tables come with the largest sequence first: behind one that can hold nothing newer than what was
// found nothing newer is found.
Result<std::optional<FoundEntry>> find_in_tables(const Version& version, TableCache& tables,
                                                 ByteView full_key, bool fill_cache,
                                                 std::uint8_t& level) {
  std::optional<FoundEntry> best;
  const auto look_into = [&](const TablePointer& table) -> Status {
    EC_ASSIGN_OR_RETURN(std::optional<FoundEntry> found, tables.get(table, full_key, fill_cache));
    if (found && (!best || found->sequence > best->sequence)) {
      best = std::move(found);
      level = table->level;
    }
    return ok();
  };
  for (const TablePointer& table : version.level0) {
    if (best && best->sequence > table->sequence_max) break;
    if (full_key < ByteView(table->smallest) || full_key > ByteView(table->largest)) continue;
    EC_TRY(look_into(table));
  }
  const auto tree = version.trees.find(namespace_of(full_key));
  if (tree == version.trees.end()) return best;
  for (const Run& run : tree->second) {
    if (best && best->sequence > run.sequence_max) break;
    if (const TablePointer* table = run.find(full_key)) EC_TRY(look_into(*table));
  }
  return best;
}

}  // namespace

namespace {

std::optional<FoundEntry> find_in_memory(const ReadView& view, SequenceNumber visible,
                                         ByteView full_key) {
  if (auto found = view.active->get(full_key, visible)) return found;
  for (const auto& memtable : view.immutables) {
    if (auto found = memtable->get(full_key, visible)) return found;
  }
  return std::nullopt;
}

Result<std::optional<FoundEntry>> find_any(const VisibleView& at, TableCache& tables,
                                           ByteView full_key, bool fill_cache, HitCounters& hits) {
  if (auto found = find_in_memory(*at.view, at.visible, full_key)) {
    hits.memtables.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  std::uint8_t level = 0;
  auto found = find_in_tables(*at.view->version, tables, full_key, fill_cache, level);
  if (found.ok() && *found) hits.levels[level].fetch_add(1, std::memory_order_relaxed);
  return found;
}

}  // namespace

Result<std::optional<FoundEntry>> find_entry(const VisibleView& at, TableCache& tables,
                                             ByteView full_key, bool fill_cache,
                                             HitCounters& hits) {
  auto found = find_any(at, tables, full_key, fill_cache, hits);
  // What is older than the entry that is hidden is hidden, too.
  if (found.ok() && *found && is_hidden(at, full_key, (*found)->sequence)) found->reset();
  return found;
}

}  // namespace edgecase::engine
