// MemtableIndex leads from a full key to its newest entry: an open-addressing hash table beside the
// arena.
//
// One writer; any number of readers beside it without a lock. Invariants: a slot goes from empty to
// a node, then only to newer nodes of the same key; a table that has become too small is kept until
// the index goes, because a reader may still be in it; whoever learned of a sequence number through
// an acquire finds every node up to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "buffer/memtable_node.h"

namespace edgecase::engine {

class MemtableIndex {
 public:
  // Room for `expected_entries` before it has to grow.
  explicit MemtableIndex(std::size_t expected_entries);

  // The newest node of `full_key`, or null.
  const MemtableNode* find(ByteView full_key) const;

  // Another one in each process: keys hold times that strangers choose.
  static std::uint64_t hash_of(ByteView full_key);
  // Where a key of this hash lies is in the cache when it is asked for, some time later.
  void fetch(std::uint64_t hash) const;
  // Makes `node`, of this hash, the newest of its key and links it to the one before. `oldest` is
  // the first node ever written, from which all but `node` are reached through `next`.
  void insert(MemtableNode* node, std::uint64_t hash, const MemtableNode* oldest);

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // A slot holds a pointer in its lower 48 bits and 16 bits of the key's hash above them, so that
  // most nodes of other keys are passed without being read. 0 is empty.
  using Slot = std::atomic<std::uint64_t>;
  struct Table {
    explicit Table(std::size_t size) : capacity(size), slots(new Slot[size]()) {}
    std::size_t capacity;
    std::unique_ptr<Slot[]> slots;
  };

  Table* add_table(std::size_t capacity);
  void grow(const MemtableNode* oldest);
  // Links and stores; answers whether the key is new to the table.
  static bool place(Table& table, const MemtableNode* node, std::uint64_t hash, MemtableNode* link);
  // The slot of the key, or the empty one where it would go.
  static std::size_t first_place(const Table& table, std::uint64_t hash) {
    // The upper half of the hash chooses the place, the lowest 16 bits are the tag.
    return static_cast<std::size_t>(((hash >> 32) * table.capacity) >> 32);
  }
  static Slot& locate(const Table& table, ByteView full_key, std::uint64_t hash);

  std::vector<std::unique_ptr<Table>> tables_;  // the last is current
  std::atomic<Table*> current_{nullptr};
  std::size_t keys_ = 0;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace edgecase::engine
