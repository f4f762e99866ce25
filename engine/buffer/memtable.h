// Recent writes in memory, backed by the WAL. One writer at a time (the commit leader); any number
// of readers beside it. Entries become visible to a reader whose `visible` sequence covers them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "edgecase/engine.h"

namespace edgecase::engine {

struct MemtableNode;

class Memtable {
 public:
  // Sized for `expected_bytes` in all; grows beyond when it must.
  explicit Memtable(std::uint64_t expected_bytes = 0);
  ~Memtable();
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // `sequence` is greater than that of every entry before it. Entries of namespaces with
  // GroupCodec::Series that come in order are kept as strips (series_strips.h). It is no
  // range.
  void add(const BatchEntry& entry, SequenceNumber sequence, GroupCodec codec);
  void add(NamespaceId namespace_id, ByteView key, SequenceNumber sequence, EntryKind kind,
           ByteView value, GroupCodec codec = GroupCodec::Plain, ByteView end = {}) {
    add({kind, namespace_id, key, value, end}, sequence, codec);
  }

  // An entry that is in memory whole and that nobody finds yet: its place is fetched from memory
  // meanwhile. Of a namespace with GroupCodec::Plain, `is_small()`; drafts are added in the order
  // they were made in, before anything else is; or, of one alone, discarded.
  struct Draft {
    MemtableNode* node = nullptr;
    std::uint64_t hash = 0;
    std::uint32_t user_bytes = 0;  // key and value
  };
  static bool is_small(ByteView key, ByteView value);
  Draft draft(NamespaceId namespace_id, ByteView key, EntryKind kind, ByteView value);
  void add(const Draft& draft, SequenceNumber sequence);
  void discard(const Draft& draft);

  // As add(), for what hides older entries. get() and cursors do not look at it.
  void add_range_delete(RangeDelete range_delete);
  // Null when there are none: then this costs one load.
  std::shared_ptr<const RangeDeleteLayers> range_deletes() const;
  // In the order of their sequences.
  std::vector<RangeDelete> range_delete_list() const;
  std::uint32_t range_delete_count() const;

  // The newest entry of the key with sequence <= visible.
  std::optional<FoundEntry> get(ByteView full_key, SequenceNumber visible) const;

  // Over [lower, upper) (empty upper: unbounded), the newest visible version of each key only. The
  // cursor keeps the memtable alive and does not see what is added after its creation. What is not
  // newer than `newer_than` is passed over.
  static std::unique_ptr<EntryCursor> cursor(std::shared_ptr<const Memtable> memtable,
                                             ByteView lower, ByteView upper, Direction direction,
                                             SequenceNumber visible, SequenceNumber newer_than = 0);

  // Said when its entries are in tables that new views show.
  void set_written_out() { is_written_out_.store(true, std::memory_order_relaxed); }
  bool is_written_out() const { return is_written_out_.load(std::memory_order_relaxed); }

  std::uint64_t memory_bytes() const;  // what it occupies: entries, index, order
  std::uint64_t entry_count() const;
  SequenceNumber first_sequence() const;  // 0 when it is empty
  SequenceNumber last_sequence() const;

 private:
  void count_entry(SequenceNumber sequence);
  Draft make_node(NamespaceId namespace_id, ByteView key, EntryKind kind, ByteView value,
                  ByteView end);
  void place_node(const Draft& draft, SequenceNumber sequence);

  class Inside;
  std::unique_ptr<Inside> inside_;
  std::atomic<bool> is_written_out_{false};
};

}  // namespace edgecase::engine
