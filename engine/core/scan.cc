// The engine's iterator: a merge of a view, without what its caller is not to see.
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "core/read_view.h"
#include "core/reader.h"
#include "table/table_cache.h"
#include "table/window_sums.h"
#include "value/value_item.h"

namespace edgecase::engine {
namespace {

// Makes the merge of a view that may have been renewed since.
using MakeMerge =
    std::function<std::unique_ptr<MergeCursor>(const VisibleView&, const FullKeyRange&)>;

Bytes behind(ByteView full_key) {
  Bytes next(full_key);
  next.push_back('\0');
  return next;
}

// Walks a merge and hides deletes. What a damaged file has lost it steps over, where its caller
// wants that: the merge is made anew, of what lies before it and then of what lies behind it.
class ScanIterator final : public Iterator {
 public:
  ScanIterator(VisibleView at, TableCache& tables, std::unique_ptr<MergeCursor> merge,
               ExpiryView expiry, NamespaceId id, FullKeyRange range, const ReadOptions& options,
               MakeMerge make_merge, ScanHost host, std::uint64_t revocations)
      : at_(std::move(at)),
        tables_(tables),
        make_merge_(std::move(make_merge)),
        hidden_(at_),
        expiry_(std::move(expiry)),
        merge_(std::move(merge)),
        id_(id),
        range_(std::move(range)),
        direction_(options.direction),
        large_value_bytes_(options.large_value_bytes),
        summarizes_(options.summaries && options.newer_than == 0),
        on_damage_(options.on_damage),
        passes_drive_away_(options.passes_drive_away),
        host_(std::move(host)),
        revocations_(revocations),
        at_range_(range_) {
    settle();
  }

  bool valid() const override { return valid_; }
  const Status& status() const override { return status_; }
  ByteView key() const override {
    return user_key_of(at_group_ ? merge_->full_key() : entry_->full_key);
  }
  ByteView value() override {
    read_group();
    return valid_ && !is_large() ? entry_->value : ByteView();
  }
  CommitPosition position() const override {
    return at_group_ ? group_.sequence_max : entry_->sequence;
  }

  Result<std::unique_ptr<LargeValue>> large_value() override {
    read_group();
    if (!valid_ || large_value_bytes_ == kNoLargeValues) return std::unique_ptr<LargeValue>();
    const bool is_last = entry_ == &run_.back();
    if (is_last) {
      auto large = merge_->large_value();
      if (!large.ok()) return explain_large(host_.explain, large.status());
      if (*large != nullptr) return watched(*std::move(large));
    }
    if (!is_large()) return std::unique_ptr<LargeValue>();
    // A memtable's value stays where it is. One in a group is a copy: stores may have been written
    // with other thresholds.
    if (is_last && merge_->keeps_large_values())
      return watched(std::make_unique<MemoryValue>(entry_->value, entry_->sequence, at_.view));
    auto copy = std::make_shared<const Bytes>(entry_->value);
    return watched(std::make_unique<MemoryValue>(*copy, entry_->sequence, copy));
  }

  void next() override {
    if (!valid_ || !keep_current()) return;
    read_group();
    if (!valid_) return;
    if (!find_in_run(static_cast<std::size_t>(entry_ - run_.data()) + 1)) settle();
  }

  std::size_t take_numbers(ByteView end, NumberColumns& columns) override {
    columns.clear();
    if (!valid_ || !keep_current()) return 0;
    read_group();
    if (!valid_) return 0;
    const ByteView first = entry_->full_key;
    if (first.size() < kNamespacePrefixBytes + sizeof(std::uint64_t) || !is_number(*entry_) ||
        kNumberBytes >= large_value_bytes_)
      return 0;
    const Bytes prefix(first.substr(0, first.size() - sizeof(std::uint64_t)));
    const Bytes until = end.empty() ? Bytes() : make_full_key(id_, end);
    NumberRun run(prefix, entry_->value.front() == kFloatTag, columns, sequences_);
    if (!take_from_run(until, run)) return run.size();
    valid_ = false;
    while (run.room() > 0 && take_from_merge(until, run)) {
    }
    settle();
    return run.size();
  }

  bool take_summary(ByteView end, NumberSummary& summary, const SummaryTest& wanted) override {
    if (!valid_ || !keep_current()) return false;
    if (!at_group_) return false;
    const ByteView far = direction_ == Direction::Forward ? group_.last : group_.first;
    if (!(end.empty() || lies_before(user_key_of(far), end)) || !is_group_shown() ||
        (wanted && !wanted(group_.numbers))) {
      read_group();
      return false;
    }
    summary = group_.numbers;
    skip_group(far);
    return true;
  }

