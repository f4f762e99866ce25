#include "compaction/useful_sources.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/entry.h"
#include "compaction/merge_plan.h"
#include "edgecase/machine.h"
#include "table/record_cursor.h"

namespace edgecase::engine {
namespace {

// The part of what was learned before that stays with each pair of notes: some twenty pairs count.
constexpr double kFade = 0.95;
// A share is no surer than that: its logarithm must stay finite.
constexpr double kLiveShareMin = 0.02;

}  // namespace

void GarbageLedger::follow(const Version& version, std::uint64_t written_bytes) {
  written_bytes_ = written_bytes;
  std::map<FileNumber, Note> kept;
  for (const TablePointer& table : version.tables) {
    if (table->kind != TableKind::Groups || table->level == 0) continue;
    const auto known = notes_.find(table->number);
    kept.emplace(table->number, known != notes_.end()
                                    ? known->second
                                    : Note{table->item_bytes(), false, 1, written_bytes});
  }
  notes_ = std::move(kept);
}

void GarbageLedger::note(FileNumber table, double dead_share) {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return;
  Note& note = found->second;
  const double live = std::max(kLiveShareMin, 1 - dead_share);
  if (note.noted && written_bytes_ > note.at_bytes) {
    // Samples err to both sides: what seems to have come to life counts, too.
    lost_ = kFade * lost_ + std::log(note.live_share / live);
    lost_over_bytes_ =
        kFade * lost_over_bytes_ + static_cast<double>(written_bytes_ - note.at_bytes);
  }
  note.noted = true;
  note.live_share = live;
  note.at_bytes = written_bytes_;
}

void GarbageLedger::pass_on(FileNumber table, FileNumber part, std::uint64_t item_bytes) {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return;
  notes_[part] = found->second;
  notes_[part].item_bytes = item_bytes;
}

double GarbageLedger::live_share(const Note& note) const {
  if (lost_ <= 0) return note.live_share;
  const double passed = static_cast<double>(written_bytes_ - note.at_bytes);
  return note.live_share * std::exp(-lost_ / lost_over_bytes_ * passed);
}

bool GarbageLedger::is_stale(FileNumber table) const {
  const auto found = notes_.find(table);
  return found != notes_.end() && (!found->second.noted || found->second.at_bytes < written_bytes_);
}

std::uint64_t GarbageLedger::age_bytes(FileNumber table) const {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return 0;
  return found->second.noted ? written_bytes_ - found->second.at_bytes : written_bytes_;
}

double GarbageLedger::dead_share(FileNumber table) const {
  const auto found = notes_.find(table);
  return found == notes_.end() ? 0 : 1 - live_share(found->second);
}

double GarbageLedger::dying_share() const {
  if (lost_ <= 0) return 0;
  double live_bytes = 0;
  for (const auto& [number, note] : notes_)
    live_bytes += live_share(note) * static_cast<double>(note.item_bytes);
  return std::min(1.0, live_bytes * lost_ / lost_over_bytes_);
}

std::uint64_t GarbageLedger::dead_bytes() const {
  double bytes = 0;
  for (const auto& [number, note] : notes_)
    bytes += (1 - live_share(note)) * static_cast<double>(note.item_bytes);
  return static_cast<std::uint64_t>(bytes);
}

namespace {

// Entries that are looked up, each in the newer runs: a share is known to some 6 % then.
constexpr std::uint64_t kLookedUpMax = 64;
// At so many places of the table: neighbours cost less, but often live and die together.
constexpr std::uint64_t kPlaces = 4;

// Keys of a new table that are looked for in older runs, and how few of them say nothing. Some
// records apart at each place: near enough for one block of a run to tell of most of them.
constexpr std::size_t kNewPlaces = 4;
constexpr std::size_t kNewKeysPerPlace = 8;
constexpr std::size_t kRecordsApart = 4;
constexpr std::size_t kNewKeysMin = 8;
// After this many items of series in a row it is left at that.
constexpr std::size_t kSeriesMax = 4;

struct Sample {
  std::uint64_t looked_up = 0;
  std::uint64_t dead = 0;
};

// A few entries from where `cursor` stands on.
Status sample_place(TableCache& tables, const MergePlan& plan, RecordCursor& cursor,
                    std::uint64_t random, Sample& sample) {
  std::vector<RecordCursor> newer;
  for (const MergeInput& run : plan.newer_groups)
    newer.push_back(tables.records(run, cursor.record().first));
  for (std::uint64_t left = kLookedUpMax / kPlaces; left > 0 && cursor.valid();) {
    const std::uint64_t entries = cursor.record().entries;
    EC_TRY(cursor.open_item());
    if (cursor.is_destroyed()) {
      cursor.next_record();
      continue;
    }
    // Every so many, from one of the first on: a share, not a count, is asked for.
    const std::uint64_t step = (entries + left - 1) / left;
    const std::uint64_t first = random % step;
    for (std::uint64_t i = 0; i < entries; ++i) {
      if (i > 0) cursor.next_entry();
      EC_TRY(cursor.status());
      if (i % step != first || left == 0) continue;
      --left;
      ++sample.looked_up;
      const EntryView& entry = cursor.entry();
      const SoughtKey key(entry.full_key);
      for (RecordCursor& run : newer) {
        EC_ASSIGN_OR_RETURN(const bool superseded, run.supersedes(key, entry.sequence));
        if (!superseded) continue;
        ++sample.dead;
        break;
      }
    }
    cursor.next_record();
  }
  return cursor.status();
}

// Full keys, ascending.
Result<std::vector<Bytes>> choose_keys(TableCache& tables, const TablePointer& table,
                                       std::uint64_t random) {
  SeededRandom draws(random);
  std::set<Bytes> keys;
  std::size_t series = 0;
  for (std::size_t place = 0; place < kNewPlaces; ++place) {
    RecordCursor cursor = tables.records({table});
    cursor.select_any(draws.next());
    for (std::size_t i = 0; i < kNewKeysPerPlace * kRecordsApart && cursor.valid(); ++i) {
      if (i % kRecordsApart == 0) {
        const bool is_series = cursor.record().type == ItemType::SeriesGroup;
        series = is_series ? series + 1 : 0;
        if (!is_series) keys.emplace(cursor.record().first);
        if (series == kSeriesMax) return std::vector<Bytes>(keys.begin(), keys.end());
      }
      cursor.next_record();
    }
    EC_TRY(cursor.status());
  }
  return std::vector<Bytes>(keys.begin(), keys.end());
}

// Takes out of `keys` those that some table of a run has an entry of.
Status take_found(TableCache& tables, const MergeInput& run, std::vector<Bytes>& keys) {
  if (keys.empty()) return ok();
  RecordCursor cursor = tables.records(run, keys.front());
  EC_TRY(cursor.status());
  std::vector<Bytes> left;
  for (Bytes& key : keys) {
    EC_ASSIGN_OR_RETURN(const bool found, cursor.supersedes(SoughtKey(key), 0));
    if (!found) left.push_back(std::move(key));
  }
  keys = std::move(left);
  return ok();
}

}  // namespace

Result<std::optional<double>> probe_replacing_share(TableCache& tables, const Version& version,
                                                    const TablePointer& table,
                                                    std::uint64_t random) {
  EC_ASSIGN_OR_RETURN(std::vector<Bytes> keys, choose_keys(tables, table, random));
  if (keys.size() < kNewKeysMin) return {std::nullopt};
  const auto all = static_cast<double>(keys.size());
  const std::set<NamespaceId> namespaces = [&] {
    std::set<NamespaceId> of_keys;
    for (const Bytes& key : keys) of_keys.insert(namespace_of(key));
    return of_keys;
  }();
  for (const TablePointer& older : version.level0)
    if (older->sequence_max < table->sequence_min) EC_TRY(take_found(tables, {older}, keys));
  for (const NamespaceId id : namespaces) {
    const auto tree = version.trees.find(id);
    if (tree == version.trees.end()) continue;
    for (const Run& run : tree->second) EC_TRY(take_found(tables, run.tables, keys));
  }
  return {1 - static_cast<double>(keys.size()) / all};
}

Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random) {
  if (plan.newer_groups.empty()) return 0.0;
  SeededRandom draws(random);
  Sample sample;
  for (std::uint64_t place = 0; place < kPlaces; ++place) {
    RecordCursor cursor = tables.records(plan.groups.front());
    cursor.select_any(draws.next());
    EC_TRY(cursor.status());
    EC_TRY(sample_place(tables, plan, cursor, draws.next(), sample));
  }
  return sample.looked_up == 0
             ? 0.0
             : static_cast<double>(sample.dead) / static_cast<double>(sample.looked_up);
}

