// Files, as the engine is given them: the only way to a drive.
//
// Durability: nothing is durable before sync() of the file *and*, for a new, renamed or removed
// name, sync_directory() of its parent returned Ok. After a failed write or sync the file must be
// given up. Paths are absolute or relative to the working directory; the engine uses two roots, one
// a drive. Thread-safe; the files it returns say for themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase {

// Appended front to back by one thread, then closed. Survives kill -9 only after flush() or sync().
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // May buffer. Errors: OutOfSpace, IoError.
  virtual Status append(ByteView bytes) = 0;
  // Hands everything to the kernel and makes it durable.
  virtual Status sync() = 0;
  // Nothing more is appended: the drive may begin with all of it, so that less is left for sync().
  // Promises nothing.
  virtual void begin_write_out() {}
  // Bytes appended so far.
  virtual std::uint64_t size_bytes() const = 0;
};

// Read at any offset by any number of threads.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads at most `size` bytes into `buffer` and returns how many: fewer only at the end of the
  // file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const = 0;
  // The same of bytes that lie behind each other and belong into two places; in one read where that
  // can be.
  virtual Result<std::size_t> read_two(std::uint64_t offset, std::size_t first_size, char* first,
                                       std::size_t second_size, char* second) const;
  // These bytes will be read next: fetches into the processor's cache what already lies in memory.
  // Only advice, and free of cost.
  virtual void expect_read(std::uint64_t offset, std::size_t size) const {
    static_cast<void>(offset);
    static_cast<void>(size);
  }
  virtual std::uint64_t size_bytes() const = 0;
  virtual const std::string& path() const = 0;
};

// A file of fixed size whose blocks all exist before the first write, overwritten in place by one
// thread. Written bytes survive kill -9 at once, a power cut after sync().
class LogFile {
 public:
  virtual ~LogFile() = default;
  virtual std::uint64_t capacity_bytes() const = 0;
  // `offset + bytes.size()` must be within the capacity.
  virtual Status write(std::uint64_t offset, ByteView bytes) = 0;
  // May run beside write(): what was written before the call is durable after it.
  virtual Status sync() = 0;
  // These bytes are durable on return; what else was written need not be. Not beside sync().
  virtual Status write_durably(std::uint64_t offset, ByteView bytes) {
    const Status written = write(offset, bytes);
    return written.ok() ? sync() : written;
  }
  // Nothing below `end` will be written again: the drive may begin with it, so that less is left
  // for sync(). Promises nothing. By the writing thread.
  virtual void begin_write_out(std::uint64_t end) { static_cast<void>(end); }
  // Gives back the memory that write() takes; it may be called again. By the writing thread.
  virtual void rest() {}
  virtual const std::string& path() const = 0;
};

// Held for the lock's lifetime.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct DirectoryEntry {
  std::string name;  // without its directory
  bool is_directory = false;
};

struct Space {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // what this process may still use
  std::uint64_t device = 0;      // equal for two paths on one file system
};

// A stretch of a file that is to be zeros, and what became of that.
struct Overwriting {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // within the file
  Status status = {};       // one that has failed already is left alone
};

// What becomes of bytes on a drive when others are written over them.
enum class Overwrites : unsigned char {
  InPlace,    // they are gone: the others take their place
  Elsewhere,  // they stay where they were, until the drive happens to need the room
  Unknown,    // that cannot be told here, so they may stay
};

// What is known of the file system that a directory lies on.
struct DriveFacts {
  Overwrites overwrites = Overwrites::Unknown;
  std::string file_system = {};  // "ext4"
  std::string why = {};          // a sentence's end, "it is btrfs, which ..."; empty: InPlace
  std::uint64_t id = 0;          // tells file systems apart, after a restart too; 0: it has none
};

// Equal for two paths that lead to one file or directory, through links and bind mounts too.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Fails with AlreadyExists if there is such a file.
  virtual Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) = 0;
  // NotFound if there is none.
  virtual Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) = 0;
  // The same, and where the system can, reads come from the drive itself: neither from what is
  // cached of the file, nor is that changed.
  virtual Result<std::unique_ptr<RandomAccessFile>> open_uncached(const std::string& path) {
    return open_file(path);
  }
  // The same, for many small reads: where the system can, they are copied from memory into which
  // the file is mapped, and bring what lies around them, unless `store_bytes`, all that is read so
  // in turn, is much for this machine's memory. Nobody makes the file shorter meanwhile.
  virtual Result<std::unique_ptr<RandomAccessFile>> open_mapped(
      const std::string& path, [[maybe_unused]] std::uint64_t store_bytes) {
    return open_file(path);
  }
  // Creates (AlreadyExists) with every block written and the size durable; OutOfSpace leaves
  // nothing behind.
  virtual Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                           std::uint64_t capacity_bytes) = 0;
  // For reuse of an existing one, its contents as they are.
  virtual Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) = 0;
  // Zeros over all of these, durable where `status` is Ok afterwards. As many files are open
  // meanwhile, and where the system can they are synced together: then that takes hardly longer
  // than of one. Nobody else writes to these files.
  virtual void overwrite(std::span<Overwriting> stretches);

  virtual Status create_directory(const std::string& path) = 0;  // Ok if it exists
  virtual Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Status rename_file(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove_file(const std::string& path) = 0;  // NotFound if there is none
  virtual Result<std::uint64_t> file_size(const std::string& path) = 0;
  virtual Result<Space> space(const std::string& path) = 0;
  // Errors: NotFound; Unsupported where paths have one spelling only (tests).
  virtual Result<FileIdentity> identity(const std::string& path);
  // What overwriting does there now: another mount may be another drive. Looks at files in the
  // directory and right below it, a few hundred at most. Never fails: what it cannot see is
  // Unknown.
  virtual DriveFacts drive_facts(const std::string& directory);
  // Exclusive, held by this process (OFD lock): Locked if another holder has it, in this process
  // too. Creates the file.
  virtual Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) = 0;
  // How many files a store may keep open for reading.
  virtual std::size_t open_files_max() const { return kOpenFilesMax; }

 protected:
  static constexpr std::size_t kOpenFilesMax = 2048;
};

inline Result<std::size_t> RandomAccessFile::read_two(std::uint64_t offset, std::size_t first_size,
                                                      char* first, std::size_t second_size,
                                                      char* second) const {
  auto got = read(offset, first_size, first);
  if (!got.ok() || *got < first_size) return got;
  auto more = read(offset + first_size, second_size, second);
  if (!more.ok()) return more;
  return first_size + *more;
}

inline Result<FileIdentity> FileSystem::identity(const std::string& path) {
  return unsupported(path + ": this file system has no identities");
}

// A file system of tests, which knows no drives.
inline DriveFacts FileSystem::drive_facts(const std::string&) {
  return {.overwrites = Overwrites::InPlace};
}

// The machine's file system. Lives for the length of the process, whose limit of open files the
// first call raises to 8,192 as far as it may; a store keeps a half of what it then is open, at
// most 2,048.
FileSystem& posix_file_system();

}  // namespace edgecase
