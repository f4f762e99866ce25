#include "buffer/cbuffer.h"

namespace edgecase::engine {

CBuffer::CBuffer(std::size_t group_bytes, std::size_t entries_max)
    : group_bytes_(group_bytes), entries_max_(entries_max) {}

ByteView CBuffer::scope_of(ByteView full_key) const {
  return full_key.substr(0, kNamespacePrefixBytes + scope_bytes_);
}

bool CBuffer::takes(const EntryView& entry) const {
  if (slots_.empty()) return true;
  const std::size_t raw_bytes = bytes_.size() - slots_.size() * kNamespacePrefixBytes;
  if (raw_bytes >= group_bytes_ || slots_.size() >= entries_max_) return false;
  const ByteView first_key = ByteView(bytes_).substr(0, slots_.front().key_size);
  return scope_of(entry.full_key) == scope_of(first_key);
}

void CBuffer::add(const EntryView& entry) {
  const ByteView value = entry.kind == EntryKind::Put ? entry.value : ByteView();
  slots_.push_back(
      {bytes_.size(), entry.full_key.size(), value.size(), entry.sequence, entry.kind});
  bytes_.append(entry.full_key).append(value);
}

std::span<const EntryView> CBuffer::entries() {
  views_.clear();
  views_.reserve(slots_.size());
  const ByteView bytes = bytes_;
  for (const Slot& slot : slots_)
    views_.push_back({bytes.substr(slot.offset, slot.key_size), slot.sequence, slot.kind,
                      bytes.substr(slot.offset + slot.key_size, slot.value_size)});
  return views_;
}

void CBuffer::clear() {
  bytes_.clear();
  slots_.clear();
  views_.clear();
}

}  // namespace edgecase::engine
