#include "file/posix_direct.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "file/descriptor.h"
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

namespace {

constexpr std::uint64_t kDirectZerosBytes = 256u << 10;
// The same zeros so often in one write: the drive is busy for as long as it takes to wake us.
constexpr std::size_t kZerosPerWrite = 16;

Status write_zeros_at(const Descriptor& file, std::uint64_t offset, std::uint64_t bytes,
                      const DirectMemory& zeros, const std::string& path) {
  while (bytes > 0) {
    std::array<iovec, kZerosPerWrite> parts{};
    std::size_t count = 0;
    for (std::uint64_t planned = 0; planned < bytes && count < parts.size(); ++count) {
      const std::uint64_t size = std::min(kDirectZerosBytes, bytes - planned);
      parts[count] = {zeros.get(), size};
      planned += size;
    }
    const ssize_t written =
        ::pwritev(file.number(), parts.data(), static_cast<int>(count), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno_status(written < 0 ? errno : EIO, "write", path);
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::uint64_t>(written);
  }
  return ok();
}

// False: the file system knows no such writes. One that lets a file be opened for them may refuse
// them all the same.
Result<bool> write_past_cache(const std::string& path, std::uint64_t begin, std::uint64_t end,
                              const DirectMemory& zeros) {
  const auto file = open_descriptor(path, O_WRONLY | O_DIRECT);
  const Status written =
      file.ok() ? write_zeros_at(*file, begin, end - begin, zeros, path) : file.status();
  if (written.code() == StatusCode::InvalidArgument) return false;
  EC_TRY(written);
  return true;
}

// Not synced: that is to be done by the descriptor that it answers.
Result<Descriptor> write_all(const Overwriting& stretch, const DirectMemory& zeros) {
  const std::string& path = stretch.path;
  const std::uint64_t begin = stretch.offset, end = begin + stretch.bytes;
  std::uint64_t blocks_begin =
      (begin + kDirectBlockBytes - 1) / kDirectBlockBytes * kDirectBlockBytes;
  std::uint64_t blocks_end = end / kDirectBlockBytes * kDirectBlockBytes;
  bool has_blocks = blocks_begin < blocks_end;
  if (has_blocks) {
    EC_ASSIGN_OR_RETURN(has_blocks, write_past_cache(path, blocks_begin, blocks_end, zeros));
  }
  if (!has_blocks) blocks_begin = blocks_end = end;
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_WRONLY));
  EC_TRY(write_zeros_at(file, begin, blocks_begin - begin, zeros, path));
  EC_TRY(write_zeros_at(file, blocks_end, end - blocks_end, zeros, path));
  begin_write_out(file, begin, stretch.bytes);
  return file;
}

}  // namespace

void overwrite_posix(std::span<Overwriting> stretches, JointSync& syncs) {
  const DirectMemory zeros = take_direct_memory(kDirectZerosBytes);
  if (zeros != nullptr) std::fill_n(zeros.get(), kDirectZerosBytes, '\0');
  std::vector<Descriptor> files;
  std::vector<FileToSync> to_sync;
  files.reserve(stretches.size());  // their places are pointed to
  for (Overwriting& each : stretches) {
    if (!each.status.ok()) continue;
    auto file = zeros != nullptr ? write_all(each, zeros)
                                 : Result<Descriptor>(errno_status(ENOMEM, "write", each.path));
    each.status = file.status();
    if (!file.ok()) continue;
    files.push_back(*std::move(file));
    to_sync.push_back({&files.back(), &each.path, &each.status});
  }
  syncs.sync(to_sync);
}

}  // namespace edgecase::engine