  TakenSums take_window_sums(ByteView end, std::uint64_t every, std::uint64_t phase,
                             WindowSums& sums, NumberColumns& columns) override {
    if (!valid_ || !keep_current() || !at_group_ || direction_ != Direction::Forward ||
        !is_cut_by(group_.numbers, every) || !is_group_shown() ||
        !(end.empty() || user_key_of(group_.last) < end))
      return TakenSums::Nothing;
    WholeGroup group = group_;
    if (tables_.find_sums(group, every, phase, sums, sums_admission_)) {
      skip_group(group.last);
      return TakenSums::Sums;
    }
    const Bytes behind_group = behind(group.last);
    take_numbers(user_key_of(behind_group), columns);
    const bool is_whole = columns.size() == group.numbers.count && columns.is_float &&
                          columns.ordinals.front() == group.numbers.first_ordinal &&
                          columns.ordinals.back() == group.numbers.last_ordinal;
    if (!is_whole) return columns.empty() ? TakenSums::Nothing : TakenSums::Numbers;
    if (!sum_windows(columns, every, phase, sums)) return TakenSums::Numbers;
    if (sums_admission_.admits) tables_.keep_sums(group, sums);
    return TakenSums::Sums;
  }

  void seek(ByteView key) override {
    if (!status_.ok() || !keep_current()) return;
    Bytes target = make_full_key(id_, key);
    const bool forward = direction_ == Direction::Forward;
    valid_ = false;
    at_group_ = false;
    if (forward ? !range_.upper.empty() && target >= range_.upper : target < range_.lower) return;
    if (forward && target < range_.lower) target = range_.lower;
    if (!forward && !range_.upper.empty() && target > range_.upper) target = range_.upper;
    if (on_damage_) {
      run_ = {};
      left_.clear();
      at_range_ = range_;
      pass_until(target);
      if (!std::exchange(at_whole_range_, true)) merge_ = make_merge_(at_, range_);
      is_past_damage_ = false;
    }
    merge_->seek(target);
    settle();
  }

 private:
  // Looks what is hidden anew where something was revoked. False: the whole namespace was.
  bool keep_current() {
    const std::uint64_t count = host_.revocations.count();
    return count == revocations_ || renew(count);
  }
  bool renew(std::uint64_t count) {
    status_ = host_.renew(at_, expiry_);
    hidden_ = HiddenRanges(at_);
    revocations_ = count;
    if (!status_.ok()) valid_ = false;
    return status_.ok();
  }

  std::unique_ptr<LargeValue> watched(std::unique_ptr<LargeValue> value) const {
    return std::make_unique<ScanLargeValue>(std::move(value), at_, host_, Bytes(entry_->full_key),
                                            revocations_);
  }

  bool is_large() const { return entry_->value.size() >= large_value_bytes_; }

  bool is_shown(const EntryView& entry) const {
    return entry.kind == EntryKind::Put && entry.sequence > at_.newer_than &&
           (hidden_.empty() || !hidden_.hides(entry.full_key, entry.sequence)) &&
           (expiry_.empty() || !expiry_.hides(entry.full_key));
  }

  // The first entry of run_ from `index` on that the caller is to see.
  bool find_in_run(std::size_t index) {
    for (; index < run_.size(); ++index) {
      if (!is_shown(run_[index])) continue;
      entry_ = &run_[index];
      return true;
    }
    return false;
  }

  static constexpr std::size_t kNumberBytes = 1 + sizeof(std::uint64_t);

  static bool is_number(const EntryView& entry) {
    return entry.value.size() == kNumberBytes &&
           (entry.value.front() == kFloatTag || entry.value.front() == kIntegerTag);
  }

  bool lies_before(ByteView a, ByteView b) const {
    return direction_ == Direction::Forward ? a < b : a > b;
  }

  // Takes what is left of run_, from entry_ on. False: it stands on one that is not of these.
  bool take_from_run(ByteView until, NumberRun& run) {
    const char tag = run.columns.is_float ? kFloatTag : kIntegerTag;
    for (; entry_ != run_.data() + run_.size(); ++entry_) {
      const EntryView& entry = *entry_;
      if (!is_shown(entry)) continue;
      if (run.room() == 0 || !is_number(entry) || entry.value.front() != tag ||
          entry.full_key.size() != run.prefix.size() + sizeof(std::uint64_t) ||
          !entry.full_key.starts_with(run.prefix) ||
          (!until.empty() && !lies_before(entry.full_key, until)))
        return false;
      run.add(ordinal_in(entry.full_key), decode_fixed64(entry.value.data() + 1), entry.sequence);
    }
    if (on_damage_) pass(run_.back().full_key);
    run_ = {};
    return true;
  }

