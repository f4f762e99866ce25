#include "buffer/memtable_index.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "edgecase/random.h"

namespace edgecase::engine {
namespace {

constexpr int kPointerBits = 48;
constexpr std::uint64_t kPointerMask = (std::uint64_t{1} << kPointerBits) - 1;
constexpr std::size_t kCapacityMin = 1024;
// Full at 3/4: beyond, the way to an empty slot grows quickly.
constexpr std::size_t kFullNumerator = 3;
constexpr std::size_t kFullDenominator = 4;

const MemtableNode* node_of(std::uint64_t slot) {
  return reinterpret_cast<const MemtableNode*>(slot & kPointerMask);
}

std::uint64_t slot_of(const MemtableNode* node, std::uint64_t hash) {
  const auto address = reinterpret_cast<std::uint64_t>(node);
  EC_CHECK((address & ~kPointerMask) == 0);
  return address | hash << kPointerBits;
}

}  // namespace

MemtableIndex::MemtableIndex(std::size_t expected_entries) {
  const std::size_t capacity = expected_entries * kFullDenominator / kFullNumerator;
  current_.store(add_table(std::max(capacity, kCapacityMin)), std::memory_order_release);
}

MemtableIndex::Table* MemtableIndex::add_table(std::size_t capacity) {
  tables_.push_back(std::make_unique<Table>(capacity));
  used_.fetch_add(capacity * sizeof(Slot), std::memory_order_relaxed);
  return tables_.back().get();
}

MemtableIndex::Slot& MemtableIndex::locate(const Table& table, ByteView full_key,
                                           std::uint64_t hash) {
  std::size_t at = first_place(table, hash);
  for (;;) {
    Slot& slot = table.slots[at];
    const std::uint64_t content = slot.load(std::memory_order_acquire);
    if (content == 0) return slot;
    if ((content ^ hash << kPointerBits) >> kPointerBits == 0 &&
        node_of(content)->full_key() == full_key) {
      return slot;
    }
    if (++at == table.capacity) at = 0;
  }
}

const MemtableNode* MemtableIndex::find(ByteView full_key) const {
  const Table& table = *current_.load(std::memory_order_acquire);
  const Slot& slot = locate(table, full_key, hash_of(full_key));
  return node_of(slot.load(std::memory_order_acquire));
}

std::uint64_t MemtableIndex::hash_of(ByteView full_key) {
  static const std::uint64_t seed = system_random().next();
  return hash64(full_key, seed);
}

void MemtableIndex::fetch(std::uint64_t hash) const {
  const Table& table = *current_.load(std::memory_order_relaxed);
  __builtin_prefetch(&table.slots[first_place(table, hash)], 1);
}

bool MemtableIndex::place(Table& table, const MemtableNode* node, std::uint64_t hash,
                          MemtableNode* link) {
  Slot& slot = locate(table, node->full_key(), hash);
  const std::uint64_t before = slot.load(std::memory_order_relaxed);
  if (link != nullptr) link->older = node_of(before);
  slot.store(slot_of(node, hash), std::memory_order_release);
  return before == 0;
}

void MemtableIndex::insert(MemtableNode* node, std::uint64_t hash, const MemtableNode* oldest) {
  const Table& table = *current_.load(std::memory_order_relaxed);
  if ((keys_ + 1) * kFullDenominator > table.capacity * kFullNumerator) grow(oldest);
  if (place(*current_.load(std::memory_order_relaxed), node, hash, node)) ++keys_;
}

void MemtableIndex::grow(const MemtableNode* oldest) {
  Table* larger = add_table(2 * current_.load(std::memory_order_relaxed)->capacity);
  // In the order of writing: the newest entry of a key is placed last. The nodes lie one after
  // another in the arena, which is faster to walk than the old table's pointers.
  for (const MemtableNode* node = oldest; node != nullptr;
       node = node->next.load(std::memory_order_relaxed)) {
    place(*larger, node, hash_of(node->full_key()), nullptr);
  }
  current_.store(larger, std::memory_order_release);
}

}  // namespace edgecase::engine
