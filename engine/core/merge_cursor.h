// Cursors over what is to be merged. MergeCursor: many sorted sources as one, each full key once,
// its newest entry, deletes included, in one direction. LiveCursor: what of a memtable is worth
// being flushed. Owned by one thread.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "edgecase/iterator.h"
#include "version/version_set.h"

namespace edgecase::engine {

// What is known of a source before it is opened. The keys are borrowed.
struct MergeSource {
  // Every key of the source lies within; empty: unknown.
  ByteView smallest;
  ByteView largest;
  // Every entry of the source lies within.
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
};

class MergeSources {
 public:
  virtual ~MergeSources() = default;

  // The same at every call, and where it is.
  virtual std::span<const MergeSource> all() const = 0;
  // Positioned on its first entry. Once for each source at most; the cursor is of the sources.
  virtual EntryCursor& open(std::size_t index) = 0;
};

// A source that begins behind the current position is not opened before the merge gets there, and
// an entry is loaded only when it is returned, or when the sequences of two sources that hold the
// same key do not tell which is newer. Entries come many at a time, as far as they lie decoded in
// their sources.
class MergeCursor {
 public:
  MergeCursor(std::unique_ptr<MergeSources> sources, Direction direction);

  // Whether there is a next entry. False at the end and after an error: look at status().
  bool valid();
  const Status& status() const { return status_; }
  // Its key, which may be known before it is loaded. Only when valid(), until the next call.
  ByteView full_key() const { return children_[winner_.child].key; }
  // Steps over the next entry and those behind it that are to be had without waiting, as far as
  // their keys lie before `until` (reverse: behind it; empty: no bound), and returns them; they
  // hold until the next call. Empty when the next entry lies beyond `until`, and when valid()
  // becomes false.
  std::span<const EntryView> take(ByteView until = {});
  // EntryCursor::take_numbers(), of the next entries, with the same `until` as take(): 0 where they
  // are to be had by take() alone.
  std::size_t take_numbers(ByteView until, NumberRun& run);
  // The large value of the last entry that take() returned, until the next call:
  // EntryCursor::large_value(). What has a value of kAloneBytes or more, be it read or not, is the
  // last one, unless it lies among others in a group.
  Result<std::unique_ptr<LargeValue>> large_value() {
    return children_[last_child_].cursor->large_value();
  }
  // Whether its value, if it is that large, stays where it is.
  bool keeps_large_values() const { return children_[last_child_].cursor->keeps_large_values(); }
  // Steps over the next entry without loading it. Only when valid().
  void skip();
  // Only when valid(): whether the next entry is the first (reverse: the last) of a group that is
  // told of unread (EntryCursor::whole_group()) and in which no other source has a key.
  bool whole_group(WholeGroup& group);
  // Behind it.
  void skip_group();
  // Forward: to the first entry with full key >= `full_key`; reverse: to the last with full key <=
  // it.
  void seek(ByteView full_key);
  // EntryCursor::damaged_keys() of the source that failed.
  bool damaged_keys(Bytes& first, Bytes& last) const {
    return failed_ != kNone && children_[failed_].cursor->damaged_keys(first, last);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  // How many entries are gathered at first, and, by twice as many each time, at most.
  static constexpr std::size_t kGatheredMin = 8;
  static constexpr std::size_t kGatheredMax = 128;
  // From so many entries of one source on they are not gathered but returned as they lie there.
  static constexpr std::size_t kDirectMin = 4;
  // Nothing is gathered behind a value of so many bytes: the caller may want no more than that.
  static constexpr std::size_t kAloneBytes = 64u << 10;

  struct Child {
    EntryCursor* cursor = nullptr;  // null: not opened, `key` is a bound
    ByteView key;                   // of the next entry
    // Loaded: entries of the source from where its cursor stands; the next one is run[at].
    std::span<const EntryView> run;
    std::size_t at = 0;
    EntryView single;  // the whole of `run` where the source offers none
    bool has_bounds = false;
    bool done = false;

    bool is_loaded() const { return !run.empty(); }
    bool is_last() const { return at + 1 == run.size(); }
  };
  // Compared by `head` (head_of()), which mostly decides.
  struct Player {
    std::uint64_t head = UINT64_MAX;
    std::size_t child = 0;
  };

  bool is_forward() const { return direction_ == Direction::Forward; }
  void find_prefix();
  std::uint64_t head_of(const Child& child) const;
  Player player_of(std::size_t child) const;
  bool comes_before(const Player& a, const Player& b) const {
    return a.head != b.head ? a.head < b.head : comes_before_by_key(a.child, b.child);
  }
  bool comes_before_by_key(std::size_t a, std::size_t b) const;
  void rebuild();
  void fail(std::size_t child, Status status);
  void replay();
  std::size_t runner_up() const;
  bool lies_before(ByteView a, ByteView b) const { return is_forward() ? a < b : a > b; }

  bool settle();
  void open_child(std::size_t child);
  void take_position(std::size_t child);
  void move_behind_run(std::size_t child);
  bool load(std::size_t child);
  std::span<const EntryView> run_of_winner(ByteView until);
  void gather(ByteView until);
  bool yields_to_runner_up();
  void discard_winner();
  bool drop_older(const EntryView& entry, bool& is_superseded);
  bool is_newer(std::size_t child, SequenceNumber sequence_min, SequenceNumber sequence_max,
                bool& answer);
  const MergeSource& source(std::size_t child) const { return sources_->all()[child]; }

  const std::unique_ptr<MergeSources> sources_;
  const Direction direction_;
  Bytes prefix_;  // what all keys of sources with bounds begin with
  std::vector<Child> children_;
  // A tournament: behind place 0, which is not used, each place holds who lost there; the children
  // come in below, from place children_.size() on.
  std::vector<Player> losers_;
  Player winner_;
  std::vector<Player> scratch_;
  std::vector<EntryView> gathered_;
  std::size_t last_child_ = 0;  // whose entry was returned last
  std::size_t gathered_max_ = kGatheredMin;
  // What was returned holds until these move: the winner by so many entries, or behind its run;
  // and others, which stand at their ends, out of the tournament.
  std::size_t winner_steps_ = 0;
  std::vector<std::size_t> parked_;
  Status status_;
  std::size_t failed_ = kNone;  // the child that status_ is of
};

// Yields those entries of a memtable that are worth being flushed. Forward only.
class LiveCursor final : public EntryCursor {
 public:
  // `deletes` are those of the memtable, null for none. `dropped` outlives it.
  LiveCursor(std::unique_ptr<EntryCursor> all, const DroppedIds& dropped,
             std::shared_ptr<const RangeDeleteLayers> deletes)
      : all_(std::move(all)), dropped_(dropped), deletes_(std::move(deletes)) {
    settle();
  }

