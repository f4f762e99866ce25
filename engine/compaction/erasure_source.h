// Erased ranges: merges until no table and no value file holds anything of them, waits for readers
// of old files, and hands over to the engine, which clears the log and the manifest.
//
// A *round* is of the ranges that are pending when it begins; those that come meanwhile have the
// next. Its steps:
//   1. merges, until no table holds an entry of the ranges;
//   2. a look at value files that hold something dead: what of the ranges lies there and nothing
//      points to is to be overwritten; of a file with much of it what lives moves;
//   3. once nobody reads old files any more, what was found is overwritten where it lies;
//   4. the engine does the rest, and forgets the ranges.
// Damaged files hold no round up (ErasureDamage).
// A round that fails is no failure of the lane: it begins again after a while. engine/README.md,
// "Erase".
//
// Threads: what is public and not of WorkSource may be called from any; the rest is the lane's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "compaction/due_sources.h"
#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "file/file_remover.h"
#include "metadata/umeta_block.h"
#include "metadata/umeta_table.h"
#include "table/table_cache.h"
#include "table/table_writer.h"
#include "version/version.h"

namespace edgecase::engine {

// Erasing in files. What of erased ranges lies in value files where no table leads to it
// (erasure_look.cc); and where files are damaged: what can be read is saved, what cannot goes with
// its file.

class KeyRing;

// Offsets of the items that tables point to, ascending, by value file: of `files` alone. Tables
// that are `lost` are not asked: nothing of the ranges that are looked for lies in one.
using LiveItems = std::map<FileNumber, std::vector<std::uint64_t>>;
Result<LiveItems> find_live_items(TableCache& tables, const Version& version,
                                  const std::set<FileNumber>& files,
                                  const std::set<FileNumber>& lost);

// Bytes of erased ranges in value files to which no table leads any more. Groups do not say what is
// dead in them, and files that merges left behind in part hold whole items that are.
struct ErasedItems {
  // By offset: items without a pointer that hold an entry of the ranges, or are unreadable.
  std::vector<ValuePointer> items;
  std::uint64_t bytes = 0;
  // The file's own summary may name a key of the ranges.
  bool summary_names_range = false;
};

struct ValueFilePlace {
  std::string path;
  StoreId store_id;
  FileNumber number = 0;
  KeyRing* keys = nullptr;  // null: not encrypted
};

// Whether zeros that were written over items, and an end of the file without keys, are certain to
// be on the drive. Uncertain ones may be in the page cache alone, after a sync that failed: they
// are read, and nothing writes them. What was there has to be overwritten again.
enum class Blanks : unsigned char { Durable, Uncertain };

// Reads what nothing points to. `ranges` are disjoint, in key order. Corruption: it cannot be told.
Result<ErasedItems> find_erased_items(FileSystem& file_system, const ValueFilePlace& place,
                                      const std::vector<std::uint64_t>& live,
                                      std::span<const RangeDelete> ranges, Blanks blanks);

// The same of a file whose items lie in key order, by reading little else than the items. Nothing
// when it is none, or when something there can only be judged by what tables point to.
Result<std::optional<ErasedItems>> search_erased_items(FileSystem& file_system,
                                                       const ValueFilePlace& place,
                                                       TableCache& tables, const Version& version,
                                                       const std::set<FileNumber>& lost,
                                                       std::span<const RangeDelete> ranges);

// The end of a file that is not sealed, with a summary that names no key: to be written over the
// one it has. Torn, it is no summary any more, and the file is emptied.
Result<FileBytes> end_without_keys(FileSystem& file_system, const ValueFilePlace& place);

// Whether the summary of a value file rules out that it holds anything of the ranges.
Result<bool> lies_beside(FileSystem& file_system, const ValueFilePlace& place,
                         std::span<const RangeDelete> ranges);

// Keys of a table, full ones, both included, of which nothing can be had.
struct LostKeys {
  Bytes first;
  Bytes last;
  UMetaTotals totals;  // of what was there, about
};

// A metadata table of the store.
struct TablePlace {
  FileSystem& file_system;
  std::string path;
  StoreId store_id;
  KeyRing* keys = nullptr;  // null: not encrypted
};

// Goes through all of the table that can be read, in key order. Errors: those of `take`, and of
// files that are whole but not for us (Unsupported, NotAllowed).
Status walk_readable(const TablePlace& place, const TableMetadata& table,
                     const std::function<Status(const UMetaRecord&)>& take,
                     const std::function<void(LostKeys)>& lose);

// The parts of `lost` that none of the disjoint ranges takes, with all that lies in it:
// `sequence_max` is the newest that may.
std::vector<LostKeys> without_erased(const LostKeys& lost, std::span<const RangeDelete> ranges,
                                     SequenceNumber sequence_max);

// A damaged table, written anew without what cannot be read, so that an erasure can take the old
// file away: nobody can tell what lies in the unreadable part of it, but the file can be destroyed.
// Used by the compactor's rounds of erasing, on the compaction lane.
//
// What can be read goes into tables beside each other, record by record as it was. Each stretch of
// keys between that cannot becomes a table of which only the manifest tells: it has bounds and no
// file. So reads of these keys are still answered with damage, as those of any table whose file is
// missing, and never with an older version; a check names it, and a repair makes its records anew
// from value files, where these have them. Keys that were erased are cut out of the stretch: all
// that they had there was older.
struct Carving {
  // Stretches that are lost, in key order; none: there is nothing to be done.
  std::vector<LostKeys> lost;
  // What of value files the table pointed to in stretches of which no record can be read.
  std::vector<ValueFileUse> unknown_uses;
};

// `is_lost` says of a record whether its item cannot be read though it would have to be.
Result<Carving> look_for_lost(const TablePlace& place, const TableMetadata& table,
                              const std::function<Result<bool>(const UMetaRecord&)>& is_lost);

// Writes what `carving` leaves of the table: with files, synced, directory included. The context
// allocates 2 * lost.size() + 1 numbers at most. After an error nothing of it is left.
Result<TableOutput> write_carved(const TableWriterContext& context, const TablePlace& place,
                                 const TableMetadata& table, const Carving& carving);
// The tables without a file: what is lost and not erased by `ranges`. Takes as many numbers from
// the context as it answers tables. Files of `leaving` are not kept for what a repair may find.
std::vector<TableMetadata> tables_for_lost(const TableWriterContext& context,
                                           const TableMetadata& table, const Carving& carving,
                                           std::span<const RangeDelete> ranges,
                                           const std::set<FileNumber>& leaving);

// What a round wants to be rid of.
struct ErasureTargets {
  std::vector<RangeDelete> ranges;  // disjoint, in key order
  std::set<FileNumber> to_empty;    // value files that hold much of them
};

ValueFilePlace place_of(const CompactorContext& context, FileNumber number, Placement placement);

// ErasureDamage keeps damaged files from holding up a round of erasing. Entries that can be read go
// as always, those that cannot go with their file (Carving). Owned by the lane.
class ErasureDamage {
 public:
  ErasureDamage(const CompactorContext& context, MergeFiles& files, Removals& removals)
      : context_(context), files_(files), removals_(removals) {}

