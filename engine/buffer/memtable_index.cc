#include "buffer/memtable.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/machine.h"
#include "edgecase/status.h"

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

namespace {

constexpr std::size_t kRadixMin = 1024;  // fewer are sorted by comparing

bool comes_before(const MemtableNode* a, const MemtableNode* b) {
  const int order = a->full_key().compare(b->full_key());
  return order != 0 ? order < 0 : a->sequence() > b->sequence();
}

// A node with the part of its key that mostly decides, so that sorting seldom touches the arena.
struct SortItem {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  const MemtableNode* node = nullptr;

  bool operator<(const SortItem& other) const {
    if (high != other.high) return high < other.high;
    if (low != other.low) return low < other.low;
    return comes_before(node, other.node);
  }
};

// Eight bytes at `offset`, first byte most significant, zeros past the end.
std::uint64_t word_at(ByteView key, std::size_t offset) {
  std::uint64_t word = 0;
  if (offset < key.size()) {
    std::memcpy(&word, key.data() + offset, std::min(sizeof word, key.size() - offset));
  }
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  return word;
}

// By `high` alone, byte by byte from the least significant on, keeping the order of equals; bytes
// that are the same in all are left out. Decimal keys and times have few that differ.
void sort_by_high(std::vector<SortItem>& items) {
  constexpr unsigned kBytes = sizeof(std::uint64_t);
  constexpr std::size_t kValues = 256;
  std::array<std::array<std::uint32_t, kValues>, kBytes> counts{};
  for (const SortItem& item : items) {
    for (unsigned byte = 0; byte < kBytes; ++byte) ++counts[byte][item.high >> 8 * byte & 0xff];
  }
  std::vector<SortItem> other(items.size());
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    std::array<std::uint32_t, kValues>& places = counts[byte];
    if (places[items.front().high >> 8 * byte & 0xff] == items.size()) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
    for (const SortItem& item : items) other[places[item.high >> 8 * byte & 0xff]++] = item;
    items.swap(other);
  }
}

void sort_items(std::vector<SortItem>& items) {
  if (items.size() < kRadixMin || items.size() > UINT32_MAX) {
    std::sort(items.begin(), items.end());
    return;
  }
  sort_by_high(items);
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end =
        std::find_if(begin + 1, items.end(),
                     [high = begin->high](const SortItem& item) { return item.high != high; });
    if (end - begin > 1) std::sort(begin, end);
    begin = end;
  }
}

// Nodes in the order of writing, each read once: what all keys begin with is mostly known from the
// first few, and only items of before it was are made again.
class Gathering {
 public:
  explicit Gathering(std::size_t expected) { items_.reserve(expected); }

  void add(const MemtableNode* node) {
    const ByteView key = node->full_key();
    if (items_.empty()) {
      first_ = key;
      shared_ = key.size();
    }
    const std::size_t shared = shared_bytes(first_.substr(0, shared_), key);
    if (shared < shared_) {
      shared_ = shared;
      stale_ = items_.size();
    }
    items_.push_back(item_of(node));
  }

  SortedRun sorted() && {
    for (std::size_t i = 0; i < stale_; ++i) items_[i] = item_of(items_[i].node);
    if (!std::is_sorted(items_.begin(), items_.end())) sort_items(items_);
    SortedRun nodes(items_.size());
    std::transform(items_.begin(), items_.end(), nodes.begin(),
                   [](const SortItem& item) { return item.node; });
    return nodes;
  }

 private:
  SortItem item_of(const MemtableNode* node) const {
    const ByteView key = node->full_key();
    return {word_at(key, shared_), word_at(key, shared_ + 8), node};
  }

  std::vector<SortItem> items_;
  ByteView first_;
  std::size_t shared_ = 0;  // how much of it all keys so far begin with
  std::size_t stale_ = 0;   // so many items were made when it was more
};

// The node so many behind this one probably lies as far as its size says. A wrong guess costs
// nothing.
void fetch_following(const MemtableNode* node) {
  constexpr std::size_t kAhead = 8;
  const std::size_t bytes = sizeof(MemtableNode) + node->key_bytes + node->value_bytes;
  __builtin_prefetch(reinterpret_cast<const char*>(node) + kAhead * bytes);
}

}  // namespace

std::vector<std::shared_ptr<const SortedRun>> SortedRuns::through(const MemtableNode* oldest,
                                                                  SequenceNumber visible,
                                                                  std::uint64_t expected,
                                                                  SequenceNumber newer_than) {
  MutexLock lock(mutex_);
  const MemtableNode* node =
      covered_ == nullptr ? oldest : covered_->next.load(std::memory_order_acquire);
  if (node == nullptr || node->sequence() > visible) return newer_runs(newer_than);
  Gathering fresh(covered_ == nullptr ? static_cast<std::size_t>(expected) : 0);
  for (; node != nullptr && node->sequence() <= visible;
       node = node->next.load(std::memory_order_acquire)) {
    fetch_following(node);
    fresh.add(node);
    covered_ = node;
  }
  add_run(std::move(fresh).sorted());
  newest_.resize(runs_.size() - 1);
  newest_.push_back(covered_->sequence());
  return newer_runs(newer_than);
}

// Runs follow one another in the order of writing.
std::vector<std::shared_ptr<const SortedRun>> SortedRuns::newer_runs(
    SequenceNumber newer_than) const {
  const auto first = std::upper_bound(newest_.begin(), newest_.end(), newer_than);
  return {runs_.begin() + (first - newest_.begin()), runs_.end()};
}

void SortedRuns::add_run(SortedRun run) {
  // Sizes at least halve from one run to the next.
  while (!runs_.empty() && runs_.back()->size() < 2 * run.size()) {
    const SortedRun& older = *runs_.back();
    SortedRun merged;
    merged.reserve(older.size() + run.size());
    std::merge(older.begin(), older.end(), run.begin(), run.end(), std::back_inserter(merged),
               comes_before);
    run = std::move(merged);
    runs_.pop_back();
  }
  runs_.push_back(std::make_shared<const SortedRun>(std::move(run)));
  std::uint64_t bytes = 0;
  for (const auto& kept : runs_) bytes += kept->capacity() * sizeof(const MemtableNode*);
  used_.store(bytes, std::memory_order_relaxed);
}

}  // namespace edgecase::engine
