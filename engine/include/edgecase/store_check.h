// A whole store looked through offline: every checksum, every reference, order, both drives; and
// its metadata made anew from what the value tables say of themselves.
//
// Both take the store's locks: nobody may have it open. Memory: one item, one block, the index of
// one value table, the log's records one at a time (repair: one memtable). Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/options.h"
#include "edgecase/result.h"
#include "edgecase/write_batch.h"

namespace edgecase {

// A repaired store holds a namespace of this name, in which nothing is: whoever opens it and keeps
// in one namespace what another is understood by, looks whether both are there, makes that durable,
// and drops it.
inline constexpr std::string_view kRepairedNamespace = "_repaired";

// Entries that are lost, as far as metadata tells of them: some of those between two keys, both
// included. Older ones of a key that is still there are counted, too.
struct LostEntries {
  NamespaceId namespace_id = 0;
  std::string namespace_name;
  Bytes first, last;  // user keys
  std::uint64_t entries = 0;
};

struct CheckFinding {
  enum class Kind : unsigned char {
    Note,     // unusual and harmless: a file that nothing names, a write that was cut short
    Problem,  // damage
    Repair,   // what a repair did
    Loss,     // what a repair could not bring back
  };
  Kind kind = Kind::Note;
  std::string message;            // names file and place
  std::vector<LostEntries> lost;  // of a Loss; empty where nothing tells
};

// Is told while it happens.
class CheckObserver {
 public:
  virtual ~CheckObserver() = default;
  virtual void on_finding(const CheckFinding& finding) = 0;
  virtual void on_progress(std::uint64_t done_bytes, std::uint64_t total_bytes) = 0;
  // Asked often; true ends the work with Cancelled.
  virtual bool stop() = 0;
};

struct CheckReport {
  std::uint64_t tables = 0;
  std::uint64_t value_tables = 0;
  std::uint64_t items = 0;
  std::uint64_t entries = 0;  // in tables, deletes and replaced ones too
  std::uint64_t wal_segments = 0;
  std::uint64_t wal_records = 0;
  std::uint64_t bytes = 0;  // of files looked at
  std::uint64_t notes = 0;
  std::uint64_t problems = 0;
  std::uint64_t repairs = 0;
  std::uint64_t losses = 0;
};

// Only the directories of `options` matter. Changes nothing. Damage is a finding, no error. Errors:
// NotFound (no store), Locked, Unavailable (a drive is missing or another store's), Unsupported
// (newer format), IoError of a directory, Cancelled.
Result<CheckReport> check_store(FileSystem& file_system, const Options& options,
                                CheckObserver& observer);

// Checks, and where there are problems makes a store that opens and holds all that could be read:
// damaged metadata tables and a lost manifest are made anew from value tables, the log's readable
// records go into tables. What was damaged is kept in the directory `damaged` beside it. Until the
// last step nothing of the old store is changed; cut short, it is to be run again, and an engine
// does not open the store before that. Deletes whose markers had already been dropped may come
// back with a lost manifest. Errors as above, and OutOfSpace.
Result<CheckReport> repair_store(FileSystem& file_system, const Options& options,
                                 CheckObserver& observer);

// The entries of one namespace of a store that nobody has open, all of them in memory; what cannot
// be read is left out. Changes nothing, and knows of no retention. Errors: as check_store(),
// Corruption of the manifest or the log, NotFound (the namespace).
using OfflineContents = std::map<Bytes, Bytes, std::less<>>;
Result<OfflineContents> read_offline(FileSystem& file_system, const Options& options,
                                     std::string_view namespace_name);

}  // namespace edgecase
