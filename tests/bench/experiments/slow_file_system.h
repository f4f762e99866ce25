// A drive that is slower than the one it lies on: what a store does below one directory takes as
// long as a drive of a given speed would need.
//
// Bytes read and written share one rate, and each sync takes a time of its own after the real one,
// one after the other, as a drive without a protected cache does it. A caller may be a millisecond
// ahead of the drive with its bytes, as with a short queue. There is no page cache in front of it:
// what the machine has in memory is charged like everything else. Files elsewhere, and names (list,
// rename, remove), cost nothing extra.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "edgecase/file_system.h"

namespace edgecase::cli::bench {

struct DriveSpeed {
  double bytes_per_second = 0;
  double sync_seconds = 0;
};

// When the drive is done with what it was given. Thread-safe; what is given meanwhile waits.
class DriveClock {
 public:
  explicit DriveClock(const DriveSpeed& speed) : speed_(speed) {}
  // Return when a drive would have.
  void transfer(std::size_t bytes);
  void sync();

 private:
  void occupy(double seconds, std::chrono::steady_clock::duration ahead);

  const DriveSpeed speed_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point free_;  // nothing is under way from then on
};

// Thread-safe. `beneath` must outlive it, and it the files it hands out.
class SlowFileSystem final : public FileSystem {
 public:
  // `directory` as the paths that come begin with it, without a slash at the end.
  SlowFileSystem(FileSystem& beneath, std::string directory, const DriveSpeed& speed);

  Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) override;
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) override;
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                   std::uint64_t capacity_bytes) override;
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) override;
  Status create_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status rename_file(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Result<std::uint64_t> file_size(const std::string& path) override;
  Result<Space> space(const std::string& path) override;
  Result<FileIdentity> identity(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) override;

 private:
  bool is_slow(const std::string& path) const;

  FileSystem& beneath_;
  const std::string prefix_;  // with a slash at the end
  DriveClock clock_;
};

}  // namespace edgecase::cli::bench
