#include "core/reader.h"

#include <algorithm>
#include <utility>

#include "core/hidden.h"

namespace edgecase::engine {
namespace {

bool intersects(const TableMetadata& table, const FullKeyRange& range) {
  return table.largest >= range.lower && (range.upper.empty() || table.smallest < range.upper);
}

MergeSource memtable_source(std::shared_ptr<const Memtable> memtable, const FullKeyRange& range,
                            Direction direction, SequenceNumber visible) {
  MergeSource source;
  source.sequence_min = memtable->first_sequence();
  source.sequence_max = memtable->last_sequence();
  source.open = [memtable = std::move(memtable), range, direction, visible] {
    return Memtable::cursor(memtable, range.lower, range.upper, direction, visible);
  };
  return source;
}

MergeSource table_source(TableCache& tables, std::shared_ptr<const TableMetadata> table,
                         const FullKeyRange& range, Direction direction, bool fill_cache) {
  MergeSource source;
  source.smallest = std::max(table->smallest, range.lower);
  source.largest = range.upper.empty() ? table->largest : std::min(table->largest, range.upper);
  source.sequence_min = table->sequence_min;
  source.sequence_max = table->sequence_max;
  source.open = [&tables, table = std::move(table), range, direction, fill_cache] {
    return tables.cursor(table, range.lower, range.upper, direction, fill_cache);
  };
  return source;
}

// Walks a merge and hides deletes.
class ScanIterator final : public Iterator {
 public:
  ScanIterator(VisibleView at, std::unique_ptr<MergeCursor> merge, ExpiryView expiry,
               NamespaceId id, FullKeyRange range, Direction direction,
               std::function<Status(Status)> explain)
      : at_(std::move(at)),
        hidden_(at_),
        expiry_(std::move(expiry)),
        merge_(std::move(merge)),
        id_(id),
        range_(std::move(range)),
        direction_(direction),
        explain_(std::move(explain)) {
    settle(Step::None);
  }

  bool valid() const override { return valid_; }
  const Status& status() const override { return status_; }
  ByteView key() const override { return user_key_of(entry_->full_key); }
  ByteView value() override { return valid_ ? entry_->value : ByteView(); }

  void next() override {
    if (!valid_) return;
    if (!find_in_run(static_cast<std::size_t>(entry_ - run_.data()) + 1)) settle(Step::Run);
  }

  void seek(ByteView key) override {
    if (!status_.ok()) return;
    Bytes target = make_full_key(id_, key);
    const bool forward = direction_ == Direction::Forward;
    valid_ = false;
    if (forward ? !range_.upper.empty() && target >= range_.upper : target < range_.lower) return;
    if (forward && target < range_.lower) target = range_.lower;
    if (!forward && !range_.upper.empty() && target > range_.upper) target = range_.upper;
    merge_->seek(target);
    settle(Step::None);
  }

 private:
  // What to step over first: nothing, or all of run_.
  enum class Step : unsigned char { None, Run };

