#include "target_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "edgecase/machine.h"

namespace edgecase::cli {
namespace {

// A signal handler reaches nothing but globals, and may only call unlink, write and _exit.
constexpr std::size_t kPathMaxBytes = 4096;
constexpr std::size_t kMessageMaxBytes = 256;
std::array<char, kPathMaxBytes> interrupted_path{};
std::array<char, kMessageMaxBytes> interrupted_message{};
volatile std::sig_atomic_t interrupted_path_set = 0;
volatile std::sig_atomic_t interrupted_exit_code = 1;

extern "C" void on_interrupt(int) {
  remove_unfinished();
  const std::size_t size = strnlen(interrupted_message.data(), interrupted_message.size());
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, interrupted_message.data(), size);
  _exit(interrupted_exit_code);
}

void remember(const std::string& path) {
  interrupted_path_set = 0;
  if (path.empty() || path.size() >= kPathMaxBytes) return;
  std::memcpy(interrupted_path.data(), path.c_str(), path.size() + 1);
  interrupted_path_set = 1;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where this process writes to already (/dev/stdout, redirected), to go on there: a rename would
// part it from whoever else writes to it, and from what is in it. -1: it does not.
int open_already(const struct stat& file) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open_file {};
    if (fstat(fd, &open_file) != 0) continue;
    if (open_file.st_dev == file.st_dev && open_file.st_ino == file.st_ino) return fd;
  }
  return -1;
}

// A name that two processes do not share.
std::string temporary_path_in(const std::string& directory) {
  return directory + "/.edgecase-" + std::to_string(getpid()) + ".partial";
}

std::string path_of_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

// -1: the file system has no such files, or nothing could give it a name later.
int open_unnamed(const std::string& directory) {
  const int fd = open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || access(path_of_descriptor(fd).c_str(), F_OK) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

void remove_unfinished() {
  if (interrupted_path_set != 0) unlink(interrupted_path.data());
}

std::string error_words(int error) {
  return std::strerror(error) + limit_of_error(error);
}

Status file_failure(const std::string& path, int error) {
  StatusCode code = StatusCode::IoError;
  if (error == ENOSPC || error == EDQUOT) code = StatusCode::OutOfSpace;
  if (error == EACCES || error == EPERM || error == EROFS) code = StatusCode::NotAllowed;
  if (error == ENOENT || error == ENOTDIR) code = StatusCode::NotFound;
  return Status::of_file(code, {}, path, ": " + error_words(error), error);
}

TargetFile::TargetFile(std::string path, std::string shown, std::string temporary_path,
                       int file_descriptor)
    : path_(std::move(path)),
      shown_(std::move(shown)),
      temporary_path_(std::move(temporary_path)),
      file_descriptor_(file_descriptor) {}

TargetFile::TargetFile(TargetFile&& other) noexcept
    : path_(std::move(other.path_)),
      shown_(std::move(other.shown_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      is_unnamed_(std::exchange(other.is_unnamed_, false)),
      file_descriptor_(std::exchange(other.file_descriptor_, -1)) {}

TargetFile::~TargetFile() {
  if (file_descriptor_ >= 0) close(file_descriptor_);
  if (!temporary_path_.empty()) {
    unlink(temporary_path_.c_str());
    remember("");
  }
}

Result<TargetFile> TargetFile::create(const std::string& path, const std::string& shown) {
  const std::string directory = directory_of(path);
  if (const int unnamed = open_unnamed(directory); unnamed >= 0) {
    TargetFile file(path, shown.empty() ? path : shown, {}, unnamed);
    file.is_unnamed_ = true;
    return file;
  }
  // Hidden, and named after this process, so that two exports do not meet.
  std::string temporary = temporary_path_in(directory);
  unlink(temporary.c_str());
  remember(temporary);  // before it is there: Ctrl-C may come in between
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  const std::string& name = shown.empty() ? path : shown;
  if (fd < 0) {
    const int error = errno;
    remember("");
    return file_failure(name, error);
  }
  return TargetFile(path, name, std::move(temporary), fd);
}

Result<TargetFile> TargetFile::open_output(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) {
    return errno == ENOENT ? create(path) : file_failure(path, errno);
  }
  if (const int open_fd = open_already(there); open_fd >= 0) {
    const int fd = fcntl(open_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return file_failure(path, errno);
    return TargetFile(path, path, {}, fd);
  }
  if (S_ISREG(there.st_mode)) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::canonical(path, error);
    if (error) return file_failure(path, error.value());
    EC_ASSIGN_OR_RETURN(TargetFile file, create(place.string(), path));
    EC_TRY(file.keep_permissions());
    return file;
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);  // a directory: refused
  if (fd < 0) return file_failure(path, errno);
  return TargetFile(path, path, {}, fd);
}

Status TargetFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure(shown_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return ok();
}

Status TargetFile::keep_permissions() {
  struct stat replaced {};
  if (stat(path_.c_str(), &replaced) != 0)
    return errno == ENOENT ? ok() : file_failure(shown_, errno);
  if ((geteuid() == 0 && fchown(file_descriptor_, replaced.st_uid, replaced.st_gid) != 0) ||
      fchmod(file_descriptor_, replaced.st_mode & 07777) != 0) {
    return file_failure(shown_, errno);
  }
  return ok();
}

Status TargetFile::link_unnamed() {
  const std::string from = path_of_descriptor(file_descriptor_);
  const auto link_to = [&from](const std::string& to) {
    return linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_to(path_)) return ok();
  if (errno != EEXIST) return file_failure(shown_, errno);
  // No call replaces a file by one without a name.
  std::string temporary = temporary_path_in(directory_of(path_));
  unlink(temporary.c_str());
  remember(temporary);
  if (!link_to(temporary)) return file_failure(shown_, errno);
  temporary_path_ = std::move(temporary);
  return ok();
}

Status TargetFile::commit() {
  // Devices and pipes have nothing to sync.
  const bool in_place = temporary_path_.empty() && !is_unnamed_;
  if (fsync(file_descriptor_) != 0 && !(in_place && errno == EINVAL)) {
    return file_failure(shown_, errno);
  }
  if (is_unnamed_) EC_TRY(link_unnamed());
  is_unnamed_ = false;
  if (close(std::exchange(file_descriptor_, -1)) != 0) return file_failure(shown_, errno);
  if (in_place) return ok();
  if (!temporary_path_.empty() && std::rename(temporary_path_.c_str(), path_.c_str()) != 0)
    return file_failure(shown_, errno);
  temporary_path_.clear();
  remember("");
  const int directory = open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return file_failure(shown_, errno);
  const int synced = fsync(directory);
  const int error = errno;
  close(directory);
  // Some file systems cannot sync a directory; the rename stands all the same.
  if (synced != 0 && error != EINVAL) return file_failure(shown_, error);
  return ok();
}

void stop_on_interrupt(std::string_view message, int exit_code) {
  const std::string_view cut = message.substr(0, kMessageMaxBytes - 1);
  std::memcpy(interrupted_message.data(), cut.data(), cut.size());
  interrupted_message[cut.size()] = '\0';
  interrupted_exit_code = exit_code;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
}

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const std::string message = path + ": " + std::strerror(errno);
    if (errno == ENOENT || errno == ENOTDIR) return not_found(message);
    return errno == EACCES ? not_allowed(message) : io_error(message);
  }
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) return io_error(path + ": cannot be read");
  return text.str();
}

}  // namespace edgecase::cli
