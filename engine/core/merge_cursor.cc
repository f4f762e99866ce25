#include "core/merge_cursor.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"

namespace edgecase::engine {

MergeCursor::MergeCursor(std::unique_ptr<MergeSources> sources, Direction direction)
    : sources_(std::move(sources)), direction_(direction) {
  const std::span<const MergeSource> all = sources_->all();
  find_prefix();
  children_.resize(all.size());
  losers_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    children_[i].key = is_forward() ? all[i].smallest : all[i].largest;
    children_[i].has_bounds = !children_[i].key.empty();
    if (!children_[i].has_bounds) open_child(i);
  }
  rebuild();
}

void MergeCursor::find_prefix() {
  ByteView smallest;
  ByteView largest;
  for (const MergeSource& each : sources_->all()) {
    if (each.smallest.empty()) continue;
    if (smallest.empty() || each.smallest < smallest) smallest = each.smallest;
    if (largest.empty() || each.largest > largest) largest = each.largest;
  }
  prefix_ = smallest.substr(0, shared_bytes(smallest, largest));
}

// The head of a key: the smaller key never has the larger head, or the reverse in reverse.
std::uint64_t MergeCursor::head_of(const Child& child) const {
  const ByteView key = child.key;
  std::uint64_t head = 0;
  const bool has_prefix = child.has_bounds && key.size() >= prefix_.size();
  const int order = has_prefix ? 0 : key.substr(0, prefix_.size()).compare(prefix_);
  if (order > 0) {
    head = UINT64_MAX;
  } else if (order == 0) {
    const ByteView rest = key.substr(prefix_.size());
    if (rest.size() >= sizeof head) {
      head = load_ordinal(rest.data());
    } else {
      char bytes[sizeof head] = {};
      std::copy(rest.begin(), rest.end(), bytes);
      head = load_ordinal(bytes);
    }
  }
  return is_forward() ? head : ~head;
}

MergeCursor::Player MergeCursor::player_of(std::size_t child) const {
  return {children_[child].done ? UINT64_MAX : head_of(children_[child]), child};
}

bool MergeCursor::comes_before_by_key(std::size_t a, std::size_t b) const {
  const Child& first = children_[a];
  const Child& second = children_[b];
  if (first.done || second.done) return !first.done;
  const int order = first.key.compare(second.key);
  if (order != 0) return is_forward() ? order < 0 : order > 0;
  // A bound comes first: the entry behind it may have the same key.
  return first.cursor == nullptr && second.cursor != nullptr;
}

// All play, from below.
void MergeCursor::rebuild() {
  const std::size_t count = children_.size();
  if (count == 0) return;
  scratch_.resize(2 * count);
  std::vector<Player>& winners = scratch_;
  for (std::size_t i = 0; i < count; ++i) winners[count + i] = player_of(i);
  for (std::size_t place = count - 1; place > 0; --place) {
    const Player& left = winners[2 * place];
    const Player& right = winners[2 * place + 1];
    const bool is_left = !comes_before(right, left);
    winners[place] = is_left ? left : right;
    losers_[place] = is_left ? right : left;
  }
  winner_ = winners[1];
}

// The winner has moved on.
void MergeCursor::replay() {
  Player player = player_of(winner_.child);
  for (std::size_t place = (children_.size() + winner_.child) / 2; place > 0; place /= 2)
    if (comes_before(losers_[place], player)) std::swap(losers_[place], player);
  winner_ = player;
}

// The source that would win without the winner: one that it beat. kNone when all others are done.
std::size_t MergeCursor::runner_up() const {
  const Player* best = nullptr;
  for (std::size_t place = (children_.size() + winner_.child) / 2; place > 0; place /= 2)
    if (best == nullptr || comes_before(losers_[place], *best)) best = &losers_[place];
  return best == nullptr || children_[best->child].done ? kNone : best->child;
}

// The first failure counts.
void MergeCursor::fail(std::size_t child, Status status) {
  if (!status_.ok() || status.ok()) return;
  status_ = std::move(status);
  failed_ = child;
}

// The child's cursor has come to another entry, or to its end.
void MergeCursor::take_position(std::size_t index) {
  Child& child = children_[index];
  child.at = 0;
  child.run = {};
  child.done = !child.cursor->valid();
  if (child.done) {
    fail(index, child.cursor->status());
    return;
  }
  child.key = child.cursor->full_key();
  if (is_forward()) child.run = child.cursor->loaded_run();
}

void MergeCursor::open_child(std::size_t index) {
  children_[index].cursor = &sources_->open(index);
  take_position(index);
}

void MergeCursor::move_behind_run(std::size_t index) {
  Child& child = children_[index];
  child.cursor->skip(child.run.size());
  take_position(index);
}

