#include "file/posix_mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

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

}  // namespace edgecase::engine
