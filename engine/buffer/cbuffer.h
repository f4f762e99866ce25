// The CBuffer: gathers small entries until one large item pays. Entries come in key order; a group
// is closed when it is full, and always before another scope or namespace begins.
// Use: while there are entries: if !takes(entry) { write entries(); clear(); } add(entry). Owned by
// one thread; copies what it is given, so its memory is one group's, unless that is lent.
#pragma once

#include <cstddef>
#include <span>
#include <vector>
#include "edgecase/status.h"

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

inline CBuffer::CBuffer(std::size_t group_bytes, std::size_t entries_max)
    : group_bytes_(group_bytes), entries_max_(entries_max) {}

inline ByteView CBuffer::scope_of(ByteView full_key) const {
  return full_key.substr(0, kNamespacePrefixBytes + scope_bytes_);
}

inline void CBuffer::set_lent(bool lent) {
  EC_CHECK(empty());
  is_lent_ = lent;
}

inline bool CBuffer::takes(const EntryView& entry) const {
  if (empty()) return true;
  const std::size_t raw_bytes = added_bytes_ - size() * kNamespacePrefixBytes;
  if (raw_bytes >= group_bytes_ || size() >= entries_max_) return false;
  return scope_of(entry.full_key) == scope_of(first_key());
}

inline ByteView CBuffer::first_key() const {
  return is_lent_ ? views_.front().full_key : ByteView(bytes_).substr(0, slots_.front().key_size);
}

inline void CBuffer::add(const EntryView& entry) {
  const ByteView value = entry.kind == EntryKind::Put ? entry.value : ByteView();
  added_bytes_ += entry.full_key.size() + value.size();
  if (is_lent_) {
    views_.push_back({entry.full_key, entry.sequence, entry.kind, value});
    return;
  }
  slots_.push_back(
      {bytes_.size(), entry.full_key.size(), value.size(), entry.sequence, entry.kind});
  bytes_.append(entry.full_key).append(value);
}

inline std::span<const EntryView> CBuffer::entries() {
  if (is_lent_) return views_;
  views_.clear();
  views_.reserve(slots_.size());
  const ByteView bytes = bytes_;
  for (const Slot& slot : slots_)
    views_.push_back({bytes.substr(slot.offset, slot.key_size), slot.sequence, slot.kind,
                      bytes.substr(slot.offset + slot.key_size, slot.value_size)});
  return views_;
}

inline void CBuffer::clear() {
  added_bytes_ = 0;
  bytes_.clear();
  slots_.clear();
  views_.clear();
}

}  // namespace edgecase::engine
