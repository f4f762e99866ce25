#include "compaction/merge_job.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {
namespace {

constexpr std::size_t kNoSlot = SIZE_MAX;

// A group of whose entries a smaller part is dead, or deletes that can go, is not worth writing
// again.
constexpr std::uint64_t kDeadShare = 10;

// A step in which `rule`, which may be null, is asked.
class RuleStep {
 public:
  explicit RuleStep(DropRule* rule) : rule_(rule) {
    if (rule_ != nullptr) rule_->begin_step();
  }
  ~RuleStep() {
    if (rule_ != nullptr) rule_->end_step();
  }
  RuleStep(const RuleStep&) = delete;
  RuleStep& operator=(const RuleStep&) = delete;

 private:
  DropRule* const rule_;
};

}  // namespace

MergeJob::MergeJob(TableCache& tables, TableWriterContext context, MergePlan plan, DropRule* rule)
    : tables_(tables),
      plan_(std::move(plan)),
      rule_(rule),
      threshold_bytes_(context.options.coalesce_threshold_bytes),
      expiry_(context.expiry),
      output_(std::move(context)),
      singles_(std::make_unique<RecordMerge>(tables, plan_.singles)),
      place_{plan_.output_level, plan_.output_run, plan_.one_sequence, plan_.purged_sequence,
             plan_.rule_epoch,   plan_.life,       plan_.barriers,     plan_.table_item_bytes} {
  if (!plan_.singles.empty()) newer_groups_.emplace(tables, plan_.newer_groups);
}

Result<bool> MergeJob::step(std::uint64_t written_bytes, std::uint64_t turns) {
  const RuleStep rule_step(rule_);
  const std::uint64_t stop_bytes = output_.bytes_written() + written_bytes;
  while (phase_ != Phase::Done && turns > 0 && output_.bytes_written() < stop_bytes) {
    --turns;
    EC_TRY(turn(turns));
  }
  return phase_ == Phase::Done;
}

// Takes more of `turns` where it goes on for long.
Status MergeJob::turn(std::uint64_t& turns) {
  if (phase_ == Phase::Heads) return write_head();
  if (phase_ == Phase::Rests) return write_rest();
  RecordMerge& merge = phase_ == Phase::Singles ? *singles_ : *groups_;
  EC_TRY(merge.status());
  if (phase_ == Phase::Groups && slice_is_done()) return end_slice();
  if (!merge.valid()) return next_phase();
  if (phase_ == Phase::Singles) return merge_single();
  if (plan_.mode == MergeMode::Sink) return sink_group();
  return groups_->top().is_open() ? merge_entries(turns) : merge_group();
}

Status MergeJob::next_phase() {
  counters_.runs += output_.slots();
  EC_TRY(output_.end());
  entered_ = false;
  if (phase_ == Phase::Singles) {
    singles_.reset();
    const bool cleans = plan_.mode == MergeMode::Clean;
    newer_groups_.emplace(tables_, cleans ? plan_.newer_groups : std::vector<MergeInput>(),
                          plan_.groups);
    newer_singles_ = std::make_unique<RecordMerge>(tables_, plan_.singles);
    phase_ = Phase::Heads;
    return ok();
  }
  newer_groups_.reset();
  groups_.reset();
  newer_singles_.reset();
  phase_ = Phase::Done;
  if (!leaves_rest_) {
    merged_end_ = output_.closed_tables();
    for (const auto* inputs : {&plan_.groups, &plan_.singles})
      for (const MergeInput& input : *inputs)
        for (const TablePointer& table : input) replaced_tables_.push_back(table->number);
  }
  return output_.finish();
}

// Tables are of one namespace: what is open is closed when another begins.
Status MergeJob::enter(ByteView key, TableKind kind) {
  const NamespaceId id = namespace_of(key);
  if (entered_ && id == namespace_id_) return ok();
  if (entered_) {
    counters_.runs += output_.slots();
    EC_TRY(output_.end());
  }
  output_.begin(id, kind, place_);
  namespace_id_ = id;
  entered_ = true;
  slot_of_input_.assign(plan_.groups.size(), kNoSlot);
  return ok();
}

