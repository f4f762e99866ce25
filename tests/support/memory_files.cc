// The files a MemoryFileSystem hands out.
#include <algorithm>
#include <cerrno>

#include "file/posix_file_system.h"
#include "support/memory_file_system_inside.h"

namespace edgecase::test {
namespace {

using engine::errno_status;
using Inside = MemoryFileSystem::Inside;
using Lock = std::lock_guard<std::mutex>;

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<Inside> inside, Inside::Handle handle)
      : inside_(std::move(inside)), handle_(std::move(handle)) {
    const Lock lock(inside_->mutex);
    number_ = inside_->next_appending++;
    inside_->appending[number_] = handle_.file;
  }
  ~MemoryWritableFile() override {
    const Lock lock(inside_->mutex);
    inside_->appending.erase(number_);
  }

  Status append(ByteView bytes) override {
    const Lock lock(inside_->mutex);
    if (!failure_.ok()) return failure_;
    int error = inside_->begin(Operation::Append, handle_);
    if (error == 0) error = inside_->reserve(handle_.path, bytes.size());
    const bool stale = inside_->is_stale(handle_) || inside_->operations >= inside_->stop_at;
    if (error != 0 && !stale) bytes = bytes.substr(0, bytes.size() / 2);
    if (!stale) handle_.file->write(size_, bytes);
    size_ += bytes.size();
    if (error != 0) failure_ = errno_status(error, "write", handle_.path);
    return failure_;
  }

  Status sync() override {
    const Lock lock(inside_->mutex);
    if (!failure_.ok()) return failure_;
    if (const int error = inside_->begin(Operation::Sync, handle_); error != 0) {
      const bool running = inside_->operations < inside_->stop_at;
      if (running && !inside_->is_stale(handle_)) handle_.file->lose_unsynced();
      return failure_ = errno_status(error, "sync", handle_.path);
    }
    if (!inside_->drive_of(handle_.path).lying_sync) handle_.file->sync();
    return ok();
  }

  std::uint64_t size_bytes() const override { return size_; }

 private:
  std::shared_ptr<Inside> inside_;
  Inside::Handle handle_;
  std::uint64_t number_ = 0;
  std::uint64_t size_ = 0;
  Status failure_;
};

class MemoryRandomAccessFile final : public RandomAccessFile {
 public:
  MemoryRandomAccessFile(std::shared_ptr<Inside> inside, Inside::Handle handle)
      : inside_(std::move(inside)), handle_(std::move(handle)) {
    const Lock lock(inside_->mutex);
    size_ = handle_.file->live().size();
  }

  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override {
    const Lock lock(inside_->mutex);
    if (const int error = inside_->begin(Operation::Read, handle_); error != 0) {
      return errno_status(error, "read", handle_.path);
    }
    if (inside_->is_broken(handle_.path, offset, size))
      return errno_status(EIO, "read", handle_.path);
    return handle_.file->live().read(offset, size, buffer);
  }

  std::uint64_t size_bytes() const override { return size_; }
  const std::string& path() const override { return handle_.path; }

 private:
  std::shared_ptr<Inside> inside_;
  Inside::Handle handle_;
  std::uint64_t size_ = 0;
};

class MemoryLogFile final : public LogFile {
 public:
  MemoryLogFile(std::shared_ptr<Inside> inside, Inside::Handle handle)
      : inside_(std::move(inside)), handle_(std::move(handle)) {
    const Lock lock(inside_->mutex);
    capacity_ = handle_.file->live().size();
  }

  std::uint64_t capacity_bytes() const override { return capacity_; }

  Status write(std::uint64_t offset, ByteView bytes) override {
    const Lock lock(inside_->mutex);
    if (!failure_.ok()) return failure_;
    if (offset > capacity_ || bytes.size() > capacity_ - offset) {
      return failure_ = errno_status(EINVAL, "write past the end of", handle_.path);
    }
    if (const int error = inside_->begin(Operation::LogWrite, handle_); error != 0) {
      return failure_ = errno_status(error, "write", handle_.path);
    }
    handle_.file->write(offset, bytes);
    return ok();
  }

  Status sync() override {
    return sync_by([](SimulatedFile& file) { file.sync(); });
  }

  Status write_durably(std::uint64_t offset, ByteView bytes) override {
    EC_TRY(write(offset, bytes));
    return sync_by([&](SimulatedFile& file) { file.sync_range(offset, bytes.size()); });
  }

  const std::string& path() const override { return handle_.path; }

 private:
  template <typename Sync>
  Status sync_by(const Sync& sync) {
    const Lock lock(inside_->mutex);
    if (!failure_.ok()) return failure_;
    if (const int error = inside_->begin(Operation::LogSync, handle_); error != 0) {
      const bool running = inside_->operations < inside_->stop_at;
      if (running && !inside_->is_stale(handle_)) handle_.file->lose_unsynced();
      return failure_ = errno_status(error, "sync", handle_.path);
    }
    if (!inside_->drive_of(handle_.path).lying_sync) sync(*handle_.file);
    return ok();
  }

  std::shared_ptr<Inside> inside_;
  Inside::Handle handle_;
  std::uint64_t capacity_ = 0;
  Status failure_;
};

}  // namespace

std::unique_ptr<WritableFile> make_memory_writable_file(std::shared_ptr<Inside> inside,
                                                        Inside::Handle handle) {
  return std::make_unique<MemoryWritableFile>(std::move(inside), std::move(handle));
}
std::unique_ptr<RandomAccessFile> make_memory_random_access_file(std::shared_ptr<Inside> inside,
                                                                 Inside::Handle handle) {
  return std::make_unique<MemoryRandomAccessFile>(std::move(inside), std::move(handle));
}
std::unique_ptr<LogFile> make_memory_log_file(std::shared_ptr<Inside> inside,
                                              Inside::Handle handle) {
  return std::make_unique<MemoryLogFile>(std::move(inside), std::move(handle));
}

}  // namespace edgecase::test
