#include "file/posix_mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "file/mapped_copy.h"

namespace edgecase::engine {

Result<std::unique_ptr<RandomAccessFile>> PosixMappedFile::open(const std::string& path) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDONLY));
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(file, path));
  // What is read around is for ReadAround to say. Only advice: no check.
  (void)::posix_fadvise(file.number(), 0, 0, POSIX_FADV_RANDOM);
  return std::unique_ptr<RandomAccessFile>(new PosixMappedFile(std::move(file), path, size));
}

PosixMappedFile::PosixMappedFile(Descriptor file, std::string path, std::uint64_t size)
    : file_(std::move(file)),
      path_(std::move(path)),
      size_(size),
      mapping_(::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.number(), 0)),
      around_(size) {
  if (mapping_ != MAP_FAILED) (void)::madvise(mapping_, size_, MADV_RANDOM);
}

PosixMappedFile::~PosixMappedFile() {
  if (mapping_ != MAP_FAILED) ::munmap(mapping_, size_);
}

Result<std::size_t> PosixMappedFile::read(std::uint64_t offset, std::size_t size,
                                          char* buffer) const {
  around_.touch(file_, offset, size);
  if (is_to_copy(offset, size) && copy(offset, size, buffer)) return size;
  return read_whole(file_, offset, size, buffer, path_);
}

Result<std::size_t> PosixMappedFile::read_two(std::uint64_t offset, std::size_t first_size,
                                              char* first, std::size_t second_size,
                                              char* second) const {
  around_.touch(file_, offset, first_size + second_size);
  if (is_to_copy(offset, first_size + second_size) && copy(offset, first_size, first) &&
      copy(offset + first_size, second_size, second))
    return first_size + second_size;
  return read_two_whole(file_, offset, {first, first_size}, {second, second_size}, path_);
}

void PosixMappedFile::expect_read(std::uint64_t offset, std::size_t size) const {
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kLinesMax = 32;  // the rest comes by itself, once these are read in order
  if (!is_mapped(offset, size)) return;
  const char* const bytes = static_cast<const char*>(mapping_) + offset;
  const std::size_t fetched = std::min(size, kLinesMax * kLineBytes);
  for (std::size_t at = 0; at < fetched; at += kLineBytes) __builtin_prefetch(bytes + at);
}

bool PosixMappedFile::is_resident(std::uint64_t offset, std::size_t size) const {
  static const auto kernel_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPageBytesMin = 4096;
  unsigned char pages[kResidentReadMaxBytes / kPageBytesMin + 1];
  const std::uint64_t begin = offset / kernel_page * kernel_page;
  const std::uint64_t end = offset + size;
  if (::mincore(static_cast<char*>(mapping_) + begin, end - begin, pages) != 0) return false;
  const std::size_t count = (end - begin + kernel_page - 1) / kernel_page;
  return std::all_of(pages, pages + count, [](unsigned char page) { return (page & 1) != 0; });
}

bool PosixMappedFile::copy(std::uint64_t offset, std::size_t size, char* buffer) const {
  return copy_from_mapped(static_cast<const char*>(mapping_) + offset, size, buffer, is_gone_);
}

}  // namespace edgecase::engine
