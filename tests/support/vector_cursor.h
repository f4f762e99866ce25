// An EntryCursor over entries in memory, in the order given: what a flush is fed in tests.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/entry.h"

namespace edgecase::test {

struct OwnedEntry {
  Bytes full_key;
  engine::SequenceNumber sequence = 1;
  engine::EntryKind kind = engine::EntryKind::Put;
  Bytes value;

  engine::EntryView view() const { return {full_key, sequence, kind, value}; }
};

inline std::vector<engine::EntryView> views_of(const std::vector<OwnedEntry>& entries) {
  std::vector<engine::EntryView> views;
  for (const OwnedEntry& entry : entries) views.push_back(entry.view());
  return views;
}

class VectorCursor final : public engine::EntryCursor {
 public:
  explicit VectorCursor(std::vector<OwnedEntry> entries) : entries_(std::move(entries)) {}

  // From now on load() of the entry at `index` fails.
  void fail_at(std::size_t index, Status status) {
    fail_index_ = index;
    failure_ = std::move(status);
  }

  // From now on entries are also to be had together, up to so many at once.
  void offer_runs(std::size_t entries_max) { run_max_ = entries_max; }

  // From now on it is said to be in memory.
  void say_in_memory() { in_memory_ = true; }

  bool valid() const override { return status_.ok() && index_ < entries_.size(); }
  const Status& status() const override { return status_; }
  ByteView full_key() const override { return entries_[index_].full_key; }
  Status load() override {
    if (index_ == fail_index_) status_ = failure_;
    return status_;
  }
  engine::SequenceNumber sequence() const override { return entries_[index_].sequence; }
  engine::EntryKind kind() const override { return entries_[index_].kind; }
  ByteView value() const override { return entries_[index_].value; }
  void next() override { ++index_; }
  std::span<const engine::EntryView> loaded_run() override {
    run_.clear();
    for (std::size_t i = index_; i < entries_.size() && run_.size() < run_max_; ++i) {
      if (i == fail_index_) break;
      run_.push_back(entries_[i].view());
    }
    return run_;
  }
  bool is_in_memory() const override { return in_memory_; }
  void seek(ByteView full_key) override {
    const auto found = std::partition_point(
        entries_.begin(), entries_.end(),
        [&](const OwnedEntry& entry) { return ByteView(entry.full_key) < full_key; });
    index_ = static_cast<std::size_t>(found - entries_.begin());
  }

 private:
  std::vector<OwnedEntry> entries_;
  std::size_t index_ = 0;
  std::size_t fail_index_ = SIZE_MAX;
  std::size_t run_max_ = 0;
  bool in_memory_ = false;
  std::vector<engine::EntryView> run_;
  Status failure_;
  Status status_;
};

}  // namespace edgecase::test