namespace {

// While a store grows, more may be there: what its garbage takes it needs soon anyway, and until
// then ever more of a table dies before it is written again. It grows as long as of what flushes
// write no more than the first share takes the place of what was there; from the second on it does
// not.
constexpr double kGarbageGrace = 0.6;
constexpr double kReplacingGrowing = 0.65;
constexpr double kReplacingFull = 0.9;
// Looked at again when this part of the store has been written since: it costs a few blocks of
// every run. Of what was seen before, half fades each time.
constexpr std::uint64_t kGrowthPart = 48;
constexpr double kGrowthFade = 0.5;

// Tables that are sampled after a merge of level 0, those first that were noted longest ago; not
// again before this part of the store has been written.
constexpr std::size_t kSamplesMax = 16;
constexpr std::uint64_t kSampledPart = 24;
// While writes come, sampling ends after so many in a row that found little: it costs processor
// time that writers want, and most stores have nothing dead. Then merges of level 0 are passed
// over.
constexpr std::size_t kFruitlessMax = 8;
constexpr double kFruitlessShare = 0.1;
constexpr std::size_t kSkippedRoundsMax = 16;

}  // namespace

std::uint64_t item_bytes_of_groups(const Version& version) {
  std::uint64_t bytes = 0;
  for (const TablePointer& table : version.tables)
    if (table->kind == TableKind::Groups) bytes += table->item_bytes();
  return bytes;
}

