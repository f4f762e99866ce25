#include "buffer/memtable.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::engine {
namespace {

// What the index is sized for at first; smaller entries make it grow.
constexpr std::uint64_t kExpectedEntryBytes = 112;

}  // namespace

class Memtable::Inside {
 public:
  explicit Inside(std::uint64_t expected_bytes) : expected(expected_bytes) {}

  // Made for the first entry that is not in a strip.
  MemtableIndex& writable_index() {
    if (index.load(std::memory_order_relaxed) == nullptr) {
      owned_index =
          std::make_unique<MemtableIndex>(static_cast<std::size_t>(expected / kExpectedEntryBytes));
      index.store(owned_index.get(), std::memory_order_release);
    }
    return *owned_index;
  }

  const std::uint64_t expected;
  Arena arena;
  SeriesStrips strips{arena};
  std::unique_ptr<MemtableIndex> owned_index;
  std::atomic<const MemtableIndex*> index{nullptr};
  SortedRuns runs;
  std::atomic<const MemtableNode*> oldest{nullptr};
  MemtableNode* newest = nullptr;  // the writer's
  std::atomic<SequenceNumber> first_sequence{0};
  std::atomic<SequenceNumber> last_sequence{0};
  std::atomic<std::uint64_t> entry_count{0};
  std::atomic<std::uint32_t> range_delete_count{0};
  Mutex range_mutex;
  RangeDeleteLog range_deletes EC_GUARDED_BY(range_mutex);
};

Memtable::Memtable(std::uint64_t expected_bytes)
    : inside_(std::make_unique<Inside>(expected_bytes)) {}
Memtable::~Memtable() = default;

void Memtable::add(const BatchEntry& entry, SequenceNumber sequence, GroupCodec codec) {
  Inside& in = *inside_;
  EC_CHECK(sequence > in.last_sequence.load(std::memory_order_relaxed));
  const bool in_strip = codec == GroupCodec::Series && in.strips.add(entry, sequence);
  if (!in_strip) {
    place_node(make_node(entry.namespace_id, entry.key, entry.kind, entry.value, entry.end),
               sequence);
  }
  count_entry(sequence);
}

inline void Memtable::count_entry(SequenceNumber sequence) {
  Inside& in = *inside_;
  const std::uint64_t count = in.entry_count.load(std::memory_order_relaxed);
  if (count == 0) in.first_sequence.store(sequence, std::memory_order_relaxed);
  in.last_sequence.store(sequence, std::memory_order_relaxed);
  in.entry_count.store(count + 1, std::memory_order_relaxed);
}

void Memtable::add_range_delete(RangeDelete range_delete) {
  Inside& in = *inside_;
  const SequenceNumber sequence = range_delete.sequence;
  EC_CHECK(sequence > in.last_sequence.load(std::memory_order_relaxed));
  {
    MutexLock lock(in.range_mutex);
    in.range_deletes.add(std::move(range_delete));
    in.range_delete_count.store(static_cast<std::uint32_t>(in.range_deletes.list().size()),
                                std::memory_order_release);
  }
  count_entry(sequence);
}

std::shared_ptr<const RangeDeleteLayers> Memtable::range_deletes() const {
  Inside& in = *inside_;
  if (in.range_delete_count.load(std::memory_order_acquire) == 0) return nullptr;
  MutexLock lock(in.range_mutex);
  return in.range_deletes.layers();
}

std::vector<RangeDelete> Memtable::range_delete_list() const {
  MutexLock lock(inside_->range_mutex);
  return inside_->range_deletes.list();
}

std::uint32_t Memtable::range_delete_count() const {
  return inside_->range_delete_count.load(std::memory_order_acquire);
}

