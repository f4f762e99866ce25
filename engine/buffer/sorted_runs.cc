#include "buffer/sorted_runs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

namespace edgecase::engine {
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

std::size_t common_prefix(ByteView a, ByteView b, std::size_t at_most) {
  at_most = std::min({at_most, a.size(), b.size()});
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(at_most), b.begin()).first -
      a.begin());
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

SortedRun sorted(SortedRun nodes) {
  if (nodes.size() < 2) return nodes;
  const ByteView first = nodes.front()->full_key();
  std::size_t shared = first.size();
  for (const MemtableNode* node : nodes) shared = common_prefix(first, node->full_key(), shared);

  std::vector<SortItem> items;
  items.reserve(nodes.size());
  for (const MemtableNode* node : nodes) {
    const ByteView key = node->full_key();
    items.push_back({word_at(key, shared), word_at(key, shared + 8), node});
  }
  if (std::is_sorted(items.begin(), items.end())) return nodes;
  sort_items(items);
  std::transform(items.begin(), items.end(), nodes.begin(),
                 [](const SortItem& item) { return item.node; });
  return nodes;
}

}  // namespace

std::vector<std::shared_ptr<const SortedRun>> SortedRuns::through(const MemtableNode* oldest,
                                                                  SequenceNumber visible) {
  MutexLock lock(mutex_);
  SortedRun fresh;
  const MemtableNode* node =
      covered_ == nullptr ? oldest : covered_->next.load(std::memory_order_acquire);
  for (; node != nullptr && node->sequence() <= visible;
       node = node->next.load(std::memory_order_acquire)) {
    fresh.push_back(node);
    covered_ = node;
  }
  if (!fresh.empty()) add_run(sorted(std::move(fresh)));
  return runs_;
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
