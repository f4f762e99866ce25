// A store that nobody has open. check_store() reads all of it: every checksum, every reference,
// order, both drives. repair_store() makes its metadata anew from what the value tables say of
// themselves. inspect_file() and inspect_store() put into words what a file or the whole holds.
//
// Checking and repairing take the store's locks. Memory: one item, one block, the index of one
// value table, the log's records one at a time (repair: one memtable). Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
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

// Reads all of the file at `path`, checks every checksum in it, and returns lines of "name: value".
// Any file of a store: a table (`.val`, `.meta`), IDENTITY, CURRENT, a manifest, a WAL slot; under
// another name it is known by what it begins with. Memory: one item, block or record. Errors:
// InvalidArgument (no file of a store), NotFound, Unsupported (newer format), IoError, Corruption
// naming the first damaged place.
//
// With `options.encryption` the key ring in `options.metadata_directory` opens it; without, an
// encrypted file is NotAllowed. Nothing else of `options` matters.
Result<std::string> inspect_file(FileSystem& file_system, const std::string& path,
                                 const Options& options = {});

// What a store holds (the directories and the encryption of `options` say which), in lines of the
// same kind: from the manifest and the heads of the log, so that it takes no longer for a large
// store; it may be open meanwhile, and then what it says is a moment old or the manifest has just
// been replaced (NotFound, Corruption: ask again). Errors: NotFound (no store), Unavailable (wrong
// or missing values drive), Corruption, Unsupported, IoError.
Result<std::string> inspect_store(FileSystem& file_system, const Options& options);

}  // namespace edgecase
