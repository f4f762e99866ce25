#include "file/posix_direct_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "file/direct_memory.h"

namespace edgecase::engine {

Result<std::unique_ptr<RandomAccessFile>> PosixDirectFile::open(const std::string& path) {
  auto file = open_descriptor(path, O_RDONLY | O_DIRECT);
  if (file.status().code() == StatusCode::InvalidArgument) file = open_descriptor(path, O_RDONLY);
  EC_TRY(file.status());
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(*file, path));
  return std::unique_ptr<RandomAccessFile>(
      new PosixDirectFile(std::move(file).value(), path, size));
}

// No read is asked for behind the end of the file: there it would begin between two blocks.
Result<std::size_t> PosixDirectFile::read(std::uint64_t offset, std::size_t size,
                                          char* buffer) const {
  if (offset >= size_) return 0;
  const std::uint64_t begin = offset / kDirectBlockBytes * kDirectBlockBytes;
  const std::uint64_t end = std::min<std::uint64_t>(offset + size, size_);
  const std::uint64_t blocks = (end - begin + kDirectBlockBytes - 1) / kDirectBlockBytes;
  const DirectMemory memory = take_direct_memory(blocks * kDirectBlockBytes);
  if (memory == nullptr) return errno_status(ENOMEM, "read", path_);
  std::uint64_t done = 0;
  while (begin + done < end) {
    const ssize_t got =
        ::pread(file_.number(), memory.get() + done, blocks * kDirectBlockBytes - done,
                static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, "read", path_);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  const std::uint64_t before = offset - begin;
  const std::uint64_t taken = std::min(end - offset, done - std::min(done, before));
  std::memcpy(buffer, memory.get() + before, taken);
  return taken;
}

}  // namespace edgecase::engine
