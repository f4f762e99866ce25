// Removes files that nobody needs any more, and what lies in them: zeros are written over all of a
// file and synced before its name goes, where that is asked for, so that freed blocks hold nothing
// of what was erased. A file that resists keeps its name and is remembered. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "base/mutex.h"
#include "edgecase/file_system.h"

namespace edgecase::engine {

// Zeros over all of it, synced. Answers how many; NotFound when there is no such file.
Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path);

// A stretch of a file.
struct FilePart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
// Zeros over these alone, synced. They lie within the file.
Status overwrite_parts(FileSystem& file_system, const std::string& path,
                       std::span<const FilePart> parts);

class FileRemover {
 public:
  // `overwrites` is asked for each file.
  FileRemover(FileSystem& file_system, std::function<bool()> overwrites)
      : file_system_(file_system), overwrites_(std::move(overwrites)) {}

  // One that is not there is removed already.
  Status remove(const std::string& path);
  // The same, overwritten whatever is asked for.
  Status remove_overwritten(const std::string& path);
  // The file stays, these parts of it do not.
  Status blank(const std::string& path, std::span<const FilePart> parts);
  // Those that resisted, once more, overwritten: Ok when none is left.
  Status retry();

  std::uint64_t removed_files() const { return removed_files_.load(); }
  std::uint64_t overwritten_bytes() const { return overwritten_bytes_.load(); }

 private:
  Status remove(const std::string& path, bool overwritten);

  FileSystem& file_system_;
  const std::function<bool()> overwrites_;
  std::atomic<std::uint64_t> removed_files_{0};
  std::atomic<std::uint64_t> overwritten_bytes_{0};
  Mutex mutex_;
  std::set<std::string> left_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