Status MergeJob::merge_single() {
  EC_TRY(enter(singles_->top().key(), TableKind::Singles));
  const std::vector<std::size_t>& equals = singles_->equals();
  std::size_t newest = equals.front();
  for (const std::size_t input : equals) {
    if (singles_->cursor(input).record().sequence_max >
        singles_->cursor(newest).record().sequence_max)
      newest = input;
  }
  counters_.dropped_items += equals.size() - 1;
  RecordCursor& cursor = singles_->cursor(newest);
  const UMetaRecord& record = cursor.record();
  EC_ASSIGN_OR_RETURN(const bool dead, is_dead_single(record));
  // There is nothing to inspect in a single value but where it lies.
  const bool misplaced = !dead && plan_.mode == MergeMode::Relocate && rule_ != nullptr &&
                         rule_->judge_item(record) == DropRule::Verdict::Rewrite;
  if (dead) {
    ++counters_.dropped_items;
  } else if (misplaced || plan_.evacuated.contains(record.pointer.file_number)) {
    EC_TRY(copy(cursor, misplaced));
  } else {
    EC_TRY(output_.carry(0, record));
    ++counters_.carried_items;
  }
  for (const std::size_t input : equals) singles_->cursor(input).next_record();
  singles_->settle_equals();
  return ok();
}

Result<bool> MergeJob::is_dead_single(const UMetaRecord& record) {
  if (rule_ != nullptr && (rule_->judge_item(record) == DropRule::Verdict::Drop ||
                           rule_->drops_entry(record.first, record.sequence_max)))
    return true;
  // The key may have become a small value since, or a delete, which lies in a group.
  EC_ASSIGN_OR_RETURN(const bool superseded,
                      newer_groups_->supersede(record.first, record.sequence_max));
  if (superseded) return true;
  if (plan_.mode == MergeMode::Sink || record.deletes == 0 ||
      may_hold_older(record.first, record.sequence_max))
    return false;
  const auto covers = [&](const TablePointer& table) {
    return ByteView(table->smallest) <= record.first && record.first <= ByteView(table->largest);
  };
  for (const MergeInput& input : plan_.groups)
    if (std::any_of(input.begin(), input.end(), covers)) return false;
  ++counters_.dropped_deletes;
  return true;
}

bool MergeJob::may_hold_older(ByteView full_key, SequenceNumber sequence) const {
  const auto may = [&](const TablePointer& table) {
    return table->sequence_min < sequence && ByteView(table->smallest) <= full_key &&
           full_key <= ByteView(table->largest);
  };
  return std::any_of(plan_.others.begin(), plan_.others.end(), may);
}

Status MergeJob::sink_group() {
  RecordCursor& cursor = groups_->top();
  const UMetaRecord& record = cursor.record();
  EC_TRY(enter(record.first, TableKind::Groups));
  if (rule_ != nullptr && rule_->judge_item(record) == DropRule::Verdict::Drop) {
    ++counters_.dropped_items;
  } else {
    EC_TRY(output_.carry(choose_slot(record), record));
    ++counters_.carried_items;
  }
  cursor.next_record();
  groups_->settle();
  return ok();
}

// What overlaps nothing goes into the first run of its life class. Of the rest each input keeps to
// a run of its own, as long as there is room, so that runs keep their age.
std::size_t MergeJob::choose_slot(const UMetaRecord& record) {
  const LifeClass life = plan_.groups[groups_->top_input()].front()->life;
  std::size_t fitting = kNoSlot;
  std::size_t first = kNoSlot;
  bool fits_all = true;
  for (std::size_t slot = output_.slots(); slot-- > 0;) {
    if (output_.life_of(slot) != life) continue;
    first = slot;
    if (output_.fits(slot, record.first)) {
      fitting = slot;
    } else {
      fits_all = false;
    }
  }
  ByteView second;
  const bool alone = fits_all && (!groups_->second_key(second) || second > record.last);
  if (alone) return first != kNoSlot ? first : output_.begin_slot(life);
  std::size_t& kept = slot_of_input_[groups_->top_input()];
  if (kept == kNoSlot || !output_.fits(kept, record.first))
    kept = fitting != kNoSlot ? fitting : output_.begin_slot(life);
  return kept;
}

bool MergeJob::has_deletes_to_drop(const UMetaRecord& record) const {
  if (record.deletes == 0 || record.deletes * kDeadShare < record.entries) return false;
  return std::none_of(plan_.others.begin(), plan_.others.end(), [&](const TablePointer& table) {
    return table->sequence_min < record.sequence_max && ByteView(table->smallest) <= record.last &&
           record.first <= ByteView(table->largest);
  });
}

