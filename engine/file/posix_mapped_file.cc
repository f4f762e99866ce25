#include "file/posix_file_system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "edgecase/status.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // the kernel's number; older C libraries do not name it
#endif

namespace edgecase::engine {
namespace {

// The copy under way on this thread.
struct Copy {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
  std::atomic<bool> failed;
  std::atomic<std::atomic<bool>*> is_gone;  // of the mapping; null: nobody asks
};
thread_local Copy under_way;

std::uintptr_t page_bytes = 0;
struct sigaction action_before {};

// Memory takes the page's place, and the copy goes on into that.
bool replace_page(std::uintptr_t address) {
  if (address < under_way.begin.load(std::memory_order_relaxed) ||
      address >= under_way.end.load(std::memory_order_relaxed))
    return false;
  if (std::atomic<bool>* const is_gone = under_way.is_gone.load(std::memory_order_relaxed))
    is_gone->store(true, std::memory_order_seq_cst);
  const std::uintptr_t page = address / page_bytes * page_bytes;
  const long made = ::syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (made != static_cast<long>(page)) return false;
  under_way.failed.store(true, std::memory_order_relaxed);
  return true;
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool is_sent = info->si_code <= 0;
  if (is_sent || !replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    ::sigaction(SIGBUS, &action_before, nullptr);
    if (is_sent) static_cast<void>(::raise(signal));  // else what caused it is tried again
  }
  errno = error;
}

bool install() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &action_before) == 0;
}

// `mapped` is whichever of the two lies in the mapping.
bool copy_guarded(const char* from, std::size_t size, char* to, const char* mapped,
                  std::atomic<bool>* is_gone) {
  static const bool is_installed = install();
  if (!is_installed) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  under_way.failed.store(false, std::memory_order_relaxed);
  under_way.is_gone.store(is_gone, std::memory_order_relaxed);
  under_way.begin.store(begin, std::memory_order_relaxed);
  under_way.end.store(begin + size, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  under_way.end.store(begin, std::memory_order_relaxed);
  return !under_way.failed.load(std::memory_order_relaxed);
}

}  // namespace

bool copy_to_mapped(ByteView bytes, char* to) {
  return copy_guarded(bytes.data(), bytes.size(), to, to, nullptr);
}

bool copy_from_mapped(const char* from, std::size_t size, char* to, std::atomic<bool>& is_gone) {
  if (!copy_guarded(from, size, to, from, &is_gone)) return false;
  // Another thread's failure may have put other memory under this copy; it says so first.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !is_gone.load(std::memory_order_relaxed);
}

namespace {

constexpr std::uint64_t kRegionsInWord = 64;

std::uint64_t half_of_memory() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  return bytes;
}

std::uint64_t words_of(std::uint64_t bytes) {
  return bytes / (ReadAround::kRegionBytes * kRegionsInWord) + 1;
}

}  // namespace

ReadAround::ReadAround(std::uint64_t file_bytes, std::uint64_t store_bytes)
    : file_bytes_(std::max(file_bytes, store_bytes) <= half_of_memory() ? file_bytes : 0),
      touched_(file_bytes_ == 0
                   ? nullptr
                   : std::make_unique<std::atomic<std::uint64_t>[]>(words_of(file_bytes_))) {}

void ReadAround::touch(const Descriptor& file, std::uint64_t offset, std::uint64_t size) {
  if (size == 0 || offset >= file_bytes_ || size > file_bytes_ - offset) return;
  const std::uint64_t last = (offset + size - 1) / kRegionBytes;
  for (std::uint64_t region = offset / kRegionBytes; region <= last; ++region) {
    std::atomic<std::uint64_t>& word = touched_[region / kRegionsInWord];
    const std::uint64_t bit = std::uint64_t{1} << region % kRegionsInWord;
    if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) continue;
    // Only advice: no check.
    (void)::readahead(file.number(), static_cast<off_t>(region * kRegionBytes), kRegionBytes);
  }
}

