// GarbageEstimate reckons how much of a store is garbage. Of value files it is counted: bytes that
// no table points to. Groups do not say which of their keys newer runs supersede, so tables are
// sampled, and samples carried on (GarbageLedger). For single values the last merge is the
// measure. It also tells how much of what arrives takes the place of something, which shows whether
// a store grows.
//
// Threads: the lane's, but for what says otherwise.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "edgecase/random.h"
#include "table/table_cache.h"
#include "version/version.h"

namespace edgecase::engine {

// GarbageLedger keeps, for each table of groups, how much of it newer runs supersede. A sample
// holds for a while; then it is carried on by the rate at which tables were seen to die. Its clock
// is the bytes that flushes wrote: a table that nobody overwrites does not die. Owned by one
// thread.
class GarbageLedger {
 public:
  // The tables of a version; those of others are forgotten. Its clock stands at `written_bytes`.
  void follow(const Version& version, std::uint64_t written_bytes);
  // `dead_share` of a table, between 0 and 1, was dead just now.
  void note(FileNumber table, double dead_share);

  // `part` is a new table of a part of `table`, and as dead.
  void pass_on(FileNumber table, FileNumber part, std::uint64_t item_bytes);

  // Whether something was written since it was noted, or it never was.
  bool is_stale(FileNumber table) const;
  // Bytes written since; all of them if it was never noted.
  std::uint64_t age_bytes(FileNumber table) const;
  // As of now.
  double dead_share(FileNumber table) const;
  // Dead bytes of all tables.
  std::uint64_t dead_bytes() const;
  // How much more dies with each byte that flushes write.
  double dying_share() const;

 private:
  struct Note {
    std::uint64_t item_bytes = 0;
    bool noted = false;
    double live_share = 1;
    std::uint64_t at_bytes = 0;  // when it was noted, or first seen
  };

  double live_share(const Note& note) const;

  std::map<FileNumber, Note> notes_;
  std::uint64_t written_bytes_ = 0;
  // Learned from two notes of one table: the sum of what the logarithm of the share that lives
  // lost, and of the bytes that were written meanwhile. Old sums fade.
  double lost_ = 0;
  double lost_over_bytes_ = 0;
};

// Estimates which part of a table's entries newer runs supersede, from a sample: groups do not say
// which of their keys are dead. It costs a few groups and, of every newer run, a few blocks of
// records and the groups that hold what is dead.

// The dead share, 0 to 1, of the table that `plan` is to clean. `random` chooses the sample.
Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random);

// Which part of what a flush wrote takes the place of older entries, from a sample of the keys that
// items of `table`, which is in level 0, begin with; nothing where these are too few, or all of
// series, whose entries are written once. Costs of every older run a few blocks of records.
Result<std::optional<double>> probe_replacing_share(TableCache& tables, const Version& version,
                                                    const TablePointer& table,
                                                    std::uint64_t random);

// Bytes of garbage a useful byte, in value files; `suspected_bytes` of what tables point to count
// as garbage; `coming_bytes` are yet to be flushed.
double garbage_share(const Version& version, std::uint64_t suspected_bytes,
                     std::uint64_t coming_bytes = 0);

// Bytes of all groups, as they lie in value files.
std::uint64_t item_bytes_of_groups(const Version& version);

// A table of groups of which about so much is dead. Views into a version.
struct DeadTable {
  double dead_share = 0;
  NamespaceId id = 0;
  const Run* run = nullptr;
  const TableMetadata* table = nullptr;
};

class GarbageEstimate {
 public:
  explicit GarbageEstimate(const CompactorContext& context) : context_(context) {}

  // Estimates for this version from now on.
  void follow(const Version& version);
  // `after` is the version with the merge.
  void note_merge(const FinishedMerge& merge, const Version& after);
  // Notes tables of which nothing is dead.
  void note_clean(std::span<const TableMetadata> tables);

  // Tables that wait to be sampled, one at a time; `idle`: however little is found.
  bool has_samples() const { return !to_sample_.empty(); }
  Status take_sample(const Version& version, bool idle);
  // All tables are to be sampled, but for those of which nothing was written since.
  void sample_all(const Version& version) { list_samples(version, 0); }
  void drop_samples() { to_sample_.clear(); }
  // Looks for keys of the newest table of level 0 in older runs, if it is new and its turn. False:
  // there was nothing to do.
  Result<bool> look_at_growth(const Version& version);

  // Bytes of garbage a useful byte, known or suspected.
  double share(const Version& version) const { return garbage_share(version, suspected_bytes_); }
  // The deadest first.
  std::vector<DeadTable> dead_tables(const Version& version, double share_min) const;

  // The share when the lane last looked and nothing of it was worth cleaning; 0 if something was.
  void note_idle_share(double share) { idle_share_ = share; }

  // From any thread, from here on. What samples say is dead in groups, and what will be in single
  // values.
  std::uint64_t suspected_bytes() const { return suspected_bytes_.load(); }
  double idle_share() const { return idle_share_.load(); }
  // How much more of it there is with each byte that flushes write.
  double dying_share() const { return dying_share_.load(); }
  // How much garbage a useful byte may be there beyond what a store may hold that does not grow.
  double grace() const;

 private:
  std::uint64_t suspect_singles(const Version& version);
  void note_singles(const MergePlan& plan, const MergeCounters& counters);
  void pass_on_rests(const FinishedMerge& merge);
  void list_samples(const Version& version, std::uint64_t age_bytes_min);

  const CompactorContext& context_;
  GarbageLedger ledger_;
  std::uint64_t suspected_singles_bytes_ = 0;
  double superseding_share_ = 0;       // by values of smaller runs, of older ones
  std::deque<FileNumber> to_sample_;   // tables that may hold much that is dead
  std::size_t fruitless_samples_ = 0;  // in a row
  std::size_t rounds_to_skip_ = 0;     // of sampling, since so little was found
  std::size_t skipped_rounds_ = 0;
  FileNumber growth_seen_ = 0;           // the newest table whose keys were looked for
  std::uint64_t growth_seen_bytes_ = 0;  // what flushes had written then
  SeededRandom random_{1};

  // Written by the lane.
  std::atomic<std::uint64_t> suspected_bytes_{0};
  std::atomic<double> dying_share_{0};
  std::atomic<double> idle_share_{0};
  std::atomic<double> replacing_share_{0};  // of what flushes write
};

}  // namespace edgecase::engine