  void begin_round() { carved_.clear(); }
  // Damaged tables that concern the round, one at a time and each by itself: first what stands in
  // the way of reading them goes, then they are merged as others are.
  Result<Offer> next(const Version& version, const ErasureTargets& targets);
  // Reads all again that leads to the value file, past the page cache. Whether damage is found that
  // was not known.
  bool finds_damage_at(const Version& version, FileNumber number);
  // Nobody can tell what lies in a value file that does not open, and nothing of it can be read: it
  // goes, and what points into it stays damaged, as of any file that is missing. False: it may open
  // after all, or nothing points into it, and it goes as others do.
  Result<bool> destroy_unreadable(const Version& version, FileNumber number);

 private:
  Result<bool> carve(const Version& version, const TableMetadata& table,
                     const ErasureTargets& targets);

  const CompactorContext& context_;
  MergeFiles& files_;
  Removals& removals_;
  std::set<FileNumber> carved_;  // damaged tables of which all that matters can be read
};

// RetryDelay says how long failed work waits before it is tried again: 1 s, 2 s, 4 s, ... 60 s,
// until it succeeds. Times are of Clock::boot_ns(). The owner guards it.
class RetryDelay {
 public:
  // A drive that was busy or away for a moment is tried soon; one that stays away costs a look a
  // minute.
  static constexpr std::int64_t kMinNs = 1'000'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;

