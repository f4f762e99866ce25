// The parts of the machine's file system: descriptors and joint syncs (descriptor.cc), files that
// are mapped into memory (posix_mapped_file.cc), and what a drive does when it is overwritten
// (drive_facts.cc). PosixMappedFile is read (a table), PosixLogFile is written over (the log);
// between memory and a mapping bytes are copied by functions that survive a drive which fails.
#pragma once

#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::engine {

// An open file descriptor that closes itself, and the system calls on one that have to be repeated:
// interrupted by a signal, or done in part.

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

// Copies into a file that is mapped, or out of it. Where the drive cannot give a page, since it is
// full, away or has failed, the kernel raises SIGBUS: that is the copy's failure here, and not the
// end of the process.
//
// The first copy installs a handler for SIGBUS; one that has nothing to do with a copy goes where
// it would have gone before. Thread-safe.

// False: not all of it has reached the file. Then pages of the mapping are no longer the file's: it
// is to be unmapped.
[[nodiscard]] bool copy_to_mapped(ByteView bytes, char* to);

// False: not all that was copied is the file's. `is_gone` belongs to the mapping: it is set before
// a page of it is no longer the file's, and makes each later copy fail, on every thread.
[[nodiscard]] bool copy_from_mapped(const char* from, std::size_t size, char* to,
                                    std::atomic<bool>& is_gone);

// A file read at random for the first time since it was opened, from a drive that takes nearly as
// long for a page as for a hundred: after the first read in each region the kernel loads all of it,
// so that a store which fits in memory is there soon. Each region once; none where the whole store
// would fill more than half of this machine's memory: its files would push each other out, and the
// drive would read half a megabyte for each value. What counts is the store, not what is open of
// it, of which there are never more than so many files. Thread-safe.
class ReadAround {
 public:
  static constexpr std::uint64_t kRegionBytes = 512u << 10;

  ReadAround(std::uint64_t file_bytes, std::uint64_t store_bytes);

  // After a read of it, which had to wait for no more than it asked for; nor does anybody for the
  // rest.
  void touch(const Descriptor& file, std::uint64_t offset, std::uint64_t size);

 private:
  const std::uint64_t file_bytes_;                               // 0: not read around
  const std::unique_ptr<std::atomic<std::uint64_t>[]> touched_;  // a bit a region
};

// A read of up to kMappedReadMaxBytes is a copy, without a call of the system; a larger one is, up
// to kResidentReadMaxBytes, where all of it lies in memory: else the drive would be asked for a
// page at a time. What was read counts as resident memory of the process from then on, until the
// kernel needs it for something else. Where the mapping fails, at once or later since its drive
// does, reads ask the system, which says why.
//
// It is mapped after kReadsUnmapped small reads. To take a mapping away interrupts all other
// processors, which takes longer than those calls: most tables of a busy store are written,
// merged and removed before anyone has looked for a key in them.
class PosixMappedFile final : public RandomAccessFile {
 public:
  static constexpr std::size_t kMappedReadMaxBytes = 32u << 10;
  static constexpr std::size_t kResidentReadMaxBytes = 256u << 10;
  static constexpr std::uint32_t kReadsUnmapped = 24;

  // `store_bytes`: see ReadAround.
  static Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path,
                                                        std::uint64_t store_bytes);
  ~PosixMappedFile() override;

  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override;
  Result<std::size_t> read_two(std::uint64_t offset, std::size_t first_size, char* first,
                               std::size_t second_size, char* second) const override;
  void expect_read(std::uint64_t offset, std::size_t size) const override;
  std::uint64_t size_bytes() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  // Where these bytes lie in memory; null: nowhere, or it is too many.
  const char* mapped(std::uint64_t offset, std::size_t size) const {
    const char* const mapping = mapping_.load(std::memory_order_acquire);
    const bool is_there = mapping != nullptr && size <= kResidentReadMaxBytes && offset <= size_ &&
                          size <= size_ - offset && !is_gone_.load(std::memory_order_relaxed);
    return is_there ? mapping + offset : nullptr;
  }
  // The same of bytes that are to be copied; counts a small read.
  const char* to_copy(std::uint64_t offset, std::size_t size) const;
  void map() const;
  static bool is_resident(const char* bytes, std::size_t size);

  PosixMappedFile(Descriptor file, std::string path, std::uint64_t size, std::uint64_t store_bytes);

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t size_;
  mutable std::atomic<std::uint32_t> small_reads_{0};  // before it was mapped
  mutable std::atomic<const char*> mapping_{nullptr};  // null: not mapped, yet or for good
  mutable std::atomic<bool> is_gone_{false};
  mutable ReadAround around_;
};

