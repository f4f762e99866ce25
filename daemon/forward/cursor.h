// The cursor of a target: which of the store's commits it does not have yet. A short list of ranges
// of positions (edgecase/engine.h), and how far each of them is sent. A pure data structure; one
// thread.
//
//        sent      backlog       sent     backlog   sent        fresh
//   0 ─────────┤ (a₁ ... b₁] ├─────────┤ (a₂ .. b₂] ├──────┤ (f ... now]
//                  └ done_to: of this range everything up to that key is there
//
// A range is read in the order of keys, not of commits: so a place in it is a key. The open range
// has none: either all of it goes in one batch, or it is closed and becomes backlog.
//
// As it is kept (in the record of a target, records.h), numbers big-endian:
//
//   offset 0   8  f
//          8   1  ranges of backlog, at most kBacklogMax, each:
//                   8 a, 8 b, 4 namespace of done_to (0: none), 2 bytes of its key, the key
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/result.h"

namespace edgecase::forward {

// A key of a namespace; namespaces come in the order of their numbers.
struct Place {
  NamespaceId namespace_id = 0;
  Bytes key;

  friend bool operator==(const Place&, const Place&) = default;
  friend bool operator<(const Place& a, const Place& b) {
    return a.namespace_id != b.namespace_id ? a.namespace_id < b.namespace_id : a.key < b.key;
  }
};

struct Backlog {
  CommitPosition after = 0, upto = 0;  // of the one, up to and including the other
  std::optional<Place> done_to;

  friend bool operator==(const Backlog&, const Backlog&) = default;
};

class Cursor {
 public:
  // More than these become fewer, and what lies between two of them goes twice.
  static constexpr std::size_t kBacklogMax = 4;
  // Positions that bounds() answers at most.
  static constexpr std::size_t kBoundsMax = 2 * kBacklogMax + 1;

  // Nothing of what was committed after `position` is there.
  explicit Cursor(CommitPosition position = 0) : fresh_after_(position) {}

  CommitPosition fresh_after() const { return fresh_after_; }
  // Oldest first.
  const std::vector<Backlog>& backlog() const { return backlog_; }
  // After which everything lies that is not there.
  CommitPosition oldest() const { return backlog_.empty() ? fresh_after_ : backlog_.front().after; }

  // The fresh range is there up to `upto`.
  void fresh_done(CommitPosition upto) { fresh_after_ = upto; }
  // It is closed at `upto`; without a place nothing of it is there yet.
  void fresh_part(CommitPosition upto, std::optional<Place> done_to);
  // The same of a range of backlog, by its index.
  void backlog_done(std::size_t index);
  void backlog_part(std::size_t index, Place done_to) {
    backlog_[index].done_to = std::move(done_to);
  }
  // The same as one open range: for who is not guarded by bounds for a while.
  Cursor collapsed() const { return Cursor(oldest()); }

  // Positions that no merge may raise an older entry past: ends of what is there and what is not.
  // In order, none twice.
  std::vector<CommitPosition> bounds() const;

  void append_to(Bytes& out) const;
  // Takes it off the front of `bytes`. Corruption: it is none.
  static Result<Cursor> take(ByteView& bytes);

  friend bool operator==(const Cursor&, const Cursor&) = default;

 private:
  CommitPosition fresh_after_ = 0;
  std::vector<Backlog> backlog_;
};

}  // namespace edgecase::forward