Status MergeJob::merge_group() {
  RecordCursor& cursor = groups_->top();
  const UMetaRecord& record = cursor.record();
  EC_TRY(enter(record.first, TableKind::Groups));
  const DropRule::Verdict verdict =
      rule_ != nullptr ? rule_->judge_item(record) : DropRule::Verdict::Keep;
  if (verdict == DropRule::Verdict::Drop) {
    ++counters_.dropped_items;
    cursor.next_record();
    groups_->settle();
    return ok();
  }
  ByteView second;
  // What reaches beyond the range is cut there.
  const bool overlaps =
      (groups_->second_key(second) && second <= record.last) || is_behind_range(record.last);
  // In a gap of an open item: cutting its entries apart must not leave crumbs.
  const bool crumbs = open_items_ > 0 && output_.gathered_bytes() > 0 &&
                      output_.gathered_bytes() < threshold_bytes_;
  const bool cleans = plan_.mode == MergeMode::Clean;
  if (cleans && !overlaps && open_items_ == 0) return clean_group();
  const bool rewrites =
      cleans || verdict == DropRule::Verdict::Rewrite || has_deletes_to_drop(record);
  if (!overlaps && !crumbs && !rewrites) {
    // Only what is covered goes: an item that lies around a range delete would otherwise be written
    // anew in every merge, and leave garbage that calls for the next one.
    if (verdict == DropRule::Verdict::Inspect) return clean_group();
    EC_TRY(carry(record));
    cursor.next_record();
    groups_->settle();
    return ok();
  }
  EC_TRY(cursor.open_item());
  ++open_items_;
  ++counters_.rewritten_items;
  groups_->settle();
  return ok();
}

// Reads the item to see what of it is dead: nothing, or too little, and it is carried all the same.
Status MergeJob::clean_group() {
  RecordCursor& cursor = groups_->top();
  const std::uint64_t entries = cursor.record().entries;
  EC_TRY(cursor.open_item());
  if (cursor.is_destroyed()) {
    ++counters_.dropped_items;
    cursor.next_record();
    groups_->settle();
    return ok();
  }
  EC_ASSIGN_OR_RETURN(const std::uint64_t dead, find_dead(cursor));
  const std::uint64_t share = plan_.mode == MergeMode::Clean ? kDeadShare : entries;
  if (dead * share < entries) {
    cursor.close_item();
    EC_TRY(carry(cursor.record()));
    cursor.next_record();
    groups_->settle();
    return ok();
  }
  ++counters_.rewritten_items;
  counters_.seen_entries += entries;
  counters_.superseded_entries += dead;
  EC_TRY(cursor.rewind_item());
  for (std::size_t i = 0; i < entries; ++i) {
    if (!dead_[i]) EC_TRY(emit_undropped(cursor.entry()));
    cursor.next_entry();
    EC_TRY(cursor.status());
  }
  groups_->settle();
  return ok();
}

// Fills dead_; leaves the cursor within the item.
Result<std::uint64_t> MergeJob::find_dead(RecordCursor& cursor) {
  const std::uint64_t entries = cursor.record().entries;
  std::uint64_t count = 0;
  dead_.assign(entries, false);
  for (std::size_t i = 0; i < entries; ++i) {
    const EntryView& entry = cursor.entry();
    const bool ruled_out = rule_ != nullptr && rule_->drops_entry(entry.full_key, entry.sequence);
    EC_ASSIGN_OR_RETURN(const bool superseded,
                        newer_groups_->supersede(entry.full_key, entry.sequence));
    dead_[i] = ruled_out || superseded;
    if (dead_[i]) ++count;
    if (i + 1 < entries) cursor.next_entry();
    EC_TRY(cursor.status());
  }
  return count;
}

Status MergeJob::carry(const UMetaRecord& record) {
  EC_TRY(output_.cut());
  if (plan_.evacuated.contains(record.pointer.file_number)) {
    return copy(groups_->top(), false);
  }
  ++counters_.carried_items;
  return output_.carry(0, record);
}

// What the cursor stands on, into another file. Of what was erased with its key there is nothing to
// copy.
Status MergeJob::copy(RecordCursor& cursor, bool misplaced) {
  EC_ASSIGN_OR_RETURN(const auto item, cursor.read_item());
  if (item == nullptr) {
    ++counters_.dropped_items;
    return ok();
  }
  ++counters_.copied_items;
  return output_.copy(cursor.record(), *item, expiry_of_copy(cursor.record(), misplaced));
}

