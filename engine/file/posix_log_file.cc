#include "file/posix_log_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "file/posix_mapped_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // the kernel's number; older C libraries do not name it
#endif

namespace edgecase::engine {
namespace {

constexpr std::size_t kZerosAtOnceBytes = 256u << 10;
constexpr std::uint64_t kPageMaxBytes = 64u << 10;  // of any machine this runs on

// Every block allocated (so that a full drive shows now) and written (so that it is no longer
// marked as unwritten, a change of metadata that every first sync would otherwise carry).
Status write_every_block(const Descriptor& file, std::uint64_t capacity_bytes,
                         const std::string& path) {
  // Asked first: an allocation that cannot succeed would take all that is left before it fails,
  // and whoever else writes to the drive meanwhile would find it full.
  struct statvfs drive {};
  if (::fstatvfs(file.number(), &drive) != 0) return errno_status(errno, "ask the size of", path);
  if (std::uint64_t{drive.f_bavail} * drive.f_frsize < capacity_bytes) {
    return errno_status(ENOSPC, "allocate", path);
  }
  int error = 0;
  do {
    error = ::fallocate(file.number(), 0, 0, static_cast<off_t>(capacity_bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0 && error != EOPNOTSUPP && error != ENOSYS) {
    return errno_status(error, "allocate", path);
  }
  const Bytes zeros(std::min<std::uint64_t>(kZerosAtOnceBytes, capacity_bytes), '\0');
  for (std::uint64_t offset = 0; offset < capacity_bytes; offset += zeros.size()) {
    const std::uint64_t size = std::min<std::uint64_t>(zeros.size(), capacity_bytes - offset);
    EC_TRY(write_whole(file, offset, ByteView(zeros).substr(0, size), path));
  }
  return sync_whole(file, path);
}

}  // namespace

Result<std::unique_ptr<LogFile>> PosixLogFile::create(const std::string& path,
                                                      std::uint64_t capacity_bytes) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDWR | O_CREAT | O_EXCL));
  const Status written = write_every_block(file, capacity_bytes, path);
  if (!written.ok()) {
    ::unlink(path.c_str());
    return written;
  }
  return std::unique_ptr<LogFile>(
      std::make_unique<PosixLogFile>(std::move(file), path, capacity_bytes));
}

Result<std::unique_ptr<LogFile>> PosixLogFile::open(const std::string& path) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDWR));
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(file, path));
  return std::unique_ptr<LogFile>(std::make_unique<PosixLogFile>(std::move(file), path, size));
}

PosixLogFile::PosixLogFile(Descriptor file, std::string path, std::uint64_t capacity_bytes)
    : file_(std::move(file)), path_(std::move(path)), capacity_bytes_(capacity_bytes) {}

PosixLogFile::~PosixLogFile() {
  unmap();
}

Status PosixLogFile::write(std::uint64_t offset, ByteView bytes) {
  EC_CHECK(offset <= capacity_bytes_ && bytes.size() <= capacity_bytes_ - offset);
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const std::uint32_t before = writes_since_sync_.load(std::memory_order_relaxed);
  if (before < kKernelWrites) writes_since_sync_.fetch_add(1, std::memory_order_relaxed);
  const bool is_small = bytes.size() <= kMappedWriteMaxBytes;
  if (!is_small) writes_since_sync_.store(0, std::memory_order_relaxed);
  if (before >= kKernelWrites && is_small && !bytes.empty() && move_mapping(offset, bytes.size())) {
    if (copy_to_mapped(bytes, mapping_ + (offset - mapping_offset_))) return ok();
    mapping_possible_ = false;  // the system call says what is wrong, and writes it whole where not
    unmap();
  }
  if (Status status = write_whole(file_, offset, bytes, path_); !status.ok()) {
    return give_up(std::move(status));
  }
  return ok();
}

