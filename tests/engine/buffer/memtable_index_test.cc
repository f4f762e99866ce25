#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/entry.h"
#include "buffer/memtable.h"

namespace edgecase::engine {
namespace {

// IndexedNodes as a memtable makes them: each is made, indexed, and then linked to the one before
// it.
class IndexedNodes {
 public:
  MemtableNode* make(ByteView full_key, SequenceNumber sequence) {
    char* const memory = arena_.allocate(sizeof(MemtableNode) + full_key.size());
    auto* const node = new (memory) MemtableNode;
    node->sequence_and_kind = sequence << 2 | static_cast<std::uint64_t>(EntryKind::Put);
    node->key_bytes = static_cast<std::uint16_t>(full_key.size());
    std::memcpy(node->data(), full_key.data(), full_key.size());
    return node;
  }
  void link(MemtableNode* node) {
    if (last_ != nullptr) last_->next.store(node);
    if (oldest_ == nullptr) oldest_ = node;
    last_ = node;
  }
  void add(ByteView full_key, SequenceNumber sequence) { link(make(full_key, sequence)); }
  const MemtableNode* oldest() const { return oldest_; }

 private:
  Arena arena_;
  MemtableNode* last_ = nullptr;
  const MemtableNode* oldest_ = nullptr;
};

std::string index_key(int number) {
  return make_full_key(1, "key-" + std::to_string(number));
}

void index_entry(MemtableIndex& index, IndexedNodes& nodes, ByteView full_key,
                 SequenceNumber sequence) {
  MemtableNode* const node = nodes.make(full_key, sequence);
  index.insert(node, MemtableIndex::hash_of(full_key), nodes.oldest());
  nodes.link(node);
}

std::vector<SequenceNumber> sequences_of(
    const std::vector<std::shared_ptr<const SortedRun>>& runs) {
  std::vector<SequenceNumber> all;
  for (const auto& run : runs)
    for (const MemtableNode* node : *run) all.push_back(node->sequence());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("memtable index: a key leads to its newest entry, and that to those before it") {
  IndexedNodes nodes;
  MemtableIndex index(16);
  CHECK(index.find(index_key(1)) == nullptr);
  index_entry(index, nodes, index_key(1), 1);
  index_entry(index, nodes, index_key(2), 2);
  index_entry(index, nodes, index_key(1), 3);
  const MemtableNode* const newest = index.find(index_key(1));
  REQUIRE(newest != nullptr);
  CHECK(newest->sequence() == 3);
  REQUIRE(newest->older != nullptr);
  CHECK(newest->older->sequence() == 1);
  CHECK(newest->older->older == nullptr);
  REQUIRE(index.find(index_key(2)) != nullptr);
  CHECK(index.find(index_key(2))->older == nullptr);
  CHECK(index.find(index_key(3)) == nullptr);
}

TEST_CASE("memtable index: it finds every key, however often it had to grow, and says its memory") {
  constexpr int kKeys = 5'000;
  IndexedNodes nodes;
  MemtableIndex index(1);
  const std::uint64_t before = index.used_bytes();
  SequenceNumber sequence = 0;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kKeys; ++i) index_entry(index, nodes, index_key(i), ++sequence);
  for (int i = 0; i < kKeys; ++i) {
    const MemtableNode* const node = index.find(index_key(i));
    REQUIRE(node != nullptr);
    CHECK(node->sequence() == static_cast<SequenceNumber>(kKeys + i + 1));
    REQUIRE(node->older != nullptr);
    CHECK(node->older->sequence() == static_cast<SequenceNumber>(i + 1));
  }
  CHECK(index.find(index_key(kKeys)) == nullptr);
  CHECK(index.used_bytes() >= before + kKeys * sizeof(std::uint64_t));
}

TEST_CASE("sorted runs: each is in order of keys, of one key the newest first") {
  IndexedNodes nodes;
  for (SequenceNumber sequence = 1; sequence <= 300; ++sequence)
    nodes.add(index_key(static_cast<int>(sequence * 7 % 50)), sequence);
  SortedRuns runs;
  const auto all = runs.through(nodes.oldest(), 300, 300);
  REQUIRE_FALSE(all.empty());
  for (const auto& run : all) {
    for (std::size_t i = 1; i < run->size(); ++i) {
      const MemtableNode &before = *(*run)[i - 1], &node = *(*run)[i];
      REQUIRE(before.full_key() <= node.full_key());
      if (before.full_key() == node.full_key()) REQUIRE(before.sequence() > node.sequence());
    }
  }
  CHECK(sequences_of(all).size() == 300);
}

TEST_CASE(
    "sorted runs: what was written since the last call is there, nothing twice, in few runs") {
  IndexedNodes nodes;
  SortedRuns runs;
  SequenceNumber sequence = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 10; ++i) nodes.add(index_key(i), ++sequence);
    const auto all = runs.through(nodes.oldest(), sequence, 1'000);
    const std::vector<SequenceNumber> got = sequences_of(all);
    REQUIRE(got.size() == sequence);
    REQUIRE(std::adjacent_find(got.begin(), got.end()) == got.end());
    CHECK(all.size() <= 10);
  }
  CHECK(runs.used_bytes() >= 1'000 * sizeof(void*));
  // Runs without anything newer are left out.
  const auto newest = sequences_of(runs.through(nodes.oldest(), sequence, 1'000, sequence - 1));
  REQUIRE_FALSE(newest.empty());
  CHECK(newest.back() == sequence);
  CHECK(runs.through(nodes.oldest(), sequence, 1'000, sequence).empty());
}

}  // namespace edgecase::engine
