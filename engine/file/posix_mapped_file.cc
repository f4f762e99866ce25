#include "file/posix_mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <utility>

#include "file/mapped_copy.h"

namespace edgecase::engine {

Result<std::unique_ptr<RandomAccessFile>> PosixMappedFile::open(const std::string& path) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDONLY));
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(file, path));
  // Read-ahead would fetch, with one group, many that nobody asked for. Only advice: no check.
  (void)::posix_fadvise(file.number(), 0, 0, POSIX_FADV_RANDOM);
  return std::unique_ptr<RandomAccessFile>(new PosixMappedFile(std::move(file), path, size));
}

PosixMappedFile::PosixMappedFile(Descriptor file, std::string path, std::uint64_t size)
    : file_(std::move(file)),
      path_(std::move(path)),
      size_(size),
      mapping_(::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.number(), 0)) {
  if (mapping_ != MAP_FAILED) (void)::madvise(mapping_, size_, MADV_RANDOM);
}

PosixMappedFile::~PosixMappedFile() {
  if (mapping_ != MAP_FAILED) ::munmap(mapping_, size_);
}

Result<std::size_t> PosixMappedFile::read(std::uint64_t offset, std::size_t size,
                                          char* buffer) const {
  if (mapping_ != MAP_FAILED && size <= kMappedReadMaxBytes && offset <= size_ &&
      size <= size_ - offset && !is_gone_.load(std::memory_order_relaxed) &&
      copy_from_mapped(static_cast<const char*>(mapping_) + offset, size, buffer, is_gone_))
    return size;
  return read_whole(file_, offset, size, buffer, path_);
}

}  // namespace edgecase::engine
