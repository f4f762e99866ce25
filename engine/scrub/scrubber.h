// Reads every file again in idle time, past the page cache where the system can, and compares it
// with the checksum that the manifest has of it: bytes that rot are known before somebody needs
// them. It tells which keys are lost with a damaged file. engine/check/DESIGN.md.
//
// It works in pieces on one lane of the executor and holds no version meanwhile, so that nothing
// waits for it; the rest may be called from anywhere. Memory: one piece; kDamagedFilesMax findings.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "table/table_cache.h"
#include "version/version_set.h"

namespace edgecase::engine {

class KeyRing;

struct ScrubberContext {
  const Options& options;
  const Environment& environment;
  const StoreId& store_id;
  const VersionSet& versions;
  TableCache& tables;
  KeyRing* keys;  // null: not encrypted
  // On its lane.
  std::function<void(std::int64_t delay_ns, std::function<void()> task)> schedule;
  // Ok: the metadata drive answers, and the one of files that are placed so.
  std::function<Status(Placement)> check_drives;
  // Reads the manifest again and heals it; answers what was wrong with it.
  std::function<Status()> scrub_manifest;
  // Handed in by users since open.
  std::function<std::uint64_t()> written_bytes;
};

class Scrubber {
 public:
  // At most so fast, however short the interval is.
  static constexpr std::uint64_t kBytesPerSecondMax = 8u << 20;
  // While users write more than this, it waits.
  static constexpr std::uint64_t kIdleBytesPerSecond = 1u << 20;
  static constexpr std::int64_t kStartDelayMaxNs = 60'000'000'000;
  static constexpr std::size_t kDamagedFilesMax = 256;
  static constexpr std::size_t kLostRangesMax = 64;  // of one file

  explicit Scrubber(ScrubberContext context);

  // Nothing, where options.scrub_interval_ns is 0.
  void start();

  // A file of the current version is not what it was: notes what is lost. From any thread, as what
  // follows.
  void note(FileLayer layer, FileNumber number, const std::string& problem);
  // Somebody could not read something of the file at that path: its lane looks at it, once a file.
  void doubt(std::string_view path);
  // Reads these tables and what they point to at once, since somebody could not. Whether more files
  // than before have lost something.
  bool look_at(const std::vector<TablePointer>& tables);
  // Files of the current version in which something that lives cannot be read.
  std::set<FileNumber> lost_files() const;

  ScrubStats stats() const;
  // The damaged files that the current version names.
  std::vector<DamagedFile> damaged() const;

 private:
  struct Target {
    FileLayer layer = FileLayer::Values;
    FileNumber number = 0;
    Placement placement = Placement::Metadata;
    std::string path;
    std::uint64_t size_bytes = 0;
    std::uint32_t checksum = 0;
    bool has_blanks = false;
  };
  struct Reading {
    Target target;
    std::unique_ptr<RandomAccessFile> file;
    std::uint64_t done = 0;
    std::uint32_t checksum = 0;
  };

  void run();
  void schedule_run(std::int64_t delay_ns);
  bool is_quiet();
  void begin_next();
  void look_at_manifest();
  // The file after `cursor_`, in a circle; counts a pass when that closes. Sums up all sizes.
  std::optional<Target> next_target(const Version& version, std::uint64_t& total_bytes);
  Target target_of(const TableMetadata& table) const;
  Target target_of(const ValueFileMetadata& file) const;
  Status open_target();
  Status read_piece();
  std::optional<Target> find_target(const Version& version, FileNumber number) const;
  void look_at_doubted(FileNumber number);
  // All of a file at once.
  Status read_whole(const Target& target);
  // All of it was read, or it could not be.
  void finish(const Status& read);
  // `problem` is why it is doubted.
  void judge(const Target& target, const std::string& problem);
  void find_lost_values(const Version& version, const Target& target, DamagedFile& found);
  void find_lost_records(const TableMetadata& table, DamagedFile& found);
  static void add_lost(ByteView first, ByteView last, std::uint64_t entries, bool follows,
                       DamagedFile& found);
  void note_damage(FileNumber number, DamagedFile found);
  void note_whole(FileNumber number);

  const ScrubberContext context_;

  // The lane's.
  SeededRandom random_;
  FileNumber cursor_ = 0;
  bool begun_ = false;
  std::optional<Reading> reading_;
  std::int64_t pause_ns_ = 0;  // after the file that is read
  std::int64_t manifest_due_ns_ = 0;
  bool quiet_ = false;
  std::int64_t seen_ns_ = 0;
  std::uint64_t seen_bytes_ = 0;
  Bytes piece_;

  mutable Mutex mutex_;
  ScrubStats stats_ EC_GUARDED_BY(mutex_);
  std::map<FileNumber, DamagedFile> damaged_ EC_GUARDED_BY(mutex_);
  // All that have lost something, beyond kDamagedFilesMax too: a number a file.
  std::set<FileNumber> lost_ EC_GUARDED_BY(mutex_);
  std::set<FileNumber> doubted_ EC_GUARDED_BY(mutex_);  // kDamagedFilesMax at most
};

}  // namespace edgecase::engine