  // Answers how long it waits.
  std::int64_t note_failure(std::int64_t now_ns) {
    delay_ns_ = std::clamp(2 * delay_ns_, kMinNs, kMaxNs);
    not_before_ns_ = now_ns + delay_ns_;
    return delay_ns_;
  }
  void note_success() { delay_ns_ = 0; }
  // Somebody waits for it: its next try is now.
  void end_wait() { not_before_ns_ = 0; }
  // Not above 0: it may be tried.
  std::int64_t left_ns(std::int64_t now_ns) const { return not_before_ns_ - now_ns; }

 private:
  std::int64_t delay_ns_ = 0;
  std::int64_t not_before_ns_ = 0;
};

class ErasureSource final : public WorkSource {
 public:
  ErasureSource(const CompactorContext& context, MergeFiles& files, Removals& removals);

  // Somebody waits: ranges that are pending are seen to now, whatever failed before. Wake the lane
  // then.
  void erase_now();
  // erase_now() was called, and nothing has come of it yet.
  bool is_asked() const { return asked_.load(); }
  // A round is done but for what somebody holds on to.
  bool is_held() const { return held_.load(); }
  // Ok, or why the last round failed.
  Status failure() const;
  ErasureStats stats() const;

  Urgency urgency() override;
  Result<Offer> next(const LaneView& view) override;
  // An erasure that is waited for does not wait for a merge.
  bool frees_more_than(std::uint64_t) override { return urgency() == Urgency::Awaited; }
  void committed(const FinishedMerge& merge, bool own) override;
  bool settles(const Status& failure) override;
  std::optional<std::int64_t> look_again_in_ns() override;

 private:
  struct Round {
    // Ranges as they were then: one that is erased once more meanwhile still counts here, since
    // readers may hold what the first time was found of it.
    ErasureTargets targets;
    PurgeContext purge;  // the same ranges, as merges want them
    SequenceNumber through = 0;
    // A version none of whose tables holds anything of the ranges.
    std::weak_ptr<const Version> purged;
    // Value files of the ranges' namespaces that were there when it began.
    std::set<FileNumber> to_look_at;
    LiveItems live;  // of some of these
    // What is in other files: items of the ranges that nothing points to, keys in summaries.
    std::map<FileNumber, ErasedItems> to_blank;
    std::uint64_t rewritten_bytes = 0;
  };

  std::int64_t wait_left_ns() const;
  bool begin_round();  // False: nothing that is pending is in tables yet.
  Result<bool> look_at_values(const Version& version);
  Status look_at(const Version& version, FileNumber number);
  Result<ErasedItems> find_erased(const Version& version, FileNumber number);
  Result<Offer> empty_values(const Version& version);
  Result<Offer> finish_round();
  Status remove_old_files();
  Result<bool> readers_hold();
  Status blank_items();
  Status blank_items_of(const ValueFilePlace& place, const ErasedItems& erased);

  const CompactorContext& context_;
  Removals& removals_;
  ErasureDamage damage_;
  std::optional<Round> round_;
  std::set<FileNumber> uncertain_blanks_;  // of files in which zeros may not be on the drive
  std::atomic<bool> held_{false};
  std::atomic<bool> asked_{false};

  mutable Mutex mutex_;
  RetryDelay retry_ EC_GUARDED_BY(mutex_);
  Status failure_ EC_GUARDED_BY(mutex_);
  ErasureStats stats_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
