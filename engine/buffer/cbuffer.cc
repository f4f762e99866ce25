#include "buffer/cbuffer.h"

#include "base/check.h"

namespace edgecase::engine {

CBuffer::CBuffer(std::size_t group_bytes, std::size_t entries_max)
    : group_bytes_(group_bytes), entries_max_(entries_max) {}

ByteView CBuffer::scope_of(ByteView full_key) const {
  return full_key.substr(0, kNamespacePrefixBytes + scope_bytes_);
}

void CBuffer::set_lent(bool lent) {
  EC_CHECK(empty());
  is_lent_ = lent;
}

bool CBuffer::takes(const EntryView& entry) const {
  if (empty()) return true;
  const std::size_t raw_bytes = added_bytes_ - size() * kNamespacePrefixBytes;
  if (raw_bytes >= group_bytes_ || size() >= entries_max_) return false;
  return scope_of(entry.full_key) == scope_of(first_key());
}

ByteView CBuffer::first_key() const {
  return is_lent_ ? views_.front().full_key : ByteView(bytes_).substr(0, slots_.front().key_size);
}

void CBuffer::add(const EntryView& entry) {
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

std::span<const EntryView> CBuffer::entries() {
  if (is_lent_) return views_;
  views_.clear();
  views_.reserve(slots_.size());
  const ByteView bytes = bytes_;
  for (const Slot& slot : slots_)
    views_.push_back({bytes.substr(slot.offset, slot.key_size), slot.sequence, slot.kind,
                      bytes.substr(slot.offset + slot.key_size, slot.value_size)});
  return views_;
}

void CBuffer::clear() {
  added_bytes_ = 0;
  bytes_.clear();
  slots_.clear();
  views_.clear();
}

}  // namespace edgecase::engine