// The expiry of the file it lay in, unless that was cut by other rules; by its first key where that
// tells.
ItemExpiry MergeJob::expiry_of_copy(const UMetaRecord& record, bool misplaced) const {
  const auto file = plan_.evacuated_expiry.find(record.pointer.file_number);
  ItemExpiry expiry = file == plan_.evacuated_expiry.end() ? ItemExpiry() : file->second;
  const bool has_times = misplaced || expiry.time_min_ns != kNeverNs;
  const ExpiryView of_namespace = expiry_.of_namespace(namespace_id_);
  // Or a file that was emptied of what was given up would seem to hold some still.
  if (expiry.time_min_ns != kNeverNs && !of_namespace.empty())
    expiry.time_min_ns =
        std::max(expiry.time_min_ns, of_namespace.given_up_before_ns(namespace_id_));
  const bool one_series = has_times && has_time(record.first) && has_time(record.last) &&
                          scope_part(record.first) == scope_part(record.last);
  if (!one_series) return expiry;
  ItemExpiry of_first = expiry_of_entry(of_namespace, GroupCodec::Series, record.first);
  const ItemExpiry of_last = expiry_of_entry(of_namespace, GroupCodec::Series, record.last);
  of_first.expiry_max_ns = of_last.expiry_max_ns;
  of_first.time_max_ns = of_last.time_max_ns;
  if (misplaced || of_first.bucket == expiry.bucket) return of_first;
  expiry.expiry_min_ns = of_first.expiry_min_ns;
  expiry.expiry_max_ns = std::max(expiry.expiry_max_ns, of_first.expiry_max_ns);
  return expiry;
}

// What of one item comes before all others' keys, up to where something is written: series come
// in stretches of each input.
Status MergeJob::merge_entries(std::uint64_t& turns) {
  RecordCursor& cursor = groups_->top();
  ByteView second;
  bool has_second = groups_->second_key(second);
  if (!plan_.upper.empty() && (!has_second || plan_.upper < second)) {
    second = plan_.upper;
    has_second = true;
  }
  if (plan_.mode == MergeMode::Clean || (has_second && cursor.key() == second))
    return merge_entry();
  const std::uint64_t written = output_.bytes_written();
  for (;; --turns) {
    ++counters_.seen_entries;
    EC_TRY(emit(cursor.entry()));
    cursor.next_entry();
    const bool goes_on =
        cursor.valid() && cursor.is_open() && (!has_second || cursor.key() < second);
    if (!goes_on || turns == 0 || output_.bytes_written() != written) break;
  }
  if (!cursor.is_open()) --open_items_;
  groups_->settle();
  return ok();
}

// Merges an entry of several inputs.
Status MergeJob::merge_entry() {
  const std::vector<std::size_t>& equals = groups_->equals();
  std::size_t newest = equals.front();
  for (const std::size_t input : equals) {
    if (groups_->cursor(input).entry().sequence > groups_->cursor(newest).entry().sequence)
      newest = input;
  }
  counters_.seen_entries += equals.size();
  counters_.superseded_entries += equals.size() - 1;
  const EntryView& entry = groups_->cursor(newest).entry();
  bool superseded = false;
  if (plan_.mode == MergeMode::Clean) {
    EC_ASSIGN_OR_RETURN(superseded, newer_groups_->supersede(entry.full_key, entry.sequence));
  }
  if (superseded) {
    ++counters_.superseded_entries;
  } else {
    EC_TRY(emit(entry));
  }
  for (const std::size_t input : equals) {
    groups_->cursor(input).next_entry();
    if (!groups_->cursor(input).is_open()) --open_items_;
  }
  groups_->settle_equals();
  return ok();
}

Status MergeJob::emit(const EntryView& entry) {
  if (rule_ != nullptr && rule_->drops_entry(entry.full_key, entry.sequence)) {
    ++counters_.superseded_entries;
    return ok();
  }
  return emit_undropped(entry);
}

Status MergeJob::emit_undropped(const EntryView& entry) {
  if (is_superseded_by_single(entry)) {
    ++counters_.superseded_entries;
    return newer_singles_->status();
  }
  EC_TRY(newer_singles_->status());
  if (entry.kind == EntryKind::Delete && !may_hold_older(entry.full_key, entry.sequence)) {
    ++counters_.dropped_deletes;
    return ok();
  }
  return output_.add(entry);
}

bool MergeJob::is_superseded_by_single(const EntryView& entry) {
  RecordMerge& singles = *newer_singles_;
  while (singles.valid() && singles.top().key() < entry.full_key) {
    singles.top().next_record();
    singles.settle();
  }
  if (!singles.valid() || singles.top().key() != entry.full_key) return false;
  for (const std::size_t input : singles.equals()) {
    if (singles.cursor(input).record().sequence_max > entry.sequence) return true;
  }
  return false;
}

}  // namespace edgecase::engine
