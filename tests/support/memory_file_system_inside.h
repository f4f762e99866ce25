// The shared state of a MemoryFileSystem and of the files it handed out. Only for
// memory_file_system.cc and memory_files.cc.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/memory_file_system.h"

namespace edgecase::test {

inline constexpr std::size_t kOperationCount = static_cast<std::size_t>(Operation::Lock) + 1;

class MemoryFileSystem::Inside {
 public:
  struct Drive {
    std::string root;
    std::uint64_t capacity_bytes = 0;
    bool gone = false;
    bool read_only = false;
    bool lying_sync = false;
    std::uint64_t epoch = 0;  // grows when the drive is plugged in again
  };
  struct Fault {
    Operation operation;
    std::uint64_t after;  // matching operations before it
    int error;
    FaultMode mode;
    std::string root;
    bool spent = false;
  };
  // What a file needs to know of itself; the bytes may have lost their name.
  struct Handle {
    std::string path;
    SimulatedDisk::File file;
    std::uint64_t epoch = 0;
    std::uint64_t drive_epoch = 0;
  };

  // All below: with `mutex` held. The errno this operation answers with, or 0 to go on.
  int begin(Operation operation, const std::string& path);
  int begin(Operation operation, const Handle& handle);
  bool is_stale(const Handle& handle);  // what it was opened on is gone
  void stamp(Handle& handle);           // as opened now
  Drive& drive_of(const std::string& path);
  int reserve(const std::string& path, std::uint64_t bytes);  // 0 or ENOSPC
  void lose_unsynced(const Drive& drive);
  bool is_broken(const std::string& path, std::uint64_t offset, std::uint64_t bytes) const {
    const auto pages = broken_pages.find(path);
    if (pages == broken_pages.end()) return false;
    const auto page = pages->second.lower_bound(offset / 4096);
    return page != pages->second.end() && *page * 4096 < offset + bytes;
  }

  mutable std::mutex mutex;
  SimulatedDisk disk;
  std::vector<Drive> drives;
  std::vector<Fault> faults;
  std::uint64_t epoch = 0;  // grows when every open file becomes worthless
  std::uint64_t operations = 0;
  std::uint64_t stop_at = UINT64_MAX;
  std::uint64_t failed = 0;
  std::uint64_t mapped_store_bytes = 0;
  std::array<std::uint64_t, kOperationCount> counts{};
  std::set<std::string> locks;
  std::map<std::string, std::set<std::uint64_t>> broken_pages;
  // Files being appended, in the order they were made: for kill_process().
  std::map<std::uint64_t, SimulatedDisk::File> appending;
  std::uint64_t next_appending = 0;
};

std::unique_ptr<WritableFile> make_memory_writable_file(
    std::shared_ptr<MemoryFileSystem::Inside> inside, MemoryFileSystem::Inside::Handle handle);
std::unique_ptr<RandomAccessFile> make_memory_random_access_file(
    std::shared_ptr<MemoryFileSystem::Inside> inside, MemoryFileSystem::Inside::Handle handle);
std::unique_ptr<LogFile> make_memory_log_file(std::shared_ptr<MemoryFileSystem::Inside> inside,
                                              MemoryFileSystem::Inside::Handle handle);

}  // namespace edgecase::test
