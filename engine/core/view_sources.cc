#include "core/view_sources.h"

#include <algorithm>
#include <iterator>

namespace edgecase::engine {

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
