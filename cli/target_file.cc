#include "target_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

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
  if (interrupted_path_set != 0) unlink(interrupted_path.data());
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

}  // namespace

Status file_failure(const std::string& path, int error) {
  const std::string message = path + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) return out_of_space(message);
  if (error == EACCES || error == EPERM || error == EROFS) return not_allowed(message);
  if (error == ENOENT || error == ENOTDIR) return not_found(message);
  return io_error(message);
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
      file_descriptor_(std::exchange(other.file_descriptor_, -1)) {}

TargetFile::~TargetFile() {
  if (file_descriptor_ >= 0) close(file_descriptor_);
  if (!temporary_path_.empty()) {
    unlink(temporary_path_.c_str());
    remember("");
  }
}

Result<TargetFile> TargetFile::create(const std::string& path, const std::string& shown) {
  // Hidden, and named after this process, so that two exports do not meet.
  const std::string directory = directory_of(path);
  std::string temporary = directory + "/.edgecase-" + std::to_string(getpid()) + ".partial";
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

Status TargetFile::commit() {
  // Devices and pipes have nothing to sync.
  const bool in_place = temporary_path_.empty();
  if (fsync(file_descriptor_) != 0 && !(in_place && errno == EINVAL)) {
    return file_failure(shown_, errno);
  }
  if (close(std::exchange(file_descriptor_, -1)) != 0) return file_failure(shown_, errno);
  if (in_place) return ok();
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return file_failure(shown_, errno);
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
}

}  // namespace edgecase::cli
