// Files of the machine's file system that are mapped into memory: PosixMappedFile is read (a
// table), PosixLogFile is written over (the log). Between memory and a mapping bytes are copied by
// functions that survive a drive which fails under it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "file/descriptor.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