Memtable::Draft Memtable::make_node(NamespaceId namespace_id, ByteView key, EntryKind kind,
                                    ByteView value, ByteView end) {
  Inside& in = *inside_;
  const std::size_t key_bytes = kNamespacePrefixBytes + key.size();
  char* memory = in.arena.allocate(sizeof(MemtableNode) + key_bytes + value.size() + end.size());
  auto* node = new (memory) MemtableNode;
  node->sequence_and_kind = static_cast<std::uint64_t>(kind);
  node->key_bytes = static_cast<std::uint16_t>(key_bytes);
  node->value_bytes = static_cast<std::uint32_t>(value.size() + end.size());
  char* data = node->data();
  for (int shift = 24; shift >= 0; shift -= 8) *data++ = static_cast<char>(namespace_id >> shift);
  if (!key.empty()) std::memcpy(data, key.data(), key.size());
  data += key.size();
  if (!value.empty()) std::memcpy(data, value.data(), value.size());
  if (!end.empty()) std::memcpy(data + value.size(), end.data(), end.size());
  const auto user_bytes = static_cast<std::uint32_t>(key.size()) + node->value_bytes;
  return {node, MemtableIndex::hash_of(node->full_key()), user_bytes};
}

void Memtable::place_node(const Draft& draft, SequenceNumber sequence) {
  Inside& in = *inside_;
  MemtableNode* const node = draft.node;
  node->sequence_and_kind |= sequence << 2;
  const MemtableNode* oldest = in.oldest.load(std::memory_order_relaxed);
  in.writable_index().insert(node, draft.hash, oldest);
  if (oldest == nullptr) {
    in.oldest.store(node, std::memory_order_release);
  } else {
    in.newest->next.store(node, std::memory_order_release);
  }
  in.newest = node;
}

bool Memtable::is_small(ByteView key, ByteView value) {
  return sizeof(MemtableNode) + kNamespacePrefixBytes + key.size() + value.size() <=
         Arena::kSmallMaxBytes;
}

Memtable::Draft Memtable::draft(NamespaceId namespace_id, ByteView key, EntryKind kind,
                                ByteView value) {
  const Draft draft = make_node(namespace_id, key, kind, value, {});
  inside_->writable_index().fetch(draft.hash);
  return draft;
}

void Memtable::add(const Draft& draft, SequenceNumber sequence) {
  EC_CHECK(sequence > inside_->last_sequence.load(std::memory_order_relaxed));
  place_node(draft, sequence);
  count_entry(sequence);
}

void Memtable::discard(const Draft& draft) {
  inside_->arena.take_back(sizeof(MemtableNode) + draft.node->key_bytes + draft.node->value_bytes);
}

std::optional<FoundEntry> Memtable::get(ByteView full_key, SequenceNumber visible) const {
  const MemtableIndex* index = inside_->index.load(std::memory_order_acquire);
  const MemtableNode* node = index == nullptr ? nullptr : index->find(full_key);
  while (node != nullptr && node->sequence() > visible) node = node->older;
  if (node != nullptr) return FoundEntry{node->sequence(), node->kind(), Bytes(node->value())};
  return inside_->strips.get(full_key, visible);
}

std::uint64_t Memtable::memory_bytes() const {
  const Inside& in = *inside_;
  const MemtableIndex* index = in.index.load(std::memory_order_acquire);
  return in.arena.used_bytes() + in.runs.used_bytes() + in.strips.used_bytes() +
         (index == nullptr ? 0 : index->used_bytes());
}

std::uint64_t Memtable::entry_count() const {
  return inside_->entry_count.load(std::memory_order_relaxed);
}

SequenceNumber Memtable::first_sequence() const {
  return inside_->first_sequence.load(std::memory_order_relaxed);
}

SequenceNumber Memtable::last_sequence() const {
  return inside_->last_sequence.load(std::memory_order_relaxed);
}

namespace {

// Walks the sorted runs side by side. They are few: the smallest key is found by looking at each.
class NodeCursor final : public EntryCursor {
 public:
  NodeCursor(std::shared_ptr<const Memtable> memtable,
             std::vector<std::shared_ptr<const SortedRun>> runs, ByteView lower, ByteView upper,
             Direction direction, SequenceNumber visible, SequenceNumber newer_than)
      : memtable_(std::move(memtable)),
        runs_(std::move(runs)),
        direction_(direction),
        visible_(visible),
        newer_than_(newer_than) {
    for (const auto& run : runs_) {
      Range range;
      range.begin = first_at_or_after(run->data(), run->data() + run->size(), lower);
      range.end = upper.empty() ? run->data() + run->size()
                                : first_at_or_after(range.begin, run->data() + run->size(), upper);
      range.at = direction == Direction::Forward ? range.begin : range.end;
      if (range.begin != range.end) ranges_.push_back(range);
    }
    settle();
  }