  bool is_shown(const EntryView& entry) const {
    return entry.kind == EntryKind::Put &&
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

  void settle(Step step) {
    valid_ = false;
    for (;; step = Step::Run) {
      if (step == Step::Run) merge_->skip(run_.size());
      run_ = {};
      if (!merge_->valid() || (!expiry_.empty() && !skip_expired())) break;
      if (!merge_->load().ok()) break;
      run_ = merge_->loaded_run({});
      if (run_.empty()) {
        single_ = {merge_->full_key(), merge_->sequence(), merge_->kind(), merge_->value()};
        run_ = std::span(&single_, 1);
      }
      if (find_in_run(0)) {
        valid_ = true;
        return;
      }
    }
    if (!merge_->status().ok()) status_ = explain_(merge_->status());
  }

  // Past what has expired of each series, in one step. False at the end.
  bool skip_expired() {
    while (merge_->valid() && expiry_.hides(merge_->full_key())) {
      Bytes target(merge_->full_key());
      char* const ordinal = target.data() + target.size() - sizeof(std::uint64_t);
      const bool forward = direction_ == Direction::Forward;
      if (!forward && ordinal_in(target) == 0) {
        merge_->next();
        continue;
      }
      store_ordinal(ordinal, forward ? expiry_.horizon(scope_part(target)) : 0);
      // What lies behind the range is not the iterator's.
      if (forward && !range_.upper.empty() && target > range_.upper) target = range_.upper;
      if (!forward && target < range_.lower) target = range_.lower;
      merge_->seek(target);
      if (!forward && merge_->valid() && merge_->full_key() == ByteView(target)) merge_->next();
    }
    return merge_->valid();
  }

  VisibleView at_;
  const HiddenRanges hidden_;
  const ExpiryView expiry_;
  std::unique_ptr<MergeCursor> merge_;
  NamespaceId id_;
  FullKeyRange range_;
  Direction direction_;
  std::function<Status(Status)> explain_;
  // Where the merge stands and what it has decoded behind it; the merge moves when that is used up.
  std::span<const EntryView> run_;
  EntryView single_;                  // the whole of run_ where the merge offers none
  const EntryView* entry_ = nullptr;  // of run_, while valid_
  bool valid_ = false;
  Status status_;
};

}  // namespace

FullKeyRange full_key_range(NamespaceId id, const KeyRange& range) {
  FullKeyRange full;
  full.lower = make_full_key(id, range.lower);
  if (!range.upper.empty()) {
    full.upper = make_full_key(id, range.upper);
  } else if (id != UINT32_MAX) {
    full.upper = make_full_key(id + 1, {});
  }
  return full;
}

namespace {

// The newest entry of a key that was found so far, and where.
struct Newest {
  bool is_there = false;
  FoundEntry entry;
  std::uint8_t level = 0;
};

Status look_into(const TableMetadata& table, TableCache& tables, ByteView full_key, bool fill_cache,
                 Newest& newest) {
  if (!newest.is_there) {
    EC_ASSIGN_OR_RETURN(newest.is_there, tables.find(table, full_key, fill_cache, newest.entry));
    newest.level = table.level;
    return ok();
  }
  FoundEntry other;
  EC_ASSIGN_OR_RETURN(const bool is_there, tables.find(table, full_key, fill_cache, other));
  if (is_there && other.sequence > newest.entry.sequence)
    newest = {true, std::move(other), table.level};
  return ok();
}

// Tables come with the largest sequence first: behind one that can hold nothing newer than what was
// found nothing newer is found.
Status find_in_tables(const Version& version, TableCache& tables, ByteView full_key,
                      bool fill_cache, Newest& newest) {
  const auto is_older = [&newest](SequenceNumber sequence_max) {
    return newest.is_there && newest.entry.sequence > sequence_max;
  };
  for (const TablePointer& table : version.level0) {
    if (is_older(table->sequence_max)) break;
    EC_TRY(look_into(*table, tables, full_key, fill_cache, newest));
  }
  const auto tree = version.trees.find(namespace_of(full_key));
  if (tree == version.trees.end()) return ok();
  for (const Run& run : tree->second) {
    if (is_older(run.sequence_max)) break;
    if (const TablePointer* table = run.find(full_key))
      EC_TRY(look_into(**table, tables, full_key, fill_cache, newest));
  }
  return ok();
}

bool find_in_memory(const ReadView& view, SequenceNumber visible, ByteView full_key,
                    FoundEntry& entry) {
  const auto look = [&](const Memtable& memtable) {
    auto found = memtable.get(full_key, visible);
    if (found) entry = *std::move(found);
    return found.has_value();
  };
  return look(*view.active) || std::any_of(view.immutables.begin(), view.immutables.end(),
                                           [&](const auto& memtable) { return look(*memtable); });
}

}  // namespace

Result<bool> find_entry(const VisibleView& at, TableCache& tables, ByteView full_key,
                        bool fill_cache, HitCounters& hits, FoundEntry& entry) {
  if (find_in_memory(*at.view, at.visible, full_key, entry)) {
    hits.memtables.fetch_add(1, std::memory_order_relaxed);
  } else {
    Newest newest;
    EC_TRY(find_in_tables(*at.view->version, tables, full_key, fill_cache, newest));
    if (!newest.is_there) return false;
    hits.levels[newest.level].fetch_add(1, std::memory_order_relaxed);
    entry = std::move(newest.entry);
  }
  // What is older than the entry that is hidden is hidden, too.
  return !is_hidden(at, full_key, entry.sequence);
}

std::unique_ptr<MergeCursor> merge_view(const VisibleView& at, TableCache& tables,
                                        const FullKeyRange& range, Direction direction,
                                        bool fill_cache) {
  std::vector<MergeSource> sources;
  if (!range.empty()) {
    const ReadView& view = *at.view;
    sources.push_back(memtable_source(view.active, range, direction, at.visible));
    for (const auto& memtable : view.immutables)
      sources.push_back(memtable_source(memtable, range, direction, at.visible));
    for (const auto& table : view.version->tables) {
      if (intersects(*table, range))
        sources.push_back(table_source(tables, table, range, direction, fill_cache));
    }
  }
  return std::make_unique<MergeCursor>(std::move(sources), direction);
}

std::unique_ptr<Iterator> make_scan(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                                    NamespaceId id, const KeyRange& range, Direction direction,
                                    bool fill_cache, std::function<Status(Status)> explain) {
  FullKeyRange full = full_key_range(id, range);
  auto merge = merge_view(at, tables, full, direction, fill_cache);
  return std::make_unique<ScanIterator>(at, std::move(merge), std::move(expiry), id,
                                        std::move(full), direction, std::move(explain));
}

}  // namespace edgecase::engine
