// The bytes on the simulated drives: names and bytes, each twice, as running programs see them and
// as a power cut would leave them. No threads, no faults, no permissions: MemoryFileSystem has
// those.
//
// A file holds its durable bytes and an ordered list of writes since its last sync. A directory's
// names change in order and are durable after sync_directory(). At a power cut every file and every
// directory keeps a part of its unsynced changes, by policy and seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/machine.h"
#include "support/needle_set.h"
#include "support/sparse_bytes.h"
#include "support/write_once.h"

namespace edgecase::test {

// What becomes of the changes that no sync covers. Every policy treats each file and directory on
// its own; durable bytes that no unsynced write touches never change, and a sector that is written
// over holds the old bytes or the new.
enum class CutPolicy : unsigned char {
  None,     // all are lost
  Prefix,   // the first ones stay, in order; the last of them perhaps in part
  All,      // all stay
  Sectors,  // any subset, by 512-byte sectors of the file
  Torn,     // a prefix; then one write whose rest is garbage, where nothing was before
  Any,      // one of these, chosen for each file
};

inline constexpr std::uint64_t kSectorBytes = 512;

class SimulatedFile {
 public:
  const SparseBytes& live() const { return live_; }
  const SparseBytes& durable() const { return durable_; }

  void write(std::uint64_t offset, ByteView bytes);
  void sync();
  // Syncs these bytes alone, whichever write they are of.
  void sync_range(std::uint64_t offset, std::uint64_t size);
  // What a failed fsync does: pages count as clean though they never reached the drive. Readers see
  // the bytes until the power goes; no later sync brings them to the drive.
  void lose_unsynced();
  // The bytes as created, durable already: a pre-written log file.
  void fill(std::uint64_t size);
  void cut(SeededRandom& random, CutPolicy policy);
  // The end of a process that had not handed over the bytes behind `size`.
  void forget_behind(std::uint64_t size);
  // For tests that damage a file: both sides are replaced.
  void replace(SparseBytes bytes);
  // The same of one bit, in place. `byte` is one that there is.
  void flip_bit(std::uint64_t byte, int bit);
  // Whether a needle is among the durable bytes. Always to be asked of the same set: what has been
  // looked for in vain is not looked for again while these bytes stay as they are.
  bool holds(const NeedleSet& needles);
  // Before anything is written.
  void watch(std::unique_ptr<WriteOnce> write_once) { write_once_ = std::move(write_once); }

 private:
  struct Write {
    std::uint64_t offset;
    SparseBytes bytes;
    bool lost;
  };
  void keep_sectors(SeededRandom& random, const Write& write);
  void leave_garbage(SeededRandom& random, std::uint64_t begin, std::uint64_t end);

  SparseBytes& change_durable();

  SparseBytes live_;
  SparseBytes durable_;       // written to by way of change_durable()
  std::size_t not_held_ = 0;  // so many needles are not in it
  bool holds_ = false;
  std::vector<Write> unsynced_;
  std::unique_ptr<WriteOnce> write_once_;  // null: any place may be written again
};

class SimulatedDisk {
 public:
  using File = std::shared_ptr<SimulatedFile>;  // null: a directory

  // Makes `path` a directory that is there for ever: the root of a drive.
  void add_root(const std::string& path);

  bool exists(const std::string& path) const { return live_.contains(path); }
  bool is_directory(const std::string& path) const;
  File file(const std::string& path) const;                               // null if there is none
  std::vector<std::string> children(const std::string& directory) const;  // full paths

  void add(const std::string& path, File file);
  void remove(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void sync_directory(const std::string& directory);
  void lose_unsynced_names(const std::string& directory);

  // All drives at one instant; or only what lies where `concerns` says.
  using Concerns = std::function<bool(const std::string& path)>;
  void cut(SeededRandom& random, CutPolicy policy, const Concerns& concerns = {});

  // Bytes of all files under `root`, as running programs see them.
  std::uint64_t used_bytes(std::string_view root) const;
  // Every durable byte, by path; also of files whose names are gone from the running system.
  std::map<std::string, Bytes> durable_contents() const;

  // From now on files are kept when their names go, as freed blocks keep what they hold.
  void keep_freed() { keeps_freed_ = true; }
  // Which file, named or freed, has one of the needles among its durable bytes; empty: none.
  std::string find_bytes(const std::vector<Bytes>& needles);
  // The same of needles that may be nowhere from now on.
  void seek(Bytes needle) { sought_.add(std::move(needle)); }
  std::string find_sought();

  // From now on no place of a file may be written twice under one salt (write_once.h).
  void watch_sealing() { written_twice_ = std::make_shared<std::string>(); }
  // Where one was; empty: nowhere.
  std::string written_twice() const { return written_twice_ ? *written_twice_ : ""; }

  static std::string parent_of(const std::string& path);

 private:
  // To `to` comes `file`; from `from` goes what was there. Either may be empty.
  struct NameChange {
    std::string from;
    std::string to;
    File file;
    bool lost = false;
  };
  using Names = std::map<std::string, File>;

  static void apply(Names& names, const NameChange& change);
  void change(NameChange change);
  static bool is_in(const NameChange& change, const std::string& directory);
  std::string find_where(const std::function<bool(SimulatedFile&)>& holds);
  void cut_names(SeededRandom& random, CutPolicy policy, const Concerns& concerns);

  std::shared_ptr<std::string> written_twice_;  // null: nobody watches
  bool keeps_freed_ = false;
  std::vector<std::pair<std::string, File>> kept_;  // by the names they were made with
  NeedleSet sought_;
  Names live_;
  Names durable_;
  std::vector<NameChange> unsynced_;
  std::vector<std::string> roots_;
};

}  // namespace edgecase::test