Status PosixLogFile::sync() {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  syncs_begun_.fetch_add(1);
  // Reset before, not after: what is written meanwhile is not part of this sync.
  writes_since_sync_.store(0, std::memory_order_relaxed);
  // fdatasync() covers pages that are dirty through the mapping as well as those from pwrite().
  Status status = sync_data(file_, path_);
  if (!status.ok()) return give_up(std::move(status));  // and the mapping stays closed: see below
  syncs_ended_.fetch_add(1);
  return ok();
}

// By O_DSYNC the kernel waits for this write alone. fdatasync() would write all that is dirty, of
// an earlier use of the file too.
Status PosixLogFile::write_durably(std::uint64_t offset, ByteView bytes) {
  EC_CHECK(offset <= capacity_bytes_ && bytes.size() <= capacity_bytes_ - offset);
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  syncs_begun_.fetch_add(1);  // of these pages it is one
  Result<Descriptor> synced = open_descriptor(path_, O_RDWR | O_DSYNC);
  Status status = synced.status();
  if (status.ok()) status = write_whole(*synced, offset, bytes, path_);
  if (!status.ok()) return give_up(std::move(status));
  syncs_ended_.fetch_add(1);
  return ok();
}

// Whole pages only, but at the end of the file, and none that is written once more: a page on its
// way to the drive is read-only to the mapping, as during a sync.
void PosixLogFile::begin_write_out(std::uint64_t end) {
  const bool is_all = end == capacity_bytes_;
  if (end < written_out_ + (is_all ? 1 : kWriteOutBytes)) return;
  const std::uint64_t until = is_all ? end : end / kPageMaxBytes * kPageMaxBytes;
  unmap_before(until);
  engine::begin_write_out(file_, written_out_, until - written_out_);
  written_out_ = until;
}

bool PosixLogFile::move_mapping(std::uint64_t offset, std::size_t size) {
  const std::uint64_t begun = syncs_begun_.load();
  // A running or failed sync may have made the pages read-only; the fault of a copy could then be
  // one that the drive answers with an error.
  if (!mapping_possible_ || syncs_ended_.load() != begun) return false;
  const std::uint64_t end = offset + size;
  if (mapping_sync_count_ == begun && offset >= faulted_begin_ && end <= faulted_end_) return true;

  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t start = offset / page * page;
  if (mapping_ == nullptr || offset < mapping_offset_ || end > mapping_offset_ + mapping_size_) {
    unmap();
    const std::uint64_t length = std::min(kMappingBytes, capacity_bytes_ - start);
    void* mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(),
                          static_cast<off_t>(start));
    if (mapped == MAP_FAILED) return false;
    mapping_ = static_cast<char*>(mapped);
    mapping_offset_ = start;
    mapping_size_ = length;
  }
  // Faulting in makes a page dirty: only some pages ahead, or every sync would write the mapping.
  const std::uint64_t until = std::min(start + kFaultInBytes, mapping_offset_ + mapping_size_);
  if (end > until) return false;
  if (::madvise(mapping_ + (start - mapping_offset_), until - start, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINVAL) mapping_possible_ = false;
    unmap();
    return false;
  }
  faulted_begin_ = start;
  faulted_end_ = until;
  mapping_sync_count_ = begun;
  return true;
}

// A mapped page that is written out is first made read-only, each with an interrupt of all other
// processors; pages that go together take one.
void PosixLogFile::unmap_before(std::uint64_t end) {
  if (mapping_ == nullptr || end <= mapping_offset_) return;
  if (end >= mapping_offset_ + mapping_size_) return unmap();
  if (::madvise(mapping_, end - mapping_offset_, MADV_DONTNEED) != 0) return unmap();
  faulted_begin_ = std::max(faulted_begin_, end);
  faulted_end_ = std::max(faulted_end_, end);
}

void PosixLogFile::unmap() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
  mapping_ = nullptr;
  faulted_begin_ = faulted_end_ = 0;
}

// Keeps the first failure and answers with it, now and ever after.
Status PosixLogFile::give_up(Status failure) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  return failure_;
}

}  // namespace edgecase::engine
