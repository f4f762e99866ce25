#include "core/merge_cursor.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {

MergeCursor::MergeCursor(std::vector<MergeSource> sources, Direction direction)
    : direction_(direction) {
  children_.reserve(sources.size());
  heap_.reserve(sources.size());
  for (MergeSource& source : sources) {
    Child& child = children_.emplace_back();
    child.source = std::move(source);
    child.key = direction_ == Direction::Forward ? child.source.smallest : child.source.largest;
    if (child.key.empty()) {
      child.cursor = child.source.open();
      if (!child.cursor->valid()) {
        note_failure(child);
        continue;
      }
      child.key = child.cursor->full_key();
    }
    push(children_.size() - 1);
  }
  settle();
}

bool MergeCursor::comes_before(std::size_t a, std::size_t b) const {
  const int order = children_[a].key.compare(children_[b].key);
  if (order != 0) return direction_ == Direction::Forward ? order < 0 : order > 0;
  // A bound comes first: the entry behind it may have the same key.
  return children_[a].cursor == nullptr && children_[b].cursor != nullptr;
}

void MergeCursor::push(std::size_t child) {
  heap_.push_back(child);
  std::size_t at = heap_.size() - 1;
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (!comes_before(heap_[at], heap_[parent])) break;
    std::swap(heap_[at], heap_[parent]);
    at = parent;
  }
}

void MergeCursor::sift_down(std::size_t at) {
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

void MergeCursor::pop_top() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
}

bool MergeCursor::note_failure(const Child& child) {
  if (child.cursor->status().ok()) return false;
  if (status_.ok()) status_ = child.cursor->status();
  return true;
}

void MergeCursor::settle_top() {
  Child& child = children_[heap_.front()];
  if (!child.cursor->valid()) {
    note_failure(child);
    pop_top();
    return;
  }
  child.key = child.cursor->full_key();
  sift_down(0);
}

void MergeCursor::settle() {
  equal_.clear();
  while (!heap_.empty() && children_[heap_.front()].cursor == nullptr) {
    Child& child = children_[heap_.front()];
    child.cursor = child.source.open();
    settle_top();
  }
  if (heap_.empty() || !status_.ok()) return;
  current_ = heap_.front();
  if (top_has_equal()) choose_newest();
}

bool MergeCursor::top_has_equal() const {
  const ByteView key = children_[heap_.front()].key;
  return (heap_.size() > 1 && children_[heap_[1]].key == key) ||
         (heap_.size() > 2 && children_[heap_[2]].key == key);
}

void MergeCursor::choose_newest() {
  const ByteView key = children_[current_].key;
  std::vector<std::size_t> candidates;
  while (!heap_.empty() && children_[heap_.front()].key == key) {
    candidates.push_back(heap_.front());
    pop_top();
  }
  std::size_t best = candidates.front();
  for (std::size_t i = 1; i < candidates.size() && status_.ok(); ++i) {
    if (is_newer(candidates[i], best)) best = candidates[i];
  }
  for (const std::size_t candidate : candidates) {
    if (candidate != best) equal_.push_back(candidate);
  }
  push(best);  // to the top: every other key in the heap lies behind it
  current_ = best;
}

bool MergeCursor::is_newer(std::size_t a, std::size_t b) {
  Child& first = children_[a];
  Child& second = children_[b];
  if (first.source.sequence_min > second.source.sequence_max) return true;
  if (second.source.sequence_min > first.source.sequence_max) return false;
  for (Child* child : {&first, &second}) {
    if (const Status loaded = child->cursor->load(); !loaded.ok()) {
      if (status_.ok()) status_ = loaded;
      return false;
    }
  }
  return first.cursor->sequence() > second.cursor->sequence();
}

Status MergeCursor::load() {
  if (!status_.ok()) return status_;
  if (Status loaded = children_[current_].cursor->load(); !loaded.ok()) status_ = loaded;
  return status_;
}

void MergeCursor::next() {
  if (!valid()) return;
  // The losers first: the current key is a view into the winner.
  const std::vector<std::size_t> losers = std::exchange(equal_, {});
  for (const std::size_t loser : losers) {
    Child& child = children_[loser];
    child.cursor->next();
    if (!child.cursor->valid()) {
      note_failure(child);
      continue;
    }
    child.key = child.cursor->full_key();
  }
  children_[heap_.front()].cursor->next();
  settle_top();
  for (const std::size_t loser : losers) {
    if (children_[loser].cursor->valid()) push(loser);
  }
  settle();
}

std::span<const EntryView> MergeCursor::loaded_run(ByteView until) {
  if (!equal_.empty() || direction_ != Direction::Forward) return {};
  for (std::size_t at = 1; at < std::min<std::size_t>(heap_.size(), 3); ++at) {
    const ByteView key = children_[heap_[at]].key;
    if (until.empty() || key < until) until = key;
  }
  return children_[current_].cursor->loaded_run(until);
}

void MergeCursor::skip(std::size_t count) {
  if (!valid()) return;
  if (!equal_.empty()) return next();  // there was no run
  children_[current_].cursor->skip(count);
  settle_top();
  settle();
}

void MergeCursor::seek(ByteView full_key) {
  heap_.clear();
  equal_.clear();
  const bool forward = direction_ == Direction::Forward;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    const ByteView bound = forward ? child.source.smallest : child.source.largest;
    const bool behind = !bound.empty() && (forward ? bound >= full_key : bound <= full_key);
    if (child.cursor == nullptr && behind) {
      child.key = bound;
      push(i);
      continue;
    }
    if (child.cursor == nullptr) child.cursor = child.source.open();
    if (child.cursor->status().ok()) child.cursor->seek(full_key);
    if (!child.cursor->valid()) {
      note_failure(child);
      continue;
    }
    child.key = child.cursor->full_key();
    push(i);
  }
  settle();
}

}  // namespace edgecase::engine