Result<std::unique_ptr<RandomAccessFile>> PosixMappedFile::open(const std::string& path,
                                                                std::uint64_t store_bytes) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDONLY));
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(file, path));
  // What is read around is for ReadAround to say. Only advice: no check.
  (void)::posix_fadvise(file.number(), 0, 0, POSIX_FADV_RANDOM);
  return std::unique_ptr<RandomAccessFile>(
      new PosixMappedFile(std::move(file), path, size, store_bytes));
}

PosixMappedFile::PosixMappedFile(Descriptor file, std::string path, std::uint64_t size,
                                 std::uint64_t store_bytes)
    : file_(std::move(file)), path_(std::move(path)), size_(size), around_(size, store_bytes) {}

PosixMappedFile::~PosixMappedFile() {
  if (const char* const mapping = mapping_.load(); mapping != nullptr)
    ::munmap(const_cast<char*>(mapping), size_);
}

// Called once.
void PosixMappedFile::map() const {
  void* const mapping = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.number(), 0);
  if (mapping == MAP_FAILED) return;
  (void)::madvise(mapping, size_, MADV_RANDOM);
  mapping_.store(static_cast<const char*>(mapping), std::memory_order_release);
}

const char* PosixMappedFile::to_copy(std::uint64_t offset, std::size_t size) const {
  const bool is_small = size <= kMappedReadMaxBytes;
  if (const char* const bytes = mapped(offset, size); bytes != nullptr)
    return is_small || is_resident(bytes, size) ? bytes : nullptr;
  if (is_small && small_reads_.load(std::memory_order_relaxed) < kReadsUnmapped &&
      small_reads_.fetch_add(1) == kReadsUnmapped - 1)
    map();
  return nullptr;
}

Result<std::size_t> PosixMappedFile::read(std::uint64_t offset, std::size_t size,
                                          char* buffer) const {
  const char* const bytes = to_copy(offset, size);
  const bool is_copied = bytes != nullptr && copy_from_mapped(bytes, size, buffer, is_gone_);
  auto got = is_copied ? Result<std::size_t>(size) : read_whole(file_, offset, size, buffer, path_);
  around_.touch(file_, offset, size);
  return got;
}

Result<std::size_t> PosixMappedFile::read_two(std::uint64_t offset, std::size_t first_size,
                                              char* first, std::size_t second_size,
                                              char* second) const {
  const char* const bytes = to_copy(offset, first_size + second_size);
  const bool is_copied = bytes != nullptr && copy_from_mapped(bytes, first_size, first, is_gone_) &&
                         copy_from_mapped(bytes + first_size, second_size, second, is_gone_);
  auto got = is_copied
                 ? Result<std::size_t>(first_size + second_size)
                 : read_two_whole(file_, offset, {first, first_size}, {second, second_size}, path_);
  around_.touch(file_, offset, first_size + second_size);
  return got;
}

void PosixMappedFile::expect_read(std::uint64_t offset, std::size_t size) const {
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kLinesMax = 32;  // the rest comes by itself, once these are read in order
  const char* const bytes = mapped(offset, size);
  if (bytes == nullptr) return;
  const std::size_t fetched = std::min(size, kLinesMax * kLineBytes);
  for (std::size_t at = 0; at < fetched; at += kLineBytes) __builtin_prefetch(bytes + at);
}

bool PosixMappedFile::is_resident(const char* bytes, std::size_t size) {
  static const auto kernel_page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPageBytesMin = 4096;
  unsigned char pages[kResidentReadMaxBytes / kPageBytesMin + 1];
  const auto at = reinterpret_cast<std::uintptr_t>(bytes);
  const std::uintptr_t begin = at / kernel_page * kernel_page;
  const std::uintptr_t end = at + size;
  if (::mincore(reinterpret_cast<void*>(begin), end - begin, pages) != 0) return false;
  const std::size_t count = (end - begin + kernel_page - 1) / kernel_page;
  return std::all_of(pages, pages + count, [](unsigned char page) { return (page & 1) != 0; });
}

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