double garbage_share(const Version& version, std::uint64_t suspected_bytes,
                     std::uint64_t coming_bytes) {
  const std::uint64_t total = coming_bytes + version.value_bytes();
  std::uint64_t useful = coming_bytes;
  for (const auto& [number, bytes] : version.live_bytes) useful += bytes;
  useful -= std::min(useful, suspected_bytes);
  if (total <= useful) return 0;
  return static_cast<double>(total - useful) /
         static_cast<double>(std::max<std::uint64_t>(1, useful));
}

void GarbageEstimate::follow(const Version& version) {
  ledger_.follow(version, context_.host.flushed_bytes());
  suspected_singles_bytes_ = suspect_singles(version);
  suspected_bytes_ = ledger_.dead_bytes() + suspected_singles_bytes_;
}

// Suspects single values. Their records tell when they are merged what runs besides the largest of
// a namespace will supersede, if they do as those of the last merge.
std::uint64_t GarbageEstimate::suspect_singles(const Version& version) {
  std::uint64_t all_bytes = 0;
  std::uint64_t single_bytes = 0;
  for (const TablePointer& table : version.tables) {
    all_bytes += table->item_bytes();
    if (table->kind == TableKind::Singles) single_bytes += table->item_bytes();
  }
  std::uint64_t unmerged_bytes = single_bytes;
  for (const auto& [id, tree] : version.trees) {
    std::uint64_t largest = 0;
    for (const Run& run : tree)
      if (run.kind == TableKind::Singles) largest = std::max(largest, run.item_bytes);
    unmerged_bytes -= largest;
  }
  const double of_all = static_cast<double>(single_bytes) /
                        static_cast<double>(std::max<std::uint64_t>(1, all_bytes));
  dying_share_ = std::min(1.0, ledger_.dying_share() + superseding_share_ * of_all);
  return static_cast<std::uint64_t>(superseding_share_ * static_cast<double>(unmerged_bytes));
}

// How many older values the values of the smaller runs of a merge superseded.
void GarbageEstimate::note_singles(const MergePlan& plan, const MergeCounters& counters) {
  std::uint64_t items = 0;
  std::uint64_t largest = 0;
  for (const MergeInput& input : plan.singles) {
    std::uint64_t of_run = 0;
    for (const TablePointer& table : input) of_run += table->item_count;
    items += of_run;
    largest = std::max(largest, of_run);
  }
  if (items == largest) return;
  superseding_share_ = std::min(
      1.0, static_cast<double>(counters.dropped_items) / static_cast<double>(items - largest));
}

// What stays in its run in other tables is as dead as it was.
void GarbageEstimate::pass_on_rests(const FinishedMerge& merge) {
  const std::span<const TableMetadata> merged = merge.merged;
  for (const TableMetadata& table : merge.output.tables) {
    if (&table >= merged.data() && &table < merged.data() + merged.size()) continue;
    for (const MergeInput& input : merge.plan.groups)
      for (const TablePointer& before : input)
        if (before->run == table.run && before->smallest <= table.smallest &&
            table.largest <= before->largest)
          ledger_.pass_on(before->number, table.number, table.item_bytes());
  }
}

