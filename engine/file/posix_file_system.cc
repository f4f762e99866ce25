// The machine's file system. With descriptor.cc, posix_mapped_file.cc and drive_facts.cc the only
// system calls on files.

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "edgecase/file_system.h"
#include "file/posix_file_system.h"

namespace edgecase {
namespace {

using namespace engine;

constexpr std::size_t kWriteBufferBytes = 256u << 10;
constexpr std::uint64_t kWriteOutBytes = 1u << 20;
constexpr mode_t kDirectoryMode = 0750;

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  // Nobody can be told of an error here: who needs the bytes has called sync().
  ~PosixWritableFile() override {
    if (failure_.ok()) (void)hand_over();
  }

  Status append(ByteView bytes) override {
    if (!failure_.ok()) return failure_;
    size_ += bytes.size();
    if (buffer_.size() + bytes.size() <= kWriteBufferBytes) {
      buffer_.append(bytes);
      return ok();
    }
    EC_TRY(hand_over());
    if (bytes.size() < kWriteBufferBytes) {
      buffer_.append(bytes);
      return ok();
    }
    return write(bytes);
  }

  Status sync() override {
    if (!failure_.ok()) return failure_;
    EC_TRY(hand_over());
    failure_ = sync_whole(file_, path_);
    return failure_;
  }

  // An error is sync()'s to tell.
  void begin_write_out() override {
    if (!failure_.ok() || !hand_over().ok()) return;
    Bytes().swap(buffer_);
    if (written_ > written_out_)
      engine::begin_write_out(file_, written_out_, written_ - written_out_);
    written_out_ = written_;
  }

  std::uint64_t size_bytes() const override { return size_; }

 private:
  Status hand_over() {
    EC_TRY(write(buffer_));
    buffer_.clear();
    return ok();
  }
  Status write(ByteView bytes) {
    failure_ = write_whole(file_, written_, bytes, path_);
    written_ += bytes.size();
    // The drive works while the rest of the table is made.
    if (failure_.ok() && written_ - written_out_ >= kWriteOutBytes) {
      engine::begin_write_out(file_, written_out_, written_ - written_out_);
      written_out_ = written_;
    }
    return failure_;
  }

  Descriptor file_;
  std::string path_;
  Bytes buffer_;  // taken on first use: tiny files stay tiny
  std::uint64_t written_ = 0;
  std::uint64_t written_out_ = 0;  // the drive has begun with what is before
  std::uint64_t size_ = 0;
  Status failure_;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  PosixRandomAccessFile(Descriptor file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override {
    return read_whole(file_, offset, size, buffer, path_);
  }
  Result<std::size_t> read_two(std::uint64_t offset, std::size_t first_size, char* first,
                               std::size_t second_size, char* second) const override {
    return read_two_whole(file_, offset, {first, first_size}, {second, second_size}, path_);
  }
  std::uint64_t size_bytes() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  Descriptor file_;
  std::string path_;
  std::uint64_t size_;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;  // the lock goes with its last descriptor
};

// Raises the soft limit of this process, and answers half of what it then is.
std::size_t half_of_open_files() {
  constexpr rlim_t kWanted = 8192;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < kWanted && limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = std::exchange(limit.rlim_cur, std::min(kWanted, limit.rlim_max));
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, kWanted)) / 2;
}

