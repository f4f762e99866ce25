// An open file descriptor that closes itself, and the system calls on one that have to be repeated:
// interrupted by a signal, or done in part.
#pragma once

#include <linux/aio_abi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::engine {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    // Not repeated when interrupted: on Linux the number is free again whatever close() says.
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }

 private:
  int number_ = -1;
};

// "cannot write /d/1.val: No space left on device", with the code that `error` (an errno) stands
// for: OutOfSpace for a full drive or quota, IoError for a drive that fails or takes no writes,
// NotFound, AlreadyExists, NotAllowed, Busy for a limit of the system, InvalidArgument.
Status errno_status(int error, std::string_view action, const std::string& path);

// open(2) with O_CLOEXEC. New files are for the owner and its group to read.
Result<Descriptor> open_descriptor(const std::string& path, int flags);
Status write_whole(const Descriptor& file, std::uint64_t offset, ByteView bytes,
                   const std::string& path);
// Fewer than `size` only at the end of the file.
Result<std::size_t> read_whole(const Descriptor& file, std::uint64_t offset, std::size_t size,
                               char* buffer, const std::string& path);
// The same into two places, the second behind the first.
Result<std::size_t> read_two_whole(const Descriptor& file, std::uint64_t offset,
                                   std::span<char> first, std::span<char> second,
                                   const std::string& path);
Status sync_data(const Descriptor& file, const std::string& path);   // fdatasync
Status sync_whole(const Descriptor& file, const std::string& path);  // fsync
// The kernel begins to write out what is dirty in the range, without anyone waiting for it. A
// failure shows in the next sync.
void begin_write_out(const Descriptor& file, std::uint64_t offset, std::uint64_t size);
Result<std::uint64_t> size_of(const Descriptor& file, const std::string& path);

struct FileToSync {
  const Descriptor* file = nullptr;
  const std::string* path = nullptr;  // for messages
  Status* status = nullptr;           // Ok: what was written before is durable
};

// Syncs many files together: the kernel is handed all of them at once (asynchronous I/O, which
// syncs since Linux 4.18) and asks the drive no more often than for one or two of them, where each
// sync by itself would ask it, wait, and be woken. Where the system does not do that they are
// synced one after the other. Thread-safe.
class JointSync {
 public:
  JointSync() = default;
  ~JointSync();
  JointSync(const JointSync&) = delete;
  JointSync& operator=(const JointSync&) = delete;

  void sync(std::span<const FileToSync> files);

  static constexpr std::size_t kAtOnce = 64;

 private:
  // Answers how many of these, the first ones, the kernel took; all of them are done.
  std::size_t sync_some(std::span<const FileToSync> files) EC_REQUIRES(mutex_);

  Mutex mutex_;  // held across I/O
  // Made when it is first needed and kept: to give it back takes the kernel longer than a sync.
  aio_context_t context_ EC_GUARDED_BY(mutex_) = 0;
};

// Memory for reads and writes past the page cache (O_DIRECT).

// The alignment of memory, sizes and offsets in files: no drive in use asks for more.
inline constexpr std::uint64_t kDirectBlockBytes = 4096;

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};
using DirectMemory = std::unique_ptr<char, FreeMemory>;

// Whole blocks; null when there is no memory.
inline DirectMemory take_direct_memory(std::uint64_t bytes) {
  return DirectMemory(static_cast<char*>(std::aligned_alloc(kDirectBlockBytes, bytes)));
}

// Reading and overwriting files of the machine's file system past the page cache (O_DIRECT): what
// is cached is neither asked nor replaced, and zeros wait for no writeback. Where a file system
// does not know that, and for what is less than a block, they go through the cache. Stateless, but
// for the open file.
class PosixDirectFile final : public RandomAccessFile {
 public:
  static Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path);

  // At any offset and size; takes as much memory as it reads, for the length of the call.
  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override;
  std::uint64_t size_bytes() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  PosixDirectFile(Descriptor file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t size_;
};

// As FileSystem::overwrite(). Takes 256 KiB of memory for the length of the call.
void overwrite_posix(std::span<Overwriting> stretches, JointSync& syncs);

}  // namespace edgecase::engine