// A LogFile on the machine's file system: a file whose blocks are all allocated and written before
// the first record, so that overwriting them needs no space and no change of metadata at a sync.
//
// Two ways lead to the page cache, either surviving kill -9. pwrite() costs a system call (1.2 µs
// measured for 100 bytes); a copy into a shared mapping costs 0.005 µs, but the first touch of a
// page after every sync is a fault, and such a page takes three times as long to sync (390 µs
// against 125 µs, ext4). So the first kKernelWrites writes after a sync or a large one, and large
// ones, go through pwrite(): a user who syncs every few records never touches the mapping, nor do
// heads of large records, for which pages would be faulted in that pwrite() then fills. A longer
// run of small writes goes through a mapping that moves along; no more of the file is
// resident.
//
// A drive that fails under a mapped page, or is full where a write takes new blocks, is a SIGBUS
// where pwrite() would answer with an error. So the mapping is faulted in by MADV_POPULATE_WRITE,
// which does answer with one; where the kernel does not know it (before 5.14), and while a sync is
// running, only pwrite() is used. The kernel may still have written such a page out by itself, and
// ask the drive again at the next copy, which copy_to_mapped() survives.
class PosixLogFile final : public LogFile {
 public:
  static Result<std::unique_ptr<LogFile>> create(const std::string& path,
                                                 std::uint64_t capacity_bytes);
  static Result<std::unique_ptr<LogFile>> open(const std::string& path);

  PosixLogFile(Descriptor file, std::string path, std::uint64_t capacity_bytes);
  ~PosixLogFile() override;

  std::uint64_t capacity_bytes() const override { return capacity_bytes_; }
  Status write(std::uint64_t offset, ByteView bytes) override;
  Status sync() override;
  Status write_durably(std::uint64_t offset, ByteView bytes) override;
  void begin_write_out(std::uint64_t end) override;
  void rest() override { unmap(); }
  const std::string& path() const override { return path_; }

  // Writes after a sync, or after one that is not small, that go through pwrite().
  static constexpr std::uint32_t kKernelWrites = 32;
  static constexpr std::size_t kMappedWriteMaxBytes = 4096;
  static constexpr std::uint64_t kMappingBytes = 4u << 20;
  static constexpr std::uint64_t kFaultInBytes = 64u << 10;  // more than one mapped write, by pages
  static constexpr std::uint64_t kWriteOutBytes = 1u << 20;  // begun at a time

 private:
  // Makes the mapping cover [offset, offset + size); false: not possible now, use pwrite().
  bool move_mapping(std::uint64_t offset, std::size_t size);
  void unmap_before(std::uint64_t end);
  void unmap();
  Status give_up(Status failure) EC_EXCLUDES(mutex_);

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t capacity_bytes_;

  // The writer's own.
  char* mapping_ = nullptr;
  std::uint64_t mapping_offset_ = 0;
  std::uint64_t mapping_size_ = 0;
  std::uint64_t faulted_begin_ = 0;  // within the file, as of mapping_sync_count_
  std::uint64_t faulted_end_ = 0;
  std::uint64_t mapping_sync_count_ = 0;  // syncs begun when that was faulted in
  bool mapping_possible_ = true;
  std::uint64_t written_out_ = 0;  // the drive has begun with what is below

  std::atomic<std::uint64_t> syncs_begun_{0};
  std::atomic<std::uint64_t> syncs_ended_{0};
  std::atomic<std::uint32_t> writes_since_sync_{0};

  std::atomic<bool> failed_{false};
  Mutex mutex_;
  Status failure_ EC_GUARDED_BY(mutex_);
};

// Tells whether a drive of this machine overwrites in place; what a certificate of erasure may say
// depends on it. The kernel's answers decide: of the file system (statfs, mountinfo, statx) and of
// the devices below it (/sys), also where the service's sandbox hides most of /proc. A drive of
// which that is not known does not count as one.

// What is known of a file system before it is judged.
struct DriveProbe {
  std::uint64_t magic = 0;       // statfs f_type
  std::string type = {};         // of mountinfo: "ext4", "ext3"; empty: no mount is to be seen
  std::string options = {};      // of its superblock, as there: "rw,nodelalloc"
  std::string all_options = {};  // of /proc/fs/ext4, a line each; empty: hidden
  std::uint32_t flags = 0;       // FS_IOC_GETFLAGS of the directory and what is in it, joined
  bool is_realtime = false;      // of XFS: a file lies on its real-time device
  // Whether a file of ext4 takes writes past the page cache: not where it journals data. Nothing: a
  // kernel before 6.1, or there is no file.
  std::optional<bool> has_direct_writes = std::nullopt;
  std::uint64_t swap_bytes = 0;  // of the machine
};

// Without `id`, and as if the devices below it did what they are told.
DriveFacts judge_file_system(const DriveProbe& probe);

// Where the kernel tells of devices and mounts; tests have a copy of their own.
struct KernelTree {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

// Judges the device with these numbers and all that it lies on. `of_file` judges the file system of
// the file behind a loop device.
DriveFacts judge_device(const KernelTree& kernel, unsigned major_number, unsigned minor_number,
                        const std::function<DriveFacts(const std::string&)>& of_file);

// As FileSystem::drive_facts().
DriveFacts look_at_drive(const std::string& directory);

}  // namespace edgecase::engine