  bool valid() const override { return current_ != nullptr; }
  const Status& status() const override { return status_; }
  ByteView full_key() const override { return current_->full_key(); }
  Status load() override { return ok(); }
  bool is_in_memory() const override { return true; }
  SequenceNumber sequence() const override { return current_->sequence(); }
  EntryKind kind() const override { return current_->kind(); }
  ByteView value() const override { return current_->value(); }
  void next() override { settle(); }

  void seek(ByteView full_key) override {
    for (Range& range : ranges_) {
      range.at = direction_ == Direction::Forward
                     ? first_at_or_after(range.begin, range.end, full_key)
                     : first_after(range.begin, range.end, full_key);
    }
    settle();
  }

 private:
  using Place = const MemtableNode* const*;
  static constexpr std::ptrdiff_t kFetchAhead = 8;
  // Forward: `at` is the next node; reverse: one past it.
  struct Range {
    Place begin = nullptr;
    Place end = nullptr;
    Place at = nullptr;
  };

  static Place first_at_or_after(Place begin, Place end, ByteView key) {
    return std::lower_bound(begin, end, key, [](const MemtableNode* node, ByteView wanted) {
      return node->full_key() < wanted;
    });
  }
  static Place first_after(Place begin, Place end, ByteView key) {
    return std::upper_bound(begin, end, key, [](ByteView wanted, const MemtableNode* node) {
      return wanted < node->full_key();
    });
  }

  const MemtableNode* front(const Range& range) const {
    if (direction_ == Direction::Forward) return range.at == range.end ? nullptr : *range.at;
    return range.at == range.begin ? nullptr : range.at[-1];
  }

  // Takes every entry of the next key from every run and keeps the newest visible one.
  void settle() {
    current_ = nullptr;
    if (ranges_.size() == 1 && direction_ == Direction::Forward) {
      do {
        current_ = nullptr;
        step(ranges_.front());
      } while (is_old());
      return;
    }
    while (current_ == nullptr) {
      const MemtableNode* nearest = nullptr;
      for (const Range& range : ranges_) {
        const MemtableNode* node = front(range);
        if (node != nullptr && (nearest == nullptr || is_nearer(node, nearest))) nearest = node;
      }
      if (nearest == nullptr) return;
      const ByteView key = nearest->full_key();
      for (Range& range : ranges_) take_key(range, key);
      if (is_old()) current_ = nullptr;
    }
  }
  bool is_old() const { return current_ != nullptr && current_->sequence() <= newer_than_; }

  // One run is what a flush walks: there a key's entries lie side by side, the newest first. The
  // nodes lie in the order of writing, so that each would be waited for if it were not fetched.
  void step(Range& range) {
    while (range.at != range.end && (*range.at)->sequence() > visible_) ++range.at;
    if (range.at == range.end) return;
    current_ = *range.at++;
    if (range.end - range.at > kFetchAhead) fetch(range.at[kFetchAhead]);
    while (range.at != range.end && same_key(*range.at, current_)) ++range.at;
  }

  static void fetch(const MemtableNode* node) {
    constexpr std::ptrdiff_t kLineBytes = 64;
    const char* const begin = reinterpret_cast<const char*>(node);
    __builtin_prefetch(begin);
    __builtin_prefetch(begin + kLineBytes);
  }

  static bool same_key(const MemtableNode* a, const MemtableNode* b) {
    return a->key_bytes == b->key_bytes && a->full_key() == b->full_key();
  }

  bool is_nearer(const MemtableNode* a, const MemtableNode* b) const {
    const int order = a->full_key().compare(b->full_key());
    return direction_ == Direction::Forward ? order < 0 : order > 0;
  }

  void take_key(Range& range, ByteView key) {
    for (const MemtableNode* node = front(range); node != nullptr && node->full_key() == key;
         node = front(range)) {
      if (node->sequence() <= visible_ &&
          (current_ == nullptr || node->sequence() > current_->sequence())) {
        current_ = node;
      }
      range.at += direction_ == Direction::Forward ? 1 : -1;
    }
  }

