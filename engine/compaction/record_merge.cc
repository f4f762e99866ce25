#include "compaction/record_merge.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {

RecordMerge::RecordMerge(TableCache& tables, const std::vector<MergeInput>& inputs) {
  cursors_.reserve(inputs.size());
  for (const MergeInput& input : inputs) {
    heap_.push_back(cursors_.size());
    cursors_.push_back(tables.records(input));
    note_end(heap_.back());
  }
  for (std::size_t at = heap_.size() / 2; at-- > 0;) sift_down(at);
}

bool RecordMerge::comes_before(std::size_t a, std::size_t b) const {
  if (!cursors_[a].valid() || !cursors_[b].valid()) return cursors_[a].valid();
  const int order = cursors_[a].key().compare(cursors_[b].key());
  if (order != 0) return order < 0;
  return !cursors_[a].is_open() && cursors_[b].is_open();
}

void RecordMerge::note_end(std::size_t input) {
  if (!cursors_[input].valid() && status_.ok()) status_ = cursors_[input].status();
}

void RecordMerge::sift_down(std::size_t at) {
  for (;;) {
    std::size_t nearest = at;
    for (std::size_t below = 2 * at + 1; below <= 2 * at + 2 && below < heap_.size(); ++below) {
      if (comes_before(heap_[below], heap_[nearest])) nearest = below;
    }
    if (nearest == at) return;
    std::swap(heap_[at], heap_[nearest]);
    at = nearest;
  }
}

bool RecordMerge::second_key(ByteView& key) const {
  bool found = false;
  for (std::size_t at = 1; at < std::min<std::size_t>(heap_.size(), 3); ++at) {
    const RecordCursor& cursor = cursors_[heap_[at]];
    if (!cursor.valid() || (found && cursor.key() >= key)) continue;
    key = cursor.key();
    found = true;
  }
  return found;
}

void RecordMerge::settle() {
  note_end(heap_.front());
  sift_down(0);
}

const std::vector<std::size_t>& RecordMerge::equals() {
  const ByteView key = top().key();
  places_.assign(1, 0);
  equals_.assign(1, heap_.front());
  // Those of one key lie together at the top of the heap.
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::size_t below = 2 * places_[i] + 1;
    for (std::size_t at = below; at < std::min(below + 2, heap_.size()); ++at) {
      const RecordCursor& cursor = cursors_[heap_[at]];
      if (!cursor.valid() || cursor.key() != key) continue;
      places_.push_back(at);
      equals_.push_back(heap_[at]);
    }
  }
  return equals_;
}

void RecordMerge::settle_equals() {
  for (const std::size_t input : equals_) note_end(input);
  // From the lowest up: below each place everything is in order.
  std::sort(places_.begin(), places_.end());
  for (std::size_t i = places_.size(); i-- > 0;) sift_down(places_[i]);
}

}  // namespace edgecase::engine
