#include "file/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "edgecase/process_limits.h"

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

}  // namespace edgecase::engine