void GarbageEstimate::note_merge(const FinishedMerge& merge, const Version& after) {
  const bool from_level0 = merge.is_from_level0();
  if (!from_level0) note_singles(merge.plan, merge.counters);
  if (merge.leaves_rest) pass_on_rests(merge);
  follow(after);
  if (!from_level0) return;
  // New data may have superseded old.
  if (skipped_rounds_ < rounds_to_skip_) {
    ++skipped_rounds_;
    return;
  }
  skipped_rounds_ = 0;
  list_samples(after, item_bytes_of_groups(after) / kSampledPart);
  if (to_sample_.size() > kSamplesMax) to_sample_.resize(kSamplesMax);
}

void GarbageEstimate::note_clean(std::span<const TableMetadata> tables) {
  for (const TableMetadata& table : tables) ledger_.note(table.number, 0);
}

void GarbageEstimate::list_samples(const Version& version, std::uint64_t age_bytes_min) {
  std::vector<std::pair<std::uint64_t, FileNumber>> oldest;
  for (const TablePointer& table : version.tables) {
    const std::uint64_t age_bytes = ledger_.age_bytes(table->number);
    if (ledger_.is_stale(table->number) && age_bytes >= age_bytes_min)
      oldest.emplace_back(age_bytes, table->number);
  }
  // At the same age the smaller number comes first: it has had more time to die.
  std::stable_sort(oldest.begin(), oldest.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  to_sample_.clear();
  for (const auto& [age_bytes, number] : oldest) to_sample_.push_back(number);
  fruitless_samples_ = 0;
}

Status GarbageEstimate::take_sample(const Version& version, bool idle) {
  const FileNumber number = to_sample_.front();
  to_sample_.pop_front();
  const auto found = std::find_if(version.tables.begin(), version.tables.end(),
                                  [&](const auto& table) { return table->number == number; });
  if (found == version.tables.end()) return ok();
  const MergePlan plan = plan_cleaning(version, (*found)->namespace_id, {number});
  EC_ASSIGN_OR_RETURN(const double share, probe_dead_share(context_.tables, plan, random_.next()));
  ledger_.note(number, share);
  suspected_bytes_ = ledger_.dead_bytes() + suspected_singles_bytes_;
  if (share >= kFruitlessShare) {
    fruitless_samples_ = 0;
    rounds_to_skip_ = 0;
  } else if (++fruitless_samples_ >= kFruitlessMax && !idle) {
    to_sample_.clear();
    rounds_to_skip_ = std::clamp<std::size_t>(2 * rounds_to_skip_, 1, kSkippedRoundsMax);
  }
  return ok();
}

Result<bool> GarbageEstimate::look_at_growth(const Version& version) {
  if (version.level0.empty() || version.level0.front()->number <= growth_seen_) return false;
  const std::uint64_t flushed_bytes = context_.host.flushed_bytes();
  if (growth_seen_ != 0 &&
      flushed_bytes - growth_seen_bytes_ < item_bytes_of_groups(version) / kGrowthPart)
    return false;
  const TablePointer& newest = version.level0.front();
  growth_seen_ = newest->number;
  growth_seen_bytes_ = flushed_bytes;
  EC_ASSIGN_OR_RETURN(const auto share,
                      probe_replacing_share(context_.tables, version, newest, random_.next()));
  if (share) replacing_share_ = kGrowthFade * replacing_share_ + (1 - kGrowthFade) * *share;
  return share.has_value();
}

double GarbageEstimate::grace() const {
  if (!context_.host.is_roomy()) return 0;
  const double growing =
      (kReplacingFull - replacing_share_.load()) / (kReplacingFull - kReplacingGrowing);
  return kGarbageGrace * std::clamp(growing, 0.0, 1.0);
}

std::vector<DeadTable> GarbageEstimate::dead_tables(const Version& version,
                                                    double share_min) const {
  std::vector<DeadTable> found;
  if (share_min > 1) return found;
  for (const auto& [id, tree] : version.trees) {
    for (const Run& run : tree) {
      if (run.kind != TableKind::Groups) continue;
      for (const TablePointer& table : run.tables) {
        const double share = ledger_.dead_share(table->number);
        if (share >= share_min) found.push_back({share, id, &run, table.get()});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const DeadTable& a, const DeadTable& b) {
    return a.dead_share > b.dead_share;
  });
  return found;
}

}  // namespace edgecase::engine
