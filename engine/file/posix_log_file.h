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
// ask the drive again at the next copy: posix_mapped_file.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "file/descriptor.h"

namespace edgecase::engine {

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