// What was returned last is of no more use: children that wait for that move on. Then the winner is
// opened. False at the end, or after an error.
bool MergeCursor::settle() {
  if (const std::size_t steps = std::exchange(winner_steps_, 0); steps > 0) {
    Child& child = children_[winner_.child];
    child.at += steps;
    if (child.at == child.run.size()) {
      move_behind_run(winner_.child);
    } else {
      child.key = child.run[child.at].full_key;
    }
    replay();
  }
  if (!parked_.empty()) {
    for (const std::size_t index : parked_) move_behind_run(index);
    parked_.clear();
    rebuild();
  }
  if (children_.empty()) return false;
  while (status_.ok() && !children_[winner_.child].done) {
    if (children_[winner_.child].cursor != nullptr) return true;
    open_child(winner_.child);
    replay();
  }
  return false;
}

bool MergeCursor::valid() {
  return settle();
}

bool MergeCursor::load(std::size_t index) {
  Child& child = children_[index];
  if (child.is_loaded()) return true;
  if (Status loaded = child.cursor->load(); !loaded.ok()) {
    fail(index, std::move(loaded));
    return false;
  }
  if (is_forward()) child.run = child.cursor->loaded_run();
  if (!child.is_loaded()) {
    child.single = {child.key, child.cursor->sequence(), child.cursor->kind(),
                    child.cursor->value()};
    child.run = std::span(&child.single, 1);
  }
  return true;
}

// Whether the child's next entry is newer than one whose sequence lies within these. False when it
// cannot be told: status() says why.
bool MergeCursor::is_newer(std::size_t index, SequenceNumber sequence_min,
                           SequenceNumber sequence_max, bool& answer) {
  const Child& child = children_[index];
  const MergeSource& of = source(index);
  if (!child.is_loaded()) {
    answer = of.sequence_min > sequence_max;
    if (answer || of.sequence_max < sequence_min) return true;
    if (!load(index)) return false;
  }
  answer = child.run[child.at].sequence > sequence_min;
  return true;
}

// The winner, which is not loaded, has the key of the runner-up: whether it has stepped over its
// own entry, which is the older one, or failed.
bool MergeCursor::yields_to_runner_up() {
  const std::size_t other = runner_up();
  if (other == kNone || children_[other].key != children_[winner_.child].key) return false;
  const MergeSource& mine = source(winner_.child);
  const MergeSource& theirs = source(other);
  bool is_older = theirs.sequence_min > mine.sequence_max;
  if (!is_older && mine.sequence_min <= theirs.sequence_max) {
    if (!load(winner_.child)) return true;
    const Child& child = children_[winner_.child];
    const SequenceNumber sequence = child.run[child.at].sequence;
    if (!is_newer(other, sequence, sequence, is_older)) return true;
  }
  if (is_older) discard_winner();
  return is_older;
}

// Past the winner's next entry, which nobody is to see.
void MergeCursor::discard_winner() {
  const std::size_t index = winner_.child;
  Child& child = children_[index];
  if (!child.is_loaded() || child.cursor->is_in_memory()) {
    if (child.is_loaded()) {
      child.cursor->skip(child.at + 1);
    } else {
      child.cursor->next();
    }
    take_position(index);
  } else if (child.is_last()) {
    child.done = true;
    parked_.push_back(index);
  } else {
    child.key = child.run[++child.at].full_key;
  }
  replay();
}

// Whoever stands on the key of `entry` as well and is older steps over it. False after an error.
bool MergeCursor::drop_older(const EntryView& entry, bool& is_superseded) {
  while (!children_[winner_.child].done && children_[winner_.child].key == entry.full_key) {
    if (children_[winner_.child].cursor == nullptr) {
      open_child(winner_.child);
      if (!status_.ok()) return false;
      replay();
      continue;
    }
    if (!is_newer(winner_.child, entry.sequence, entry.sequence, is_superseded)) return false;
    if (is_superseded) return true;
    discard_winner();
    if (!status_.ok()) return false;
  }
  return true;
}

// Entries of the winner, which is loaded, before every other's, if they are many.
std::span<const EntryView> MergeCursor::run_of_winner(ByteView until) {
  const Child& child = children_[winner_.child];
  if (!is_forward() || child.cursor->is_in_memory()) return {};
  const std::size_t other = runner_up();
  if (other != kNone && (until.empty() || children_[other].key < until))
    until = children_[other].key;
  std::span<const EntryView> run = child.run.subspan(child.at);
  if (until.empty() || run.back().full_key < until) return run;
  if (run.size() < kDirectMin || run[kDirectMin - 1].full_key >= until) return {};
  const auto end =
      std::partition_point(run.begin() + kDirectMin, run.end(),
                           [until](const EntryView& entry) { return entry.full_key < until; });
  return run.first(static_cast<std::size_t>(end - run.begin()));
}

