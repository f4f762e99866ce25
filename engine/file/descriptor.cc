#include "file/posix_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

constexpr mode_t kFileMode = 0640;

StatusCode code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return StatusCode::OutOfSpace;
    case ENOENT: return StatusCode::NotFound;
    case EEXIST: return StatusCode::AlreadyExists;
    case EACCES:
    case EPERM: return StatusCode::NotAllowed;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return StatusCode::Busy;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP: return StatusCode::InvalidArgument;
    default: return StatusCode::IoError;  // EIO, EROFS, ENODEV, ENXIO and whatever else drives say
  }
}

}  // namespace

Status errno_status(int error, std::string_view action, const std::string& path) {
  const std::string before = "cannot " + std::string(action) + " ";
  const std::string after = ": " + std::generic_category().message(error) + limit_of_error(error);
  return Status::of_file(code_of(error), before, path, after, error);
}

Result<Descriptor> open_descriptor(const std::string& path, int flags) {
  for (;;) {
    const int number = ::open(path.c_str(), flags | O_CLOEXEC, kFileMode);
    if (number >= 0) return Descriptor(number);
    if (errno != EINTR) return errno_status(errno, flags & O_CREAT ? "create" : "open", path);
  }
}

Status write_whole(const Descriptor& file, std::uint64_t offset, ByteView bytes,
                   const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno_status(errno, "write", path);
    }
    // Nothing taken and no error: without a limit here this would go on for ever.
    if (written == 0) return errno_status(EIO, "write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return ok();
}

Result<std::size_t> read_whole(const Descriptor& file, std::uint64_t offset, std::size_t size,
                               char* buffer, const std::string& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file.number(), buffer + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno_status(errno, "read", path);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::size_t> read_two_whole(const Descriptor& file, std::uint64_t offset,
                                   std::span<char> first, std::span<char> second,
                                   const std::string& path) {
  const iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  ssize_t got = 0;
  do {
    got = ::preadv(file.number(), parts, 2, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno_status(errno, "read", path);
  auto done = static_cast<std::size_t>(got);
  // What the system has not read at once: of the first part, then of the second.
  while (done < first.size() + second.size()) {
    const std::span<char> rest =
        done < first.size() ? first.subspan(done) : second.subspan(done - first.size());
    EC_ASSIGN_OR_RETURN(const std::size_t more,
                        read_whole(file, offset + done, rest.size(), rest.data(), path));
    done += more;
    if (more < rest.size()) break;
  }
  return done;
}

Status sync_data(const Descriptor& file, const std::string& path) {
  while (::fdatasync(file.number()) != 0) {
    if (errno != EINTR) return errno_status(errno, "sync", path);
  }
  return ok();
}

Status sync_whole(const Descriptor& file, const std::string& path) {
  while (::fsync(file.number()) != 0) {
    if (errno != EINTR) return errno_status(errno, "sync", path);
  }
  return ok();
}

void begin_write_out(const Descriptor& file, std::uint64_t offset, std::uint64_t size) {
  (void)::sync_file_range(file.number(), static_cast<off_t>(offset), static_cast<off_t>(size),
                          SYNC_FILE_RANGE_WRITE);
}

Result<std::uint64_t> size_of(const Descriptor& file, const std::string& path) {
  struct stat state {};
  if (::fstat(file.number(), &state) != 0) return errno_status(errno, "look at", path);
  return static_cast<std::uint64_t>(state.st_size);
}

JointSync::~JointSync() {
  if (context_ != 0) (void)::syscall(SYS_io_destroy, context_);
}

void JointSync::sync(std::span<const FileToSync> files) {
  while (!files.empty()) {
    std::size_t done = 0;
    if (files.size() > 1) {
      MutexLock lock(mutex_);
      done = sync_some(files.first(std::min(files.size(), kAtOnce)));
    }
    if (done == 0) {
      const FileToSync& file = files.front();
      *file.status = sync_data(*file.file, *file.path);
      done = 1;
    }
    files = files.subspan(done);
  }
}

std::size_t JointSync::sync_some(std::span<const FileToSync> files) {
  if (context_ == 0 && ::syscall(SYS_io_setup, kAtOnce, &context_) != 0) {
    context_ = 0;
    return 0;
  }
  std::array<iocb, kAtOnce> requests{};
  std::array<iocb*, kAtOnce> pointers{};
  for (std::size_t i = 0; i < files.size(); ++i) {
    requests[i].aio_data = i;
    requests[i].aio_lio_opcode = IOCB_CMD_FDSYNC;
    requests[i].aio_fildes = static_cast<std::uint32_t>(files[i].file->number());
    pointers[i] = &requests[i];
    // What the kernel takes and does not answer for is not on the drive.
    *files[i].status = errno_status(EIO, "sync", *files[i].path);
  }
  const long taken =
      ::syscall(SYS_io_submit, context_, static_cast<long>(files.size()), pointers.data());
  if (taken <= 0) return 0;
  std::array<io_event, kAtOnce> events{};
  long left = taken;
  while (left > 0) {
    const long got = ::syscall(SYS_io_getevents, context_, left, left, events.data(), nullptr);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (const io_event& event : std::span(events).first(static_cast<std::size_t>(got))) {
      const FileToSync& file = files[event.data];
      const int error = event.res == 0 ? 0 : static_cast<int>(-event.res);
      *file.status = error == 0 ? ok() : errno_status(error, "sync", *file.path);
    }
    left -= got;
  }
  if (left > 0) {
    // Answers that come later are of nothing that is asked for then.
    (void)::syscall(SYS_io_destroy, context_);
    context_ = 0;
  }
  return static_cast<std::size_t>(taken);
}

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
