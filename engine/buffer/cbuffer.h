// The CBuffer: gathers small entries until one large item pays. Entries come in key order; a group
// is closed when it is full, and always before another scope or namespace begins.
// Use: while there are entries: if !takes(entry) { write entries(); clear(); } add(entry). Owned by
// one thread; copies what it is given, so its memory is one group's, unless that is lent.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"

namespace edgecase::engine {

class CBuffer {
 public:
  // Closed at `group_bytes` of keys and values, or at `entries_max`.
  CBuffer(std::size_t group_bytes, std::size_t entries_max);

  // Leading bytes of a user key that make its scope; from the next group on.
  void set_scope_bytes(std::size_t scope_bytes) { scope_bytes_ = scope_bytes; }

  // While it is empty: whether what is added stays where it is until clear().
  void set_lent(bool lent);

  // Whether `entry` belongs to the group that is open. An empty buffer takes anything.
  bool takes(const EntryView& entry) const;
  void add(const EntryView& entry);

  bool empty() const { return slots_.empty() && views_.empty(); }
  // Views of what was lent, or else of the CBuffer's own memory, until the next add() or clear().
  std::span<const EntryView> entries();
  void clear();

 private:
  struct Slot {
    std::size_t offset = 0;  // in bytes_: full key, then value
    std::size_t key_size = 0;
    std::size_t value_size = 0;
    SequenceNumber sequence = 0;
    EntryKind kind = EntryKind::Put;
  };

  ByteView scope_of(ByteView full_key) const;
  std::size_t size() const { return is_lent_ ? views_.size() : slots_.size(); }
  ByteView first_key() const;

  const std::size_t group_bytes_;
  const std::size_t entries_max_;
  std::size_t scope_bytes_ = 0;
  bool is_lent_ = false;
  std::size_t added_bytes_ = 0;  // of full keys and values
  Bytes bytes_;                  // copied
  std::vector<Slot> slots_;      // the same
  std::vector<EntryView> views_;
};

}  // namespace edgecase::engine
