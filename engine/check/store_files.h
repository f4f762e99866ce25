// The files of a store, as far as they can be read offline: StoreFiles lists those in its two
// directories, whatever a manifest says of them, and takes the store's locks; LogLook and
// ManifestLook read logs and manifests; StoreLook is one whole look, what check_store() reports and
// repair_store() builds on (store_look.cc); TableCheck checks single tables (table_check.cc). They
// only read, and are used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "crypto/key_ring.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/store_check.h"
#include "log/log.h"
#include "metadata/umeta_table.h"
#include "table/table_files.h"
#include "table/table_metadata.h"
#include "value/value_table.h"
#include "version/version.h"

namespace edgecase::engine {

// Findings counts what a check or a repair finds, and hands it on. Used by one thread.
class Findings {
 public:
  explicit Findings(CheckObserver& observer) : observer_(observer) {}

  void note(std::string message) { add(CheckFinding::Kind::Note, report_.notes, message); }
  void problem(std::string message) { add(CheckFinding::Kind::Problem, report_.problems, message); }
  void repair(std::string message) { add(CheckFinding::Kind::Repair, report_.repairs, message); }
  void loss(std::string message, std::vector<LostEntries> lost = {}) {
    add(CheckFinding::Kind::Loss, report_.losses, message, std::move(lost));
  }
  // Whether there was none.
  bool accept(const Status& status) {
    if (!status.ok()) problem(status.message());
    return status.ok();
  }

  void expect_bytes(std::uint64_t total) { total_bytes_ += total; }
  // Cancelled when the observer wants no more.
  Status read_bytes(std::uint64_t bytes) {
    report_.bytes += bytes;
    observer_.on_progress(report_.bytes, total_bytes_);
    return observer_.stop() ? cancelled("stopped") : ok();
  }

  CheckReport& report() { return report_; }

 private:
  void add(CheckFinding::Kind kind, std::uint64_t& count, std::string& message,
           std::vector<LostEntries> lost = {}) {
    ++count;
    observer_.on_finding({kind, std::move(message), std::move(lost)});
  }

  CheckObserver& observer_;
  CheckReport report_;
  std::uint64_t total_bytes_ = 0;
};

struct StoreFiles {
  std::string metadata_directory;
  std::string values_directory;
  StoreId store_id{};
  bool has_metadata_identity = false;  // a whole one
  bool has_values_identity = false;
  bool repair_begun = false;  // the marker of an unfinished repair is there
  bool has_current = false;
  std::vector<std::uint64_t> manifests;  // numbers, ascending
  std::set<FileNumber> tables;
  std::map<FileNumber, Placement> values;
  std::set<std::uint64_t> wal_slots;
  std::vector<std::unique_ptr<FileLock>> locks;
  std::unique_ptr<KeyRing> key_ring;  // null: not encrypted

  KeyRing* keys() const { return key_ring.get(); }

  std::string table_path(FileNumber number) const;
  std::string value_path(FileNumber number, Placement placement) const;
};

// Finds out which store it is, takes its locks, lists its files. Problems with identities are
// findings. Errors: as check_store(); NotAllowed without the key of an encrypted store, Corruption
// of its key ring.
Result<StoreFiles> find_store_files(FileSystem& file_system, const Options& options,
                                    Findings& findings);

// Lines of "name: value", as inspect_file() answers them.

void add_fact(std::string& out, std::string_view name, std::string_view value);
void add_fact(std::string& out, std::string_view name, std::uint64_t value);

// Hexadecimal digits; a long key is cut and ends in "...".
std::string shown_key(ByteView key);

// Looks through one log, a manifest or a WAL segment, front to back. One read-ahead buffer of
// memory.
struct LogLook {
  LogIdentity identity;
  std::uint64_t successor = 0;  // 0: none is named
  std::uint32_t version = 0;    // of its format
  bool is_sealed = false;
  std::uint64_t file_bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t end_bytes = 0;  // of valid records, without the head
  bool torn_tail = false;
  Status status;                   // Ok, or what is wrong and where; NotFound: there is no head
  std::vector<std::string> notes;  // what is unusual and does no harm
};

// Answers Ok, or what is wrong with the record, which begins at `offset` of the file.
using LookAtRecord = std::function<Status(const LogRecord& record, std::uint64_t offset)>;
// Looks at the copy of a doubled log that begins at `begin` of the file; offsets count from there.
LogLook look_at_log(FileSystem& file_system, const std::string& path, KeyRing* keys,
                    const LookAtRecord& look, std::uint64_t begin = 0);

// Reads a manifest as far as either of its copies can be read.
struct ManifestLook {
  LogLook log;  // of the copy that counts; its status counts for all of it, its notes tell of both
  std::size_t copies = 0;  // that there should be, and that are whole
  std::size_t whole_copies = 0;
  std::uint64_t edits = 0;
  VersionState state;                     // after the last edit that could be applied
  std::vector<NamespaceInfo> namespaces;  // every one that an edit named, by id
};

ManifestLook look_at_manifest(FileSystem& file_system, const std::string& path, KeyRing* keys);

// Lines on ranges that were erased and whose bytes may still be somewhere, and on value files in
// which items are overwritten.
void erasure_lines(std::string& out, const VersionState& state);

struct StoreLook {
  StoreFiles files;
  ManifestLook manifest;  // of the one that CURRENT names, when it can be found
  std::uint64_t manifest_number = 0;
  bool manifest_is_whole = false;  // if not, only the namespaces of `manifest` mean anything
  bool wal_is_whole = false;
  std::set<FileNumber> damaged_values;
  std::set<FileNumber> damaged_tables;
};

// Errors: as check_store().
Result<StoreLook> look_at_store(FileSystem& file_system, const Options& options,
                                Findings& findings);

// ItemHints gathers what metadata tables, whole or damaged, still tell of the items of a value
// table. It only reads, and passes over what cannot be read. Used by one thread.
class ItemHints {
 public:
  ItemHints(FileSystem& file_system, const StoreLook& look)
      : file_system_(file_system), look_(look) {}

