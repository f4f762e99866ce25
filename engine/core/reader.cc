#include "core/reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/read_view.h"

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

ViewSources::ViewSources(const VisibleView& at, TableCache& tables, const FullKeyRange& range,
                         Direction direction, bool fill_cache, std::uint64_t large_value_bytes)
    : at_(at),
      range_(range),
      direction_(direction),
      fill_cache_(fill_cache),
      large_value_bytes_(large_value_bytes),
      runs_(tables.lend_cursors()) {
  if (range_.empty()) return;
  const ReadView& view = *at_.view;
  const Version& version = *view.version;
  const auto tree = version.trees.find(namespace_of(range_.lower));
  const std::size_t runs = tree == version.trees.end() ? 0 : tree->second.size();
  const std::size_t count = 1 + view.immutables.size() + version.level0.size() + runs;
  sources_.reserve(count);
  places_.reserve(count);
  add(view.active);
  for (const auto& memtable : view.immutables) add(memtable);
  for (const TablePointer& table : version.level0)
    add({&table, 1}, table->sequence_min, table->sequence_max);
  if (runs == 0) return;
  for (const Run& run : tree->second) add(run.tables, run.sequence_min, run.sequence_max);
}

// What comes into it later is not visible.
void ViewSources::add(const std::shared_ptr<Memtable>& memtable) {
  if (memtable->entry_count() == 0 || memtable->last_sequence() <= at_.newer_than) return;
  places_.push_back({&memtable, {}});
  sources_.push_back({{}, {}, memtable->first_sequence(), memtable->last_sequence()});
}

void ViewSources::add(std::span<const TablePointer> tables, SequenceNumber sequence_min,
                      SequenceNumber sequence_max) {
  const auto begin = std::partition_point(
      tables.begin(), tables.end(),
      [this](const TablePointer& table) { return table->largest < range_.lower; });
  const auto end = std::partition_point(begin, tables.end(), [this](const TablePointer& table) {
    return range_.upper.empty() || table->smallest < range_.upper;
  });
  if (begin == end || sequence_max <= at_.newer_than) return;
  std::span<const TablePointer> wanted(begin, end);
  if (at_.newer_than > 0) {
    std::vector<TablePointer>& newer = newer_.emplace_back();
    std::copy_if(begin, end, std::back_inserter(newer), [this](const TablePointer& table) {
      return table->sequence_max > at_.newer_than;
    });
    if (newer.empty()) return;
    wanted = newer;
  }
  const Bytes& smallest = wanted.front()->smallest;
  const Bytes& largest = wanted.back()->largest;
  places_.push_back({nullptr, wanted});
  sources_.push_back(
      {std::max<ByteView>(smallest, range_.lower),
       range_.upper.empty() ? ByteView(largest) : std::min<ByteView>(largest, range_.upper),
       sequence_min, sequence_max});
}

EntryCursor& ViewSources::open(std::size_t index) {
  const Place& place = places_[index];
  if (place.memtable == nullptr)
    return runs_.open(place.tables, {range_.lower, range_.upper, direction_, fill_cache_,
                                     large_value_bytes_, at_.newer_than});
  memtables_.push_back(Memtable::cursor(*place.memtable, range_.lower, range_.upper, direction_,
                                        at_.visible, at_.newer_than));
  return *memtables_.back();
}

}  // namespace edgecase::engine
