// Writing: WriteBatch, puts and deletes applied atomically (all or none survive, and no reader sees
// a part), and CommitCompanion, who adds a batch of its own to what others commit.
//
// A batch is owned by one thread. Its encoding is also the payload of a WAL record
// (base/write_batch.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase {

namespace engine {
enum class EntryKind : unsigned char;
struct BatchEntry;
}  // namespace engine

using NamespaceId = std::uint32_t;

class WriteBatch {
 public:
  // What is copied, as all but the end of a value is, and that where it is shorter.
  static constexpr std::size_t kBorrowedMinBytes = 64u << 10;

  // Keys and values are copied. Limits are checked by Engine::write.
  void put(NamespaceId namespace_id, ByteView key, ByteView value) {
    put(namespace_id, key, value, {});
  }
  // A value in two parts. `end` has to stay where it is until the batch is written or cleared: of
  // kBorrowedMinBytes or more, it is not copied.
  void put(NamespaceId namespace_id, ByteView key, ByteView value, ByteView end);
  void remove(NamespaceId namespace_id, ByteView key);
  // Everything in [lower, upper) that is older: what the batch itself put before, too. An empty
  // `upper` is unbounded. Costs one entry, however much it hides.
  void remove_range(NamespaceId namespace_id, ByteView lower, ByteView upper);
  // As remove_range(), and for good: what it hides no snapshot that is held shows either, and
  // Engine::erase() removes its bytes. Counts as a range delete.
  void erase_range(NamespaceId namespace_id, ByteView lower, ByteView upper);
  // What it brings about makes room, as an erasure does: on a full drive it finds what is kept for
  // those (Options::erasure_reserve_bytes). For little that somebody waits for.
  void set_makes_room() { makes_room_ = true; }
  void clear();
  // Room for about this many bytes of keys and values in `count` entries, so that it need not grow.
  void reserve(std::size_t count, std::size_t key_and_value_bytes);

  std::uint32_t count() const { return count_; }
  std::uint32_t range_deletes() const { return range_deletes_; }
  bool makes_room() const { return makes_room_; }  // set_makes_room(), or has an erase_range()
  // What kBatchSizeMaxBytes limits: every entry with its whole key. Not less than encoded_bytes().
  std::size_t size_bytes() const { return whole_bytes_; }
  std::size_t encoded_bytes() const { return used_ + borrowed_bytes_; }
  // The batch's own memory; clear() keeps it.
  std::size_t memory_bytes() const { return bytes_.capacity(); }
  // The encoding, but for the ends of values that are borrowed.
  ByteView encoded() const { return ByteView(bytes_).substr(0, used_); }
  struct Borrowed {
    std::size_t at = 0;  // of encoded(): it belongs before what lies there
    ByteView end;
  };
  // The entry of a batch of one put or delete that borrows nothing, without reading what encodes
  // it. What it points to holds until the batch is changed.
  engine::BatchEntry only_entry() const;
  // In the order of their places.
  const std::vector<Borrowed>& borrowed() const { return borrowed_; }
  // Set when a key or value over its limit was added; such a batch is refused whole.
  bool over_limit() const { return over_limit_; }
  // Every namespace in it, once.
  const std::vector<NamespaceId>& namespaces() const { return namespaces_; }

 private:
  bool note_namespace(NamespaceId namespace_id);
  char* room_for(std::size_t bytes);
  void add_range(engine::EntryKind kind, NamespaceId namespace_id, ByteView lower, ByteView upper);
  char* write_whole_key(char* out, engine::EntryKind kind, NamespaceId namespace_id, ByteView key);

  Bytes bytes_;  // the first `used_` are the encoding
  std::size_t used_ = 0;
  std::size_t whole_bytes_ = 0;
  std::vector<Borrowed> borrowed_;
  std::size_t borrowed_bytes_ = 0;
  // What is known of the last entry.
  Bytes last_key_;
  std::size_t head_bytes_ = 0;  // kind, namespace and key length, as without an entry before
  std::vector<NamespaceId> namespaces_;  // the last one used comes last
  std::uint32_t count_ = 0;
  std::uint32_t range_deletes_ = 0;
  bool makes_room_ = false;
  bool over_limit_ = false;
};

// Somebody who writes beside everybody else: asked at each group commit what it has to add, so that
// its entries and those of the group share one sync. At most one an engine (Engine::
// set_commit_companion).
class CommitCompanion {
 public:
  virtual ~CommitCompanion() = default;

  // Adds entries to `batch`, which is empty, or nothing. Called by the thread that commits, one
  // call at a time, after every batch of the group was handed to write(): what its callers said
  // before that can be in here. Must neither call the engine nor wait for who does. The batch comes
  // first in the group, is synced, and is applied whole or not at all, apart from the others.
  // Beside a batch that makes room it finds the room that one finds
  // (Options::erasure_reserve_bytes).
  virtual void add_to(WriteBatch& batch) = 0;

  // What became of what add_to() added; called after it where that was anything, and before any
  // writer of the group returns. Its entries are visible when these return.
  virtual void committed(const Status& status) = 0;
};

}  // namespace edgecase
