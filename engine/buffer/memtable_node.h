// One entry of a memtable as it lies in the arena: this head, then the full key, then the value.
// Everything but `next` is written before the node is published and never after.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/entry.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