  // Every item of the file that some table tells of, by offset.
  std::vector<ValuePointer> items_of(FileNumber number) const;
  // Takes out what these tables point to.
  void leave_out(const std::vector<TablePointer>& tables, FileNumber number,
                 std::vector<ValuePointer>& items) const;
  // What tables tell of the items of the file, or of one of them.
  std::vector<LostEntries> entries_of(FileNumber number) const;
  std::vector<LostEntries> entries_of(const ValuePointer& item) const;
  // "; it was of namespace 3, 12 items with 340 entries", as far as is known.
  std::string words_for(FileNumber number) const;

 private:
  void ask(FileNumber number) const;

  using LookAtRecord = std::function<void(const UMetaRecord&)>;

  void for_records_of(FileNumber number, FileNumber table, const LookAtRecord& look) const;
  std::vector<FileNumber> tables_that_tell_of(FileNumber number) const;

  FileSystem& file_system_;
  const StoreLook& look_;
  // What is told of the file that was asked for last, by offset: many of its items may be lost.
  mutable FileNumber asked_ = 0;
  mutable std::multimap<std::uint64_t, LostEntries> told_;
};

// Checks single tables against what the manifest says of them, and items against the records that
// point to them. Findings name file and place. Used by one thread.

// ItemFacts: the content of an item of a value table, found by decoding all of it. Stateless.
struct ItemFacts {
  ItemType type = ItemType::Single;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;  // as the item tells it: a group knows its largest alone
  SequenceNumber sequence_max = 0;
  Bytes first;  // full keys, both included
  Bytes last;
};

using LookAtEntry = std::function<void(const EntryView&)>;

// Nothing when the item is malformed: undecodable, keys not ascending or of another namespace.
// `look`, which may be empty, gets each entry.
std::optional<ItemFacts> read_item(const Item& item, NamespaceId namespace_id,
                                   const LookAtEntry& look);

class TableCheck {
 public:
  TableCheck(FileSystem& file_system, const StoreFiles& files, const VersionState& state,
             Findings& findings);

  // Each answers Cancelled, or Ok whatever it found.
  Status check_value_table(const ValueFileMetadata& expected);
  Status check_metadata_table(const TableMetadata& expected);

  // Files with a problem of their own; a table whose items have one counts as damaged too.
  const std::set<FileNumber>& damaged_values() const { return damaged_values_; }
  const std::set<FileNumber>& damaged_tables() const { return damaged_tables_; }

 private:
  struct Sums;

  Status check_whole_file(const RandomAccessFile& file, std::uint64_t size_bytes,
                          std::uint32_t checksum, bool& is_whole);
  Status look_at_value_table(const ValueFileMetadata& expected, bool& is_whole);
  Status look_at_metadata_table(const TableMetadata& expected, bool& is_whole);
  Status check_records(const UMetaReader& table, const TableMetadata& expected, Sums& sums,
                       bool& is_whole);
  Status check_record(const UMetaRecord& record, const std::string& place);
  Status check_sums(const UMetaReader& table, const TableMetadata& expected, const Sums& sums);
  Result<std::shared_ptr<const ValueTableReader>> open_values(FileNumber number);
  bool knows_namespace(NamespaceId id) const;

  FileSystem& file_system_;
  const StoreFiles& files_;
  const VersionState& state_;
  Findings& findings_;
  OpenFiles<ValueTableReader> open_;
  std::set<FileNumber> damaged_values_;
  std::set<FileNumber> damaged_tables_;
};

// A whole file's crc32c, read in pieces; `read` is told of each.
Result<std::uint32_t> checksum_of(const RandomAccessFile& file,
                                  const std::function<Status(std::uint64_t bytes)>& read);

}  // namespace edgecase::engine
