// The orders in which a memtable's entries are found: an index by key, and runs that a flush sorts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/entry.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

// One entry of a memtable as it lies in the arena: this head, then the full key, then the value.
// Everything but `next` is written before the node is published and never after.
struct MemtableNode {
  const MemtableNode* older = nullptr;             // the entry of this key before this one
  std::atomic<const MemtableNode*> next{nullptr};  // in the order of writing
  std::uint64_t sequence_and_kind = 0;             // sequence * 4 + kind
  std::uint32_t value_bytes = 0;
  std::uint16_t key_bytes = 0;

  SequenceNumber sequence() const { return sequence_and_kind >> 2; }
  EntryKind kind() const { return static_cast<EntryKind>(sequence_and_kind & 3); }
  ByteView full_key() const { return {data(), key_bytes}; }
  ByteView value() const { return {data() + key_bytes, value_bytes}; }

  const char* data() const { return reinterpret_cast<const char*>(this) + sizeof(MemtableNode); }
  char* data() { return reinterpret_cast<char*>(this) + sizeof(MemtableNode); }
};
static_assert(sizeof(MemtableNode) == 32);

// MemtableIndex leads from a full key to its newest entry: an open-addressing hash table beside the
// arena.
//
// One writer; any number of readers beside it without a lock. Invariants: a slot goes from empty to
// a node, then only to newer nodes of the same key; a table that has become too small is kept until
// the index goes, because a reader may still be in it; whoever learned of a sequence number through
// an acquire finds every node up to it.
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

// By full key; among equal keys the newest first.
using SortedRun = std::vector<const MemtableNode*>;

// The order of a memtable, made when somebody asks for it: entries written since the last time are
// sorted into a run, and runs of similar size are merged, so that there are few and an entry is
// moved only a logarithmic number of times. Writers pay nothing. Thread-safe.
class SortedRuns {
 public:
  // Runs that together hold every node reached from `oldest` whose sequence is at most `visible`
  // (and maybe newer ones), and that is newer than `newer_than` (and maybe others). `oldest` is the
  // same at every call; the first makes room for `expected` nodes.
  std::vector<std::shared_ptr<const SortedRun>> through(const MemtableNode* oldest,
                                                        SequenceNumber visible,
                                                        std::uint64_t expected,
                                                        SequenceNumber newer_than = 0);

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  void add_run(SortedRun run) EC_REQUIRES(mutex_);
  std::vector<std::shared_ptr<const SortedRun>> newer_runs(SequenceNumber newer_than) const
      EC_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<std::shared_ptr<const SortedRun>> runs_ EC_GUARDED_BY(mutex_);  // old to new
  std::vector<SequenceNumber> newest_ EC_GUARDED_BY(mutex_);                  // of runs_
  const MemtableNode* covered_ EC_GUARDED_BY(mutex_) = nullptr;  // the newest node in a run
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace edgecase::engine