  bool valid() const override { return all_->valid(); }
  const Status& status() const override { return all_->status(); }
  ByteView full_key() const override { return all_->full_key(); }
  Status load() override { return all_->load(); }
  SequenceNumber sequence() const override { return all_->sequence(); }
  EntryKind kind() const override { return all_->kind(); }
  ByteView value() const override { return all_->value(); }
  // A run is of one series, and so of one namespace: that of the current entry, which is live.
  SeriesRun take_run() override {
    if (deletes_ != nullptr) return {};
    const SeriesRun run = all_->take_run();
    settle();
    return run;
  }
  void next() override {
    all_->next();
    settle();
  }
  void seek(ByteView full_key) override {
    all_->seek(full_key);
    settle();
  }

 private:
  void settle() {
    while (all_->valid()) {
      const NamespaceId id = namespace_of(all_->full_key());
      if (dropped_.contains(id)) {
        // All of it lies together.
        all_->seek(make_full_key(id + 1, {}));
      } else if (is_deleted()) {
        all_->next();
      } else {
        return;
      }
    }
  }
  bool is_deleted() {
    return deletes_ != nullptr && all_->load().ok() &&
           deletes_->covering(all_->full_key(), UINT64_MAX) > all_->sequence();
  }

  const std::unique_ptr<EntryCursor> all_;
  const DroppedIds& dropped_;
  const std::shared_ptr<const RangeDeleteLayers> deletes_;
};

}  // namespace edgecase::engine
