// StoreFiles lists the files in the two directories of a store, whatever a manifest says of them,
// and takes the store's locks. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "crypto/key_ring.h"
#include "edgecase/engine.h"
#include "edgecase/store_check.h"
#include "table/table_metadata.h"

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

}  // namespace edgecase::engine