  std::shared_ptr<const Memtable> memtable_;
  std::vector<std::shared_ptr<const SortedRun>> runs_;
  std::vector<Range> ranges_;
  Direction direction_;
  SequenceNumber visible_;
  SequenceNumber newer_than_;
  const MemtableNode* current_ = nullptr;
  Status status_;
};

// Nodes and strips side by side. Where both have a key, the first has the newer entry.
class TwoCursor final : public EntryCursor {
 public:
  TwoCursor(std::unique_ptr<EntryCursor> newer, std::unique_ptr<EntryCursor> older,
            Direction direction)
      : newer_(std::move(newer)), older_(std::move(older)), direction_(direction) {
    settle();
  }

  bool valid() const override { return current_->valid(); }
  const Status& status() const override { return current_->status(); }
  ByteView full_key() const override { return current_->full_key(); }
  Status load() override { return current_->load(); }
  SequenceNumber sequence() const override { return current_->sequence(); }
  EntryKind kind() const override { return current_->kind(); }
  ByteView value() const override { return current_->value(); }
  bool keeps_large_values() const override { return true; }
  void next() override {
    current_->next();
    settle();
  }
  // Takes a run of the older cursor alone, as far as the newer has nothing of its series.
  SeriesRun take_run() override {
    if (current_ != older_.get() || !older_->valid()) return {};
    if (newer_->valid()) {
      const std::size_t prefix_bytes = older_->full_key().size() - kOrdinalKeyBytes;
      const ByteView prefix = older_->full_key().substr(0, prefix_bytes);
      if (newer_->full_key().substr(0, prefix_bytes) <= prefix) return {};
    }
    const SeriesRun run = older_->take_run();
    if (!run.entries.empty()) settle();
    return run;
  }
  std::size_t take_numbers(ByteView until, NumberRun& run) override {
    const EntryCursor& other = current_ == older_.get() ? *newer_ : *older_;
    if (other.valid()) {
      const ByteView key = other.full_key();
      const bool is_nearer = direction_ == Direction::Forward ? key < until : key > until;
      if (until.empty() || is_nearer) until = key;
    }
    const std::size_t taken = current_->take_numbers(until, run);
    if (taken > 0) settle();
    return taken;
  }
  void seek(ByteView full_key) override {
    newer_->seek(full_key);
    older_->seek(full_key);
    settle();
  }

 private:
  void settle() {
    current_ = older_.get();
    if (!newer_->valid()) return;
    if (older_->valid()) {
      const int order = newer_->full_key().compare(older_->full_key());
      if (direction_ == Direction::Forward ? order > 0 : order < 0) return;
      if (order == 0) older_->next();
    }
    current_ = newer_.get();
  }

  std::unique_ptr<EntryCursor> newer_;
  std::unique_ptr<EntryCursor> older_;
  const Direction direction_;
  EntryCursor* current_ = nullptr;
};

}  // namespace

std::unique_ptr<EntryCursor> Memtable::cursor(std::shared_ptr<const Memtable> memtable,
                                              ByteView lower, ByteView upper, Direction direction,
                                              SequenceNumber visible, SequenceNumber newer_than) {
  const Inside& in = *memtable->inside_;
  auto cursor = in.strips.cursor(memtable, lower, upper, direction, visible, newer_than);
  const MemtableNode* oldest = in.oldest.load(std::memory_order_acquire);
  if (cursor != nullptr && oldest == nullptr) return cursor;
  // Entries in strips have no nodes.
  const std::uint64_t nodes_expected = cursor == nullptr ? in.entry_count.load() : 0;
  auto runs = memtable->inside_->runs.through(oldest, visible, nodes_expected, newer_than);
  auto nodes = std::make_unique<NodeCursor>(memtable, std::move(runs), lower, upper, direction,
                                            visible, newer_than);
  if (cursor == nullptr) return nodes;
  return std::make_unique<TwoCursor>(std::move(nodes), std::move(cursor), direction);
}

}  // namespace edgecase::engine
