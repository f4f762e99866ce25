#include "file/posix_mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "file/mapped_copy.h"

namespace edgecase::engine {

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
