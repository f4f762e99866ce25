// A FileSystem in memory whose drives forget, tear, fill up, fail and disappear as real ones do, by
// seed. Thread-safe. Files it handed out keep working on it until power_cut() or kill_process();
// after that they answer with an error, and everything is to be opened again.
//
//   MemoryFileSystem disk({"/m", "/v"});             // two drives
//   ... run, with acknowledgements noted ...
//   disk.power_cut(seed, CutPolicy::Any);            // both at one instant
//   ... open again, compare ...
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/file_system.h"
#include "support/simulated_disk.h"

namespace edgecase::test {

enum class Operation : unsigned char {
  Any,
  CreateFile,
  OpenFile,
  Append,  // of a WritableFile; one that fails writes half of its bytes
  Sync,    // of a WritableFile; one that fails loses what it should have made durable, for good
  Read,
  CreateLogFile,
  OpenLogFile,
  LogWrite,
  LogSync,
  CreateDirectory,
  ListDirectory,
  SyncDirectory,
  Rename,
  Remove,
  FileSize,
  Space,
  Lock,
};

enum class FaultMode : unsigned char { Once, Sticky };

class MemoryFileSystem final : public FileSystem {
 public:
  // One drive a root; a path belongs to the longest root it begins with. Roots exist.
  explicit MemoryFileSystem(std::vector<std::string> roots);
  ~MemoryFileSystem() override;

  // --- what happens to drives ---

  void power_cut(std::uint64_t seed, CutPolicy policy);
  // kill -9: written log bytes stay, unsynced appends lose a tail that the process still held.
  void kill_process(std::uint64_t seed);
  // The machine, or the process, stops at the nth operation from now (1 is the next): it and all
  // later ones do nothing and answer EIO. power_cut() or kill_process() says which of them it was,
  // and then all goes on. kNever takes it back as long as it has not happened.
  static constexpr std::uint64_t kNever = 0;
  void stop_at(std::uint64_t nth);
  bool stopped() const;

  // The nth matching operation from now (1 is the next) fails with `error`, an errno; Sticky: and
  // every matching one after it. `root`: only that drive; empty: all. Several may be set.
  void fail_nth(Operation operation, std::uint64_t nth, int error, FaultMode mode,
                const std::string& root = "");
  void clear_faults();
  // Failures that fail_nth() has caused so far.
  std::uint64_t faults() const;

  // 0: no limit. A log file counts with its capacity.
  void set_capacity(const std::string& root, std::uint64_t bytes);
  // As a pulled USB drive: appends and log writes still seem to work, syncs answer EIO, changes of
  // names EROFS, reads and everything else EIO. What was unsynced is lost. Plugged in again it
  // holds what was synced, and files that were open before answer EIO for good.
  void set_gone(const std::string& root, bool gone);
  void set_read_only(const std::string& root, bool read_only);
  // Syncs answer Ok and do nothing. Only "no corruption" may be asked of what runs on this.
  void set_lying_sync(const std::string& root, bool lying);

  // --- what a test wants to know ---

  std::uint64_t operations() const;  // all calls so far that reach a drive
  std::uint64_t operations(Operation operation) const;
  bool exists(const std::string& path) const;
  Bytes contents(const std::string& path) const;  // as a reader would see them; empty if none
  std::map<std::string, Bytes> durable_contents() const;
  std::uint64_t used_bytes(const std::string& root) const;
  std::uint64_t mapped_store_bytes() const;  // said with the last file opened to be mapped
  // As SimulatedDisk's.
  void keep_freed();
  std::string find_bytes(const std::vector<Bytes>& needles) const;
  void seek(Bytes needle);
  std::string find_sought() const;
  void watch_sealing();
  std::string written_twice() const;

  // --- damage; durable at once ---

  // Creates the file if there is none.
  void set_contents(const std::string& path, SparseBytes bytes);
  void set_contents(const std::string& path, ByteView bytes) {
    set_contents(path, SparseBytes(bytes));
  }
  void flip_bit(const std::string& path, std::uint64_t byte, int bit);
  void truncate(const std::string& path, std::uint64_t size);
  // Reads of the page of 4 KiB around that byte answer EIO, for good.
  void break_page(const std::string& path, std::uint64_t byte);

  // --- FileSystem ---

  Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) override;
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) override;
  Result<std::unique_ptr<RandomAccessFile>> open_mapped(const std::string& path,
                                                        std::uint64_t store_bytes) override;
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                   std::uint64_t capacity_bytes) override;
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) override;
  Status create_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status rename_file(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Result<std::uint64_t> file_size(const std::string& path) override;
  Result<edgecase::Space> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) override;

  class Inside;  // for the files it hands out

 private:
  std::shared_ptr<Inside> inside_;  // outlived by files that are closed late
};

}  // namespace edgecase::test