  // Takes what the merge has at hand, without what is not shown. False: it has nothing.
  bool take_from_merge(ByteView until, NumberRun& run) {
    const std::size_t before = run.size();
    if (merge_->take_numbers(until, run) == 0) return false;
    NumberColumns& columns = run.columns;
    Bytes first(run.prefix);
    first.resize(run.prefix.size() + sizeof(std::uint64_t));
    Bytes last = first;
    store_ordinal(first.data() + run.prefix.size(), columns.ordinals[before]);
    store_ordinal(last.data() + run.prefix.size(), columns.ordinals.back());
    if (on_damage_) pass(last);
    if (at_.newer_than == 0 &&
        (expiry_.empty() || !expiry_.may_hide(std::min(first, last), last)) &&
        (hidden_.empty() || !hidden_.touches(std::min(first, last), std::max(first, last))))
      return true;
    std::size_t kept = before;
    for (std::size_t i = before; i < run.size(); ++i) {
      store_ordinal(last.data() + run.prefix.size(), columns.ordinals[i]);
      if (!is_shown({last, run.sequences[i], EntryKind::Put, {}})) continue;
      columns.ordinals[kept] = columns.ordinals[i];
      columns.bits[kept] = columns.bits[i];
      run.sequences[kept++] = run.sequences[i];
    }
    columns.ordinals.resize(kept);
    columns.bits.resize(kept);
    run.sequences.resize(kept);
    return true;
  }

  // All of the group before which the merge stands, and nothing else.
  bool is_group_shown() const {
    return group_.sequence_max <= at_.visible &&
           (hidden_.empty() || !hidden_.touches(group_.first, group_.last)) &&
           (expiry_.empty() || !expiry_.hides(group_.first));
  }

  // Behind the group before which the merge stands, whose other end is `far`.
  void skip_group(ByteView far) {
    if (on_damage_) pass(far);
    at_group_ = false;
    merge_->skip_group();
    settle();
  }

  // Stands on an entry then, or is not valid.
  void read_group() {
    while (at_group_) settle(true);
  }

  // `reads`: the next group, whatever is known of it.
  void settle(bool reads = false) {
    valid_ = false;
    at_group_ = false;
    for (;;) {
      if (on_damage_ && !run_.empty()) pass(run_.back().full_key);
      run_ = {};
      while (merge_->valid() && (expiry_.empty() || skip_expired())) {
        if (summarizes_ && !std::exchange(reads, false) && merge_->whole_group(group_) &&
            is_group_shown()) {
          valid_ = at_group_ = true;
          return;
        }
        run_ = merge_->take();
        if (find_in_run(0)) {
          valid_ = true;
          return;
        }
        if (on_damage_ && !run_.empty()) pass(run_.back().full_key);
      }
      run_ = {};
      if (!on_damage_ || !goes_on()) break;
    }
    if (status_.ok() && !is_past_damage_ && !merge_->status().ok())
      status_ = host_.explain(merge_->status());
  }

  // What is left of the range begins behind `full_key` (reverse: ends before it).
  void pass(ByteView full_key) {
    if (direction_ == Direction::Forward) {
      at_range_.lower = behind(full_key);
    } else {
      at_range_.upper = full_key;
    }
  }
  // The same for a seek, which comes to `target` itself.
  void pass_until(ByteView target) {
    if (direction_ == Direction::Forward) {
      at_range_.lower = target;
    } else if (range_.upper.empty() || target < range_.upper) {
      at_range_.upper = behind(target);
    }
  }

  bool is_behind_part(ByteView target) const {
    return direction_ == Direction::Forward ? !at_range_.upper.empty() && target >= at_range_.upper
                                            : target < at_range_.lower;
  }

  // The merge has ended. Whether another part of the range is to be merged.
  bool goes_on() {
    if (!merge_->status().ok()) {
      if (!step_over_damage()) return false;
      // Where the damage reaches over both ends of the range, no other merge takes its place.
      is_past_damage_ = true;
      at_whole_range_ = false;
    }
    while (!left_.empty()) {
      at_range_ = std::move(left_.back());
      left_.pop_back();
      at_whole_range_ = false;
      if (at_range_.empty()) continue;
      merge_ = make_merge_(at_, at_range_);
      is_past_damage_ = false;
      return true;
    }
    return false;
  }

