// ViewSources: the memtables and tables that a read of many keys merges, of each run those tables
// that meet the range. Owned by one thread.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/merge_cursor.h"
#include "core/read_view.h"
#include "core/reader.h"
#include "table/cursor_pool.h"

namespace edgecase::engine {

class ViewSources final : public MergeSources {
 public:
  // `range` lies within one namespace.
  ViewSources(const VisibleView& at, TableCache& tables, const FullKeyRange& range,
              Direction direction, bool fill_cache, std::uint64_t large_value_bytes);

  std::span<const MergeSource> all() const override { return sources_; }
  EntryCursor& open(std::size_t index) override;

 private:
  // One of the two.
  struct Place {
    const std::shared_ptr<Memtable>* memtable = nullptr;
    std::span<const TablePointer> tables;
  };

  void add(const std::shared_ptr<Memtable>& memtable);
  void add(std::span<const TablePointer> tables, SequenceNumber sequence_min,
           SequenceNumber sequence_max);

  const VisibleView at_;
  const FullKeyRange range_;
  const Direction direction_;
  const bool fill_cache_;
  const std::uint64_t large_value_bytes_;
  std::vector<MergeSource> sources_;
  std::vector<Place> places_;  // of sources_
  // The tables that hold something newer, of each run that is read by positions.
  std::deque<std::vector<TablePointer>> newer_;
  std::vector<std::unique_ptr<EntryCursor>> memtables_;
  LentCursors runs_;
};

}  // namespace edgecase::engine
