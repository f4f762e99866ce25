// A file that is mapped into memory: a read of up to kMappedReadMaxBytes is a copy, without a call
// of the system; a larger one is, up to kResidentReadMaxBytes, where all of it lies in memory:
// else the drive would be asked for a page at a time. What was read counts as resident memory of
// the process from then on, until the kernel needs it for something else. Where the mapping fails,
// at once or later since its drive does, reads ask the system, which says why.
//
// It is mapped after kReadsUnmapped small reads. To take a mapping away interrupts all other
// processors, which takes longer than those calls: most tables of a busy store are written,
// merged and removed before anyone has looked for a key in them.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
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

}  // namespace edgecase::engine
