#include "bench/experiments/slow_file_system.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace edgecase::cli::bench {
namespace {

// Shorter sleeps take longer than they say.
constexpr std::chrono::milliseconds kAheadMax{1};

class SlowWritableFile final : public WritableFile {
 public:
  SlowWritableFile(std::unique_ptr<WritableFile> file, DriveClock& clock)
      : file_(std::move(file)), clock_(clock) {}
  Status append(ByteView bytes) override {
    clock_.transfer(bytes.size());
    return file_->append(bytes);
  }
  Status sync() override {
    EC_TRY(file_->sync());
    clock_.sync();
    return ok();
  }
  void begin_write_out() override { file_->begin_write_out(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }

 private:
  std::unique_ptr<WritableFile> file_;
  DriveClock& clock_;
};

class SlowRandomAccessFile final : public RandomAccessFile {
 public:
  SlowRandomAccessFile(std::unique_ptr<RandomAccessFile> file, DriveClock& clock)
      : file_(std::move(file)), clock_(clock) {}
  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override {
    auto got = file_->read(offset, size, buffer);
    if (got.ok()) clock_.transfer(*got);
    return got;
  }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const std::string& path() const override { return file_->path(); }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  DriveClock& clock_;
};

class SlowLogFile final : public LogFile {
 public:
  SlowLogFile(std::unique_ptr<LogFile> file, DriveClock& clock)
      : file_(std::move(file)), clock_(clock) {}
  std::uint64_t capacity_bytes() const override { return file_->capacity_bytes(); }
  Status write(std::uint64_t offset, ByteView bytes) override {
    clock_.transfer(bytes.size());
    return file_->write(offset, bytes);
  }
  Status sync() override {
    EC_TRY(file_->sync());
    clock_.sync();
    return ok();
  }
  void begin_write_out(std::uint64_t end) override { file_->begin_write_out(end); }
  const std::string& path() const override { return file_->path(); }

 private:
  std::unique_ptr<LogFile> file_;
  DriveClock& clock_;
};

// The file as it is, or behind the drive's clock.
template <typename Slow, typename File>
Result<std::unique_ptr<File>> maybe_slow(bool slow, Result<std::unique_ptr<File>> file,
                                         DriveClock& clock) {
  if (!slow || !file.ok()) return file;
  return std::unique_ptr<File>(std::make_unique<Slow>(*std::move(file), clock));
}

}  // namespace

void DriveClock::occupy(double seconds, std::chrono::steady_clock::duration ahead) {
  using Steady = std::chrono::steady_clock;
  Steady::time_point done;
  {
    const std::lock_guard lock(mutex_);
    free_ = std::max(free_, Steady::now()) +
            std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(seconds));
    done = free_;
  }
  if (done > Steady::now() + ahead) std::this_thread::sleep_until(done);
}

void DriveClock::transfer(std::size_t bytes) {
  occupy(static_cast<double>(bytes) / speed_.bytes_per_second, kAheadMax);
}

void DriveClock::sync() {
  occupy(speed_.sync_seconds, {});
}

SlowFileSystem::SlowFileSystem(FileSystem& beneath, std::string directory, const DriveSpeed& speed)
    : beneath_(beneath), prefix_(std::move(directory) + "/"), clock_(speed) {}

bool SlowFileSystem::is_slow(const std::string& path) const {
  return path.starts_with(prefix_);
}

Result<std::unique_ptr<WritableFile>> SlowFileSystem::create_file(const std::string& path) {
  return maybe_slow<SlowWritableFile>(is_slow(path), beneath_.create_file(path), clock_);
}

Result<std::unique_ptr<RandomAccessFile>> SlowFileSystem::open_file(const std::string& path) {
  return maybe_slow<SlowRandomAccessFile>(is_slow(path), beneath_.open_file(path), clock_);
}

Result<std::unique_ptr<LogFile>> SlowFileSystem::create_log_file(const std::string& path,
                                                                 std::uint64_t capacity_bytes) {
  auto file = beneath_.create_log_file(path, capacity_bytes);
  if (is_slow(path) && file.ok()) clock_.transfer(capacity_bytes);  // every block is written
  return maybe_slow<SlowLogFile>(is_slow(path), std::move(file), clock_);
}

Result<std::unique_ptr<LogFile>> SlowFileSystem::open_log_file(const std::string& path) {
  return maybe_slow<SlowLogFile>(is_slow(path), beneath_.open_log_file(path), clock_);
}

Status SlowFileSystem::create_directory(const std::string& path) {
  return beneath_.create_directory(path);
}

Result<std::vector<DirectoryEntry>> SlowFileSystem::list_directory(const std::string& path) {
  return beneath_.list_directory(path);
}

Status SlowFileSystem::sync_directory(const std::string& path) {
  EC_TRY(beneath_.sync_directory(path));
  if (is_slow(path)) clock_.sync();
  return ok();
}

Status SlowFileSystem::rename_file(const std::string& from, const std::string& to) {
  return beneath_.rename_file(from, to);
}

Status SlowFileSystem::remove_file(const std::string& path) {
  return beneath_.remove_file(path);
}

Result<std::uint64_t> SlowFileSystem::file_size(const std::string& path) {
  return beneath_.file_size(path);
}

Result<Space> SlowFileSystem::space(const std::string& path) {
  return beneath_.space(path);
}

Result<FileIdentity> SlowFileSystem::identity(const std::string& path) {
  return beneath_.identity(path);
}

Result<std::unique_ptr<FileLock>> SlowFileSystem::lock_file(const std::string& path) {
  return beneath_.lock_file(path);
}

}  // namespace edgecase::cli::bench