class PosixFileSystem final : public FileSystem {
 public:
  std::size_t open_files_max() const override { return open_files_max_; }

  Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) override {
    EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL));
    return std::unique_ptr<WritableFile>(
        std::make_unique<PosixWritableFile>(std::move(file), path));
  }

  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) override {
    EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDONLY));
    EC_ASSIGN_OR_RETURN(const std::uint64_t size, size_of(file, path));
    // Read-ahead would fetch, with one group, many that nobody asked for. Only advice: no check.
    (void)::posix_fadvise(file.number(), 0, 0, POSIX_FADV_RANDOM);
    return std::unique_ptr<RandomAccessFile>(
        std::make_unique<PosixRandomAccessFile>(std::move(file), path, size));
  }

  Result<std::unique_ptr<RandomAccessFile>> open_uncached(const std::string& path) override {
    return PosixDirectFile::open(path);
  }

  Result<std::unique_ptr<RandomAccessFile>> open_mapped(const std::string& path,
                                                        std::uint64_t store_bytes) override {
    return PosixMappedFile::open(path, store_bytes);
  }

  Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                   std::uint64_t capacity_bytes) override {
    return PosixLogFile::create(path, capacity_bytes);
  }
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) override {
    return PosixLogFile::open(path);
  }
  void overwrite(std::span<Overwriting> stretches) override { overwrite_posix(stretches, syncs_); }

  Status create_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0) return ok();
    const int error = errno;
    struct stat state {};
    if (error == EEXIST && ::stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode)) return ok();
    return errno_status(error, "create directory", path);
  }

  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override;

  Status sync_directory(const std::string& path) override {
    EC_ASSIGN_OR_RETURN(const Descriptor directory, open_descriptor(path, O_RDONLY | O_DIRECTORY));
    return sync_whole(directory, path);
  }

  Status rename_file(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return ok();
    return errno_status(errno, "rename " + from + " to", to);
  }

  Status remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return ok();
    return errno_status(errno, "remove", path);
  }

  Result<std::uint64_t> file_size(const std::string& path) override {
    struct stat state {};
    if (::stat(path.c_str(), &state) != 0) return errno_status(errno, "look at", path);
    return static_cast<std::uint64_t>(state.st_size);
  }

  Result<Space> space(const std::string& path) override {
    struct stat state {};
    struct statvfs drive {};
    if (::stat(path.c_str(), &state) != 0) return errno_status(errno, "look at", path);
    if (::statvfs(path.c_str(), &drive) != 0) return errno_status(errno, "ask the size of", path);
    Space space;
    space.total_bytes = std::uint64_t{drive.f_blocks} * drive.f_frsize;
    space.free_bytes = std::uint64_t{drive.f_bavail} * drive.f_frsize;
    space.device = state.st_dev;
    return space;
  }

  Result<FileIdentity> identity(const std::string& path) override {
    struct stat state {};
    if (::stat(path.c_str(), &state) != 0) return errno_status(errno, "look at", path);
    return FileIdentity{state.st_dev, state.st_ino};
  }

  DriveFacts drive_facts(const std::string& directory) override { return look_at_drive(directory); }

  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) override;

 private:
  const std::size_t open_files_max_ = std::min(kOpenFilesMax, half_of_open_files());
  JointSync syncs_;
};

Result<std::vector<DirectoryEntry>> PosixFileSystem::list_directory(const std::string& path) {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(::opendir(path.c_str()));
  if (!directory) return errno_status(errno, "list", path);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(directory.get());
    if (found == nullptr) {
      if (errno != 0) return errno_status(errno, "list", path);
      return entries;
    }
    DirectoryEntry entry{found->d_name, found->d_type == DT_DIR};
    if (entry.name == "." || entry.name == "..") continue;
    if (found->d_type == DT_UNKNOWN) {  // some file systems leave it open
      struct stat state {};
      const int flags = AT_SYMLINK_NOFOLLOW;
      if (::fstatat(::dirfd(directory.get()), found->d_name, &state, flags) == 0) {
        entry.is_directory = S_ISDIR(state.st_mode);
      }
    }
    entries.push_back(std::move(entry));
  }
}

// An OFD lock belongs to the open file, not to the process: two engines of one process exclude each
// other, and closing some other descriptor of the file does not let it go.
Result<std::unique_ptr<FileLock>> PosixFileSystem::lock_file(const std::string& path) {
  EC_ASSIGN_OR_RETURN(Descriptor file, open_descriptor(path, O_RDWR | O_CREAT));
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;  // from 0, length 0: the whole file
  while (::fcntl(file.number(), F_OFD_SETLK, &range) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) {
      return Status::of_file(StatusCode::Locked, "", path,
                             " is held by another process or by another store of this one");
    }
    return errno_status(errno, "lock", path);
  }
  return std::unique_ptr<FileLock>(std::make_unique<PosixFileLock>(std::move(file)));
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem file_system;
  return file_system;
}

}  // namespace edgecase
