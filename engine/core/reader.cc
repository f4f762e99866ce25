#include "core/reader.h"

#include <algorithm>
#include <utility>

#include "base/memory_value.h"
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
                         const FullKeyRange& range, Direction direction, bool fill_cache,
                         std::uint64_t large_value_bytes) {
  MergeSource source;
  source.smallest = std::max(table->smallest, range.lower);
  source.largest = range.upper.empty() ? table->largest : std::min(table->largest, range.upper);
  source.sequence_min = table->sequence_min;
  source.sequence_max = table->sequence_max;
  source.open = [&tables, table = std::move(table), range, direction, fill_cache,
                 large_value_bytes] {
    return tables.cursor(table, range.lower, range.upper, direction, fill_cache, large_value_bytes);
  };
  return source;
}

// What was erased, bytes or key, is no damage.
Status explain_large(const std::function<Status(Status)>& explain, const Status& failure) {
  return failure.code() == StatusCode::NotFound ? failure : explain(failure);
}

// Keeps the view that it is read from, and tells what went wrong as a scan does.
class ScanLargeValue final : public LargeValue {
 public:
  ScanLargeValue(std::unique_ptr<LargeValue> inner, std::shared_ptr<const ReadView> view,
                 const std::function<Status(Status)>& explain)
      : view_(std::move(view)), inner_(std::move(inner)), explain_(explain) {}

  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  std::uint64_t sequence() const override { return inner_->sequence(); }
  Result<ByteView> next_piece() override {
    auto piece = inner_->next_piece();
    if (!piece.ok()) return explain_large(explain_, piece.status());
    return piece;
  }

 private:
  const std::shared_ptr<const ReadView> view_;
  const std::unique_ptr<LargeValue> inner_;
  const std::function<Status(Status)> explain_;
};

// Walks a merge and hides deletes.
class ScanIterator final : public Iterator {
 public:
  ScanIterator(VisibleView at, std::unique_ptr<MergeCursor> merge, ExpiryView expiry,
               NamespaceId id, FullKeyRange range, const ReadOptions& options,
               std::function<Status(Status)> explain)
      : at_(std::move(at)),
        hidden_(at_),
        expiry_(std::move(expiry)),
        merge_(std::move(merge)),
        id_(id),
        range_(std::move(range)),
        direction_(options.direction),
        large_value_bytes_(options.large_value_bytes),
        explain_(std::move(explain)) {
    settle(Step::None);
  }

  bool valid() const override { return valid_; }
  const Status& status() const override { return status_; }
  ByteView key() const override { return user_key_of(entry_->full_key); }
  ByteView value() override { return valid_ && !is_large() ? entry_->value : ByteView(); }

  Result<std::unique_ptr<LargeValue>> large_value() override {
    if (!valid_ || large_value_bytes_ == kNoLargeValues) return std::unique_ptr<LargeValue>();
    auto large = merge_->large_value();
    if (!large.ok()) return explain_large(explain_, large.status());
    if (*large != nullptr) {
      return std::unique_ptr<LargeValue>(
          std::make_unique<ScanLargeValue>(*std::move(large), at_.view, explain_));
    }
    if (!is_large()) return std::unique_ptr<LargeValue>();
    // Of a memtable, where it stays.
    return std::unique_ptr<LargeValue>(
        std::make_unique<MemoryValue>(entry_->value, entry_->sequence, at_.view));
  }

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

  bool is_large() const { return entry_->value.size() >= large_value_bytes_; }

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
  std::uint64_t large_value_bytes_;
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

// Tables come with the largest sequence first: behind one that can hold nothing newer than what was
// found nothing newer is found.
Result<std::optional<FoundEntry>> find_in_tables(const Version& version, TableCache& tables,
                                                 ByteView full_key, bool fill_cache,
                                                 std::uint8_t& level) {
  std::optional<FoundEntry> best;
  const auto look_into = [&](const TablePointer& table) -> Status {
    EC_ASSIGN_OR_RETURN(std::optional<FoundEntry> found, tables.get(table, full_key, fill_cache));
    if (found && (!best || found->sequence > best->sequence)) {
      best = std::move(found);
      level = table->level;
    }
    return ok();
  };
  for (const TablePointer& table : version.level0) {
    if (best && best->sequence > table->sequence_max) break;
    if (full_key < ByteView(table->smallest) || full_key > ByteView(table->largest)) continue;
    EC_TRY(look_into(table));
  }
  const auto tree = version.trees.find(namespace_of(full_key));
  if (tree == version.trees.end()) return best;
  for (const Run& run : tree->second) {
    if (best && best->sequence > run.sequence_max) break;
    if (const TablePointer* table = run.find(full_key)) EC_TRY(look_into(*table));
  }
  return best;
}

}  // namespace

namespace {

std::optional<FoundEntry> find_in_memory(const ReadView& view, SequenceNumber visible,
                                         ByteView full_key) {
  if (auto found = view.active->get(full_key, visible)) return found;
  for (const auto& memtable : view.immutables) {
    if (auto found = memtable->get(full_key, visible)) return found;
  }
  return std::nullopt;
}

Result<std::optional<FoundEntry>> find_any(const VisibleView& at, TableCache& tables,
                                           ByteView full_key, bool fill_cache, HitCounters& hits) {
  if (auto found = find_in_memory(*at.view, at.visible, full_key)) {
    hits.memtables.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  std::uint8_t level = 0;
  auto found = find_in_tables(*at.view->version, tables, full_key, fill_cache, level);
  if (found.ok() && *found) hits.levels[level].fetch_add(1, std::memory_order_relaxed);
  return found;
}

}  // namespace

Result<std::optional<FoundEntry>> find_entry(const VisibleView& at, TableCache& tables,
                                             ByteView full_key, bool fill_cache,
                                             HitCounters& hits) {
  auto found = find_any(at, tables, full_key, fill_cache, hits);
  // What is older than the entry that is hidden is hidden, too.
  if (found.ok() && *found && is_hidden(at, full_key, (*found)->sequence)) found->reset();
  return found;
}

std::unique_ptr<MergeCursor> merge_view(const VisibleView& at, TableCache& tables,
                                        const FullKeyRange& range, Direction direction,
                                        bool fill_cache, std::uint64_t large_value_bytes) {
  std::vector<MergeSource> sources;
  if (!range.empty()) {
    const ReadView& view = *at.view;
    sources.push_back(memtable_source(view.active, range, direction, at.visible));
    for (const auto& memtable : view.immutables)
      sources.push_back(memtable_source(memtable, range, direction, at.visible));
    for (const auto& table : view.version->tables) {
      if (intersects(*table, range))
        sources.push_back(
            table_source(tables, table, range, direction, fill_cache, large_value_bytes));
    }
  }
  return std::make_unique<MergeCursor>(std::move(sources), direction);
}

std::unique_ptr<Iterator> make_scan(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                                    NamespaceId id, const KeyRange& range,
                                    const ReadOptions& options,
                                    std::function<Status(Status)> explain) {
  FullKeyRange full = full_key_range(id, range);
  auto merge = merge_view(at, tables, full, options.direction, options.fill_cache,
                          options.large_value_bytes);
  return std::make_unique<ScanIterator>(at, std::move(merge), std::move(expiry), id,
                                        std::move(full), options, std::move(explain));
}

}  // namespace edgecase::engine