// One entry after another into gathered_, as long as that leaves those that are there in place.
void MergeCursor::gather(ByteView until) {
  std::size_t before = kNone;
  std::size_t in_a_row = 0;
  while (gathered_.size() < gathered_max_) {
    const std::size_t index = winner_.child;
    Child& child = children_[index];
    if (child.done || (!until.empty() && !lies_before(child.key, until))) return;
    if (child.cursor == nullptr) {
      open_child(index);
      if (!status_.ok()) return;
      replay();
      continue;
    }
    if (!child.is_loaded()) {
      // The caller may want no more than what there is.
      if (!gathered_.empty() && !child.cursor->is_in_memory()) return;
      if (yields_to_runner_up()) {
        if (!status_.ok()) return;
        continue;
      }
      if (!load(index)) return;
    }
    // Where one source has many, they need not be gathered.
    in_a_row = std::exchange(before, index) == index ? in_a_row + 1 : 1;
    if (in_a_row > kDirectMin && is_forward() && !child.cursor->is_in_memory()) return;
    const EntryView entry = child.run[child.at];
    if (child.is_last() && !child.cursor->is_in_memory() && parked_.empty()) {
      const std::size_t other = runner_up();
      if (other == kNone || children_[other].key != entry.full_key) {
        gathered_.push_back(entry);
        last_child_ = index;
        winner_steps_ = 1;
        return;
      }
    }
    discard_winner();
    bool is_superseded = false;
    if (!status_.ok() || !drop_older(entry, is_superseded)) return;
    if (is_superseded) continue;
    gathered_.push_back(entry);
    last_child_ = index;
    if (!parked_.empty() || entry.value.size() >= kAloneBytes) return;
  }
}

std::span<const EntryView> MergeCursor::take(ByteView until) {
  gathered_.clear();
  while (settle()) {
    const Child& child = children_[winner_.child];
    if (!until.empty() && !lies_before(child.key, until)) return {};
    if (!child.is_loaded()) {
      const bool is_passed = yields_to_runner_up();
      if (!status_.ok()) return {};
      if (is_passed) continue;
      if (!load(winner_.child)) return {};
    }
    if (const auto run = run_of_winner(until); !run.empty()) {
      winner_steps_ = run.size();
      last_child_ = winner_.child;
      return run;
    }
    gather(until);
    if (gathered_.size() == gathered_max_)
      gathered_max_ = std::min(2 * gathered_max_, kGatheredMax);
    if (!gathered_.empty()) return gathered_;
  }
  return {};
}

// No other source has an entry among those of the winner that lie before the runner-up's.
std::size_t MergeCursor::take_numbers(ByteView until, NumberRun& run) {
  if (!settle()) return 0;
  const Child& child = children_[winner_.child];
  if (child.at != 0) return 0;  // its cursor stands elsewhere
  const std::size_t other = runner_up();
  if (other != kNone && (until.empty() || lies_before(children_[other].key, until)))
    until = children_[other].key;
  const std::size_t taken = child.cursor->take_numbers(until, run);
  if (taken > 0) {
    take_position(winner_.child);
    replay();
  }
  return taken;
}

void MergeCursor::skip() {
  if (!settle()) return;
  const Bytes key(full_key());
  while (settle() && full_key() == ByteView(key)) discard_winner();
}

bool MergeCursor::whole_group(WholeGroup& group) {
  if (!settle() || children_[winner_.child].is_loaded() ||
      !children_[winner_.child].cursor->whole_group(group))
    return false;
  const ByteView end = is_forward() ? group.last : group.first;
  std::size_t other = runner_up();
  // A bound may lie far before the first entry behind it.
  while (other != kNone && children_[other].cursor == nullptr &&
         !lies_before(end, children_[other].key)) {
    open_child(other);
    if (!status_.ok()) return false;
    rebuild();
    other = runner_up();
  }
  return other == kNone || lies_before(end, children_[other].key);
}

void MergeCursor::skip_group() {
  children_[winner_.child].cursor->skip_group();
  take_position(winner_.child);
  replay();
}

void MergeCursor::seek(ByteView full_key) {
  gathered_max_ = kGatheredMin;
  winner_steps_ = 0;
  parked_.clear();
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    const ByteView bound = is_forward() ? source(i).smallest : source(i).largest;
    if (child.cursor == nullptr) {
      child.key = bound;
      if (!bound.empty() && !lies_before(bound, full_key)) continue;
      child.cursor = &sources_->open(i);
    }
    if (child.cursor->status().ok()) child.cursor->seek(full_key);
    take_position(i);
  }
  rebuild();
}

}  // namespace edgecase::engine
