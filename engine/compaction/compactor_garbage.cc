// What the compactor does about entries that newer runs supersede: samples tables of groups, cleans
// those of which most is dead. Why it is worth it stands in engine/README.md, "Compaction".
#include <algorithm>
#include <utility>

#include "compaction/compactor.h"
#include "compaction/garbage_probe.h"

namespace edgecase::engine {
namespace {

// The more garbage there is, the less of a table need be dead to make cleaning it worth it: from
// `kGarbageMin` bytes a useful one on, and down to the lowest share at `kGarbageMax`. The same of
// value files, from EvacuationLimits on. Where all of a store was written at once all of it dies
// alike: then nothing is worth it until the whole is as dead.
constexpr double kGarbageMin = 0.1;
constexpr double kGarbageMax = 0.25;
constexpr double kDeadShareMax = 0.45;
constexpr double kDeadShareMin = 0.2;
constexpr double kQuietDeadShare = 0.1;
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
// Tables of one cleaning are about as dead.
constexpr double kDeadShareSpread = 0.1;
// One cleaning takes this part of the store: until it is done, what lives is there twice.
constexpr std::uint64_t kCleanedPart = 32;
constexpr std::uint64_t kCleanedBytesMin = 4u << 20;

// Tables that are sampled after a merge of level 0, those first that were noted longest ago; not
// again before this part of the store has been written.
constexpr std::size_t kProbesMax = 16;
constexpr std::uint64_t kProbedPart = 24;
// While writes come, sampling ends after so many in a row that found little: it costs processor
// time that writers want, and most stores have nothing dead. Then merges of level 0 are passed
// over.
constexpr std::size_t kFruitlessMax = 8;
constexpr double kFruitlessShare = 0.1;
constexpr std::size_t kSkippedRoundsMax = 16;

// Of merges of single values; old ones fade.
constexpr double kSharesRemembered = 4;

std::uint64_t item_bytes_of_groups(const Version& version) {
  std::uint64_t bytes = 0;
  for (const TablePointer& table : version.tables)
    if (table->kind == TableKind::Groups) bytes += table->item_bytes();
  return bytes;
}

}  // namespace

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

void Compactor::follow_garbage(const Version& version) {
  ledger_.follow(version, context_.host.flushed_bytes());
  suspected_singles_bytes_ = suspect_singles(version);
  suspected_bytes_ = ledger_.dead_bytes() + suspected_singles_bytes_;
}

// Of single values, which their records tell of when they are merged: what runs besides the largest
// of a namespace will supersede, as far as the last merges tell.
std::uint64_t Compactor::suspect_singles(const Version& version) {
  std::uint64_t all_bytes = 0;
  std::uint64_t single_bytes = 0;
  std::uint64_t unmerged_bytes = 0;
  for (const TablePointer& table : version.tables) {
    all_bytes += table->item_bytes();
    if (table->kind == TableKind::Singles) single_bytes += table->item_bytes();
  }
  unmerged_bytes = single_bytes;
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
void Compactor::note_singles(const MergePlan& plan, const MergeCounters& counters) {
  std::uint64_t items = 0;
  std::uint64_t largest = 0;
  for (const MergeInput& input : plan.singles) {
    std::uint64_t of_run = 0;
    for (const TablePointer& table : input) of_run += table->item_count;
    items += of_run;
    largest = std::max(largest, of_run);
  }
  if (items == largest) return;
  const double share = std::min(
      1.0, static_cast<double>(counters.dropped_items) / static_cast<double>(items - largest));
  superseding_share_ += (share - superseding_share_) / kSharesRemembered;
}

void Compactor::note_commit(std::span<const TableMetadata> cleaned, bool from_level0) {
  const std::shared_ptr<const Version> version = context_.versions.current();
  follow_garbage(*version);
  for (const TableMetadata& table : cleaned) ledger_.note(table.number, 0);
  if (!from_level0) return;
  // New data may have superseded old.
  settles_garbage_ = false;
  if (skipped_rounds_ < rounds_to_skip_) {
    ++skipped_rounds_;
    return;
  }
  skipped_rounds_ = 0;
  list_probes(*version, item_bytes_of_groups(*version) / kProbedPart);
  if (to_probe_.size() > kProbesMax) to_probe_.resize(kProbesMax);
}

void Compactor::list_probes(const Version& version, std::uint64_t age_bytes_min) {
  std::vector<std::pair<std::uint64_t, FileNumber>> oldest;
  for (const TablePointer& table : version.tables) {
    const std::uint64_t age_bytes = ledger_.age_bytes(table->number);
    if (ledger_.is_stale(table->number) && age_bytes >= age_bytes_min)
      oldest.emplace_back(age_bytes, table->number);
  }
  // Of the same age the one with the smaller number: it has had more time to die.
  std::stable_sort(oldest.begin(), oldest.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  to_probe_.clear();
  for (const auto& [age_bytes, number] : oldest) to_probe_.push_back(number);
  fruitless_probes_ = 0;
}

Result<bool> Compactor::probe(const Version& version) {
  const FileNumber number = to_probe_.front();
  to_probe_.pop_front();
  const auto found = std::find_if(version.tables.begin(), version.tables.end(),
                                  [&](const auto& table) { return table->number == number; });
  if (found == version.tables.end()) return true;
  const MergePlan plan = plan_cleaning(version, (*found)->namespace_id, {number});
  EC_ASSIGN_OR_RETURN(const double share, probe_dead_share(context_.tables, plan, random_.next()));
  ledger_.note(number, share);
  suspected_bytes_ = ledger_.dead_bytes() + suspected_singles_bytes_;
  if (share >= kFruitlessShare) {
    fruitless_probes_ = 0;
    rounds_to_skip_ = 0;
  } else if (++fruitless_probes_ >= kFruitlessMax && !is_idle()) {
    to_probe_.clear();
    rounds_to_skip_ = std::clamp<std::size_t>(2 * rounds_to_skip_, 1, kSkippedRoundsMax);
  }
  return true;
}

// Of the newest table of level 0, if it is new and its turn.
Result<bool> Compactor::probe_growth(const Version& version) {
  if (version.level0.empty() || version.level0.front()->number <= growth_probed_) return false;
  const std::uint64_t flushed_bytes = context_.host.flushed_bytes();
  if (growth_probed_ != 0 &&
      flushed_bytes - growth_probed_bytes_ < item_bytes_of_groups(version) / kGrowthPart)
    return false;
  const TablePointer& newest = version.level0.front();
  growth_probed_ = newest->number;
  growth_probed_bytes_ = flushed_bytes;
  EC_ASSIGN_OR_RETURN(const auto share,
                      probe_replacing_share(context_.tables, version, newest, random_.next()));
  if (share) replacing_share_ = kGrowthFade * replacing_share_ + (1 - kGrowthFade) * *share;
  return share.has_value();
}

double Compactor::garbage_grace() const {
  if (!context_.host.is_roomy()) return 0;
  const double growing =
      (kReplacingFull - replacing_share_.load()) / (kReplacingFull - kReplacingGrowing);
  return kGarbageGrace * std::clamp(growing, 0.0, 1.0);
}

EvacuationLimits Compactor::evacuation_limits(const Version& version) const {
  // Of all bytes, not of the useful ones.
  constexpr double kUseful = 1 / (1 - EvacuationLimits{}.garbage_share);
  EvacuationLimits limits;
  limits.garbage_share = 1 - 1 / (kUseful + garbage_grace());
  const double garbage = garbage_share(version, 0) - garbage_grace();
  const double pressure =
      std::clamp((garbage - (kUseful - 1)) / (kGarbageMax - (kUseful - 1)), 0.0, 1.0);
  limits.file_share -= pressure * (limits.file_share - kDeadShareMin);
  return limits;
}

bool Compactor::has_garbage(const Version& version) const {
  return garbage_share(version, suspected_bytes_) >= kGarbageMin;
}

std::optional<MergePlan> Compactor::pick_cleaning(const Version& version) {
  const double garbage = garbage_share(version, suspected_bytes_) - garbage_grace();
  if (!settles_garbage_ && garbage < kGarbageMin) return std::nullopt;
  const double pressure =
      std::clamp((garbage - kGarbageMin) / (kGarbageMax - kGarbageMin), 0.0, 1.0);
  const double share_min = settles_garbage_
                               ? kQuietDeadShare
                               : kDeadShareMax - pressure * (kDeadShareMax - kDeadShareMin);
  const std::uint64_t bytes_max =
      std::clamp(item_bytes_of_groups(version) / kCleanedPart, kCleanedBytesMin, kMovedBytesMax);
  // The deadest table, and others of its run; or, where that is small, of small runs.
  struct Candidate {
    double dead_share;
    NamespaceId id;
    const Run* run;
    const TableMetadata* table;
  };
  std::vector<Candidate> candidates;
  for (const auto& [id, tree] : version.trees) {
    for (const Run& run : tree) {
      if (run.kind != TableKind::Groups) continue;
      for (const TablePointer& table : run.tables) {
        const double share = ledger_.dead_share(table->number);
        if (share >= share_min) candidates.push_back({share, id, &run, table.get()});
      }
    }
  }
  if (candidates.empty()) {
    settles_garbage_ = false;
    return std::nullopt;
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.dead_share > b.dead_share; });
  const Candidate& deadest = candidates.front();
  if (!is_idle() && is_merged_by_range(version.trees.at(deadest.id), *deadest.run))
    return pick_range(version, deadest.id, *deadest.run, garbage);
  const bool small = deadest.run->item_bytes <= bytes_max;
  std::set<FileNumber> chosen;
  std::uint64_t bytes = 0;
  for (const Candidate& candidate : candidates) {
    const bool fits =
        small ? candidate.run->item_bytes <= bytes_max && candidate.run->life == deadest.run->life
              : candidate.run == deadest.run;
    if (!fits || candidate.id != deadest.id ||
        candidate.dead_share < deadest.dead_share - kDeadShareSpread)
      continue;
    if (!chosen.empty() && bytes + candidate.table->item_bytes() > bytes_max) continue;
    bytes += candidate.table->item_bytes();
    chosen.insert(candidate.table->number);
  }
  return plan_cleaning(version, deadest.id, chosen);
}

}  // namespace edgecase::engine
