// Cursors over the items of many runs, the one with the smallest key at the top. Of equal keys an
// item that is not open comes first, so that all that hold a key are open before the key's turn.
// Owned by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compaction/merge_plan.h"
#include "table/record_cursor.h"
#include "table/table_cache.h"

namespace edgecase::engine {

class RecordMerge {
 public:
  // Takes of each input what has keys at or after `from`: an item that begins before it is opened
  // and stands on the first of these.
  RecordMerge(TableCache& tables, const std::vector<MergeInput>& inputs, ByteView from = {});

  // False at the end, and after an error: look at status().
  bool valid() const { return status_.ok() && !heap_.empty() && top().valid(); }
  const Status& status() const { return status_; }

  // How many items were opened at the beginning.
  std::size_t open_items() const { return open_items_; }

  RecordCursor& top() { return cursors_[heap_.front()]; }
  const RecordCursor& top() const { return cursors_[heap_.front()]; }
  std::size_t top_input() const { return heap_.front(); }
  // The smallest key besides the top's; false when there is no other.
  bool second_key(ByteView& key) const;
  // Call after the top moved, was opened or came to its end.
  void settle();

  // The inputs that stand on the top's key, the top's first. Valid until the next call. After each
  // of them has moved: settle_equals().
  const std::vector<std::size_t>& equals();
  RecordCursor& cursor(std::size_t input) { return cursors_[input]; }
  void settle_equals();

 private:
  // What is asked of a cursor at each comparison, as it stood when it was noted: a namespace and
  // twenty bytes of a key decide nearly always.
  struct Standing {
    std::array<std::uint64_t, 3> words{};  // big-endian, zeros behind the key
    std::size_t key_bytes = 0;
    bool valid = false;
    bool is_open = false;
  };

  void skip_before(RecordCursor& cursor, ByteView from);
  bool comes_before(std::size_t a, std::size_t b) const;
  bool is_equal(std::size_t a, std::size_t b) const;
  void sift_down(std::size_t at);
  void note(std::size_t input);

  std::vector<RecordCursor> cursors_;
  std::vector<Standing> standings_;  // of cursors_
  std::vector<std::size_t> heap_;    // of all cursors; those at their end come last
  std::vector<std::size_t> places_;  // in heap_, of equals_
  std::vector<std::size_t> equals_;
  std::size_t open_items_ = 0;
  Status status_;
};

// NewerRuns tells whether runs that a merge leaves alone supersede an entry of it. Entries are
// asked for in key order. A run with few entries where the merge works is walked along: between two
// of them nothing is to be asked. Any other is asked through the filter of its items, key by key.
// Owned by one thread.
class NewerRuns {
 public:
  // All by their filters.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs);
  // For all entries of `merged`, which are groups.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs,
            const std::vector<MergeInput>& merged);

  // Whether a newer run supersedes a key at or after the one before.
  Result<bool> supersede(ByteView full_key, SequenceNumber sequence);

 private:
  Result<bool> walked_supersede(ByteView full_key, SequenceNumber sequence);

  std::vector<RecordCursor> asked_;
  std::optional<RecordMerge> walked_;
};

}  // namespace edgecase::engine