  // Two parts are left: what lies before the damage, where other tables may have entries that were
  // not returned yet, and what lies behind it.
  bool step_over_damage() {
    Bytes first;
    Bytes last;
    if (!merge_->damaged_keys(first, last)) return false;
    Status why = host_.explain(merge_->status());
    // Files of a drive that was pulled out cannot be read where they are open still.
    const bool is_away = why.code() == StatusCode::Unavailable ||
                         (why.code() == StatusCode::IoError && why.drive() == Drive::Values);
    if (passes_drive_away_ && is_away) why = std::move(why).as(StatusCode::Unavailable);
    if (why.code() != StatusCode::Corruption && !(passes_drive_away_ && is_away)) {
      status_ = why;
      return false;
    }
    const bool reaches_end = !at_range_.upper.empty() && behind(last) >= at_range_.upper;
    if (last < at_range_.lower || (!at_range_.upper.empty() && first >= at_range_.upper))
      return false;
    if (first < at_range_.lower) first = at_range_.lower;
    FullKeyRange before{at_range_.lower, first};
    FullKeyRange after{reaches_end ? at_range_.upper : behind(last), at_range_.upper};
    const bool forward = direction_ == Direction::Forward;
    left_.push_back(forward ? after : before);
    left_.push_back(forward ? std::move(before) : std::move(after));
    const bool is_of_others = namespace_of(last) != id_ || reaches_end;
    on_damage_({Bytes(user_key_of(first)),
                is_of_others ? std::nullopt : std::optional<Bytes>(user_key_of(last)), why});
    return true;
  }

  // Past what has expired of each series, in one step. False at the end.
  bool skip_expired() {
    while (merge_->valid() && expiry_.hides(merge_->full_key())) {
      Bytes target(merge_->full_key());
      char* const ordinal = target.data() + target.size() - sizeof(std::uint64_t);
      const bool forward = direction_ == Direction::Forward;
      if (!forward && ordinal_in(target) == 0) {
        merge_->skip();
        continue;
      }
      store_ordinal(ordinal, forward ? expiry_.horizon(scope_part(target)) : 0);
      // What lies behind the range is not the iterator's.
      if (forward && !range_.upper.empty() && target > range_.upper) target = range_.upper;
      if (!forward && target < range_.lower) target = range_.lower;
      // Nor, of a part of it, what lies behind that, which may be damaged.
      if (!at_whole_range_ && is_behind_part(target)) return false;
      merge_->seek(target);
      if (!forward && merge_->valid() && merge_->full_key() == ByteView(target)) merge_->skip();
    }
    return merge_->valid();
  }

  VisibleView at_;
  TableCache& tables_;
  const MakeMerge make_merge_;
  HiddenRanges hidden_;
  ExpiryView expiry_;
  std::unique_ptr<MergeCursor> merge_;
  NamespaceId id_;
  FullKeyRange range_;
  Direction direction_;
  std::uint64_t large_value_bytes_;
  bool summarizes_;
  const std::function<void(const DamagedKeys&)> on_damage_;
  const bool passes_drive_away_;
  const ScanHost host_;
  std::uint64_t revocations_;  // as counted when that was looked at
  // Where there is on_damage_: what merge_ has not returned yet of the part that it merges, and
  // other parts, the next of them last.
  FullKeyRange at_range_;
  std::vector<FullKeyRange> left_;
  bool at_whole_range_ = true;        // merge_ is of the whole range
  bool is_past_damage_ = false;       // merge_ met it, and nothing else is left
  std::span<const EntryView> run_;    // what the merge gave last
  const EntryView* entry_ = nullptr;  // of run_, while valid_
  bool valid_ = false;
  bool at_group_ = false;  // valid_, but before the merge's next group, unread, of which group_ is
  WholeGroup group_;
  SumsAdmission sums_admission_;
  std::vector<SequenceNumber> sequences_;  // NumberRun's
  Status status_;
};

}  // namespace

std::unique_ptr<MergeCursor> merge_view(const VisibleView& at, TableCache& tables,
                                        const FullKeyRange& range, Direction direction,
                                        bool fill_cache, std::uint64_t large_value_bytes) {
  return std::make_unique<MergeCursor>(
      std::make_unique<ViewSources>(at, tables, range, direction, fill_cache, large_value_bytes),
      direction);
}

std::unique_ptr<Iterator> make_scan(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                                    NamespaceId id, const KeyRange& range,
                                    const ReadOptions& options, ScanHost host,
                                    std::uint64_t revocations) {
  FullKeyRange full = full_key_range(id, range);
  MakeMerge make_merge = [&tables, direction = options.direction, fill_cache = options.fill_cache,
                          large_value_bytes = options.large_value_bytes](const VisibleView& now,
                                                                         const FullKeyRange& part) {
    return merge_view(now, tables, part, direction, fill_cache, large_value_bytes);
  };
  auto merge = make_merge(at, full);
  if (!options.on_damage) make_merge = nullptr;
  return std::make_unique<ScanIterator>(at, tables, std::move(merge), std::move(expiry), id,
                                        std::move(full), options, std::move(make_merge),
                                        std::move(host), revocations);
}

}  // namespace edgecase::engine
