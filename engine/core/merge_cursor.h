// Many cursors as one: each full key once, its newest entry, deletes included. One direction.
//
// A source that begins behind the current position is not opened before the merge gets there, and
// an entry is loaded only when it is returned, or when the sequences of two sources that hold the
// same key do not tell which is newer. Owned by one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/entry.h"
#include "edgecase/iterator.h"

namespace edgecase::engine {

struct MergeSource {
  std::function<std::unique_ptr<EntryCursor>()> open;  // positioned on its first entry
  // Every key of the source lies within; empty: unknown.
  Bytes smallest;
  Bytes largest;
  // Every entry of the source lies within.
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
};

class MergeCursor final : public EntryCursor {
 public:
  MergeCursor(std::vector<MergeSource> sources, Direction direction);

  bool valid() const override { return !heap_.empty() && status_.ok(); }
  const Status& status() const override { return status_; }
  ByteView full_key() const override { return children_[current_].key; }
  Status load() override;
  SequenceNumber sequence() const override { return children_[current_].cursor->sequence(); }
  EntryKind kind() const override { return children_[current_].cursor->kind(); }
  ByteView value() const override { return children_[current_].cursor->value(); }
  Result<std::unique_ptr<LargeValue>> large_value() override {
    return children_[current_].cursor->large_value();
  }
  void next() override;
  // Up to the key of the next source: entries before it are the only ones of their keys.
  std::span<const EntryView> loaded_run(ByteView until) override;
  void skip(std::size_t count) override;
  void seek(ByteView full_key) override;

 private:
  struct Child {
    MergeSource source;
    std::unique_ptr<EntryCursor> cursor;  // null: not opened, `key` is a bound
    ByteView key;
  };

  bool comes_before(std::size_t a, std::size_t b) const;
  void push(std::size_t child);
  void sift_down(std::size_t at);
  void pop_top();
  // Takes the child's new position into the heap, where it stands at the top.
  void settle_top();
  bool note_failure(const Child& child);
  void open_top();
  // Opens what must be opened and finds the newest entry of the key at the top.
  void settle();
  bool top_has_equal() const;
  void choose_newest();
  bool is_newer(std::size_t a, std::size_t b);

  std::vector<Child> children_;
  Direction direction_;
  std::vector<std::size_t> heap_;   // of children, the nearest key at the front
  std::vector<std::size_t> equal_;  // children besides the top that stand on the current key
  std::size_t current_ = 0;
  Status status_;
};

}  // namespace edgecase::engine
