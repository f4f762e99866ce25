#include "file/file_remover.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kZerosBytes = 256u << 10;

}  // namespace

Status overwrite_parts(FileSystem& file_system, const std::string& path,
                       std::span<const FilePart> parts) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> file, file_system.open_log_file(path));
  std::uint64_t longest = 0;
  for (const FilePart& part : parts) longest = std::max(longest, part.bytes);
  const Bytes zeros(std::min(kZerosBytes, longest), '\0');
  for (const FilePart& part : parts) {
    for (std::uint64_t done = 0; done < part.bytes; done += zeros.size()) {
      const std::uint64_t size = std::min<std::uint64_t>(zeros.size(), part.bytes - done);
      EC_TRY(file->write(part.offset + done, ByteView(zeros).substr(0, size)));
    }
  }
  return file->sync();
}

Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, file_system.file_size(path));
  const FilePart all{0, size};
  EC_TRY(overwrite_parts(file_system, path, {&all, 1}));
  return size;
}

Status FileRemover::remove(const std::string& path) {
  return remove(path, overwrites_());
}

Status FileRemover::remove_overwritten(const std::string& path) {
  return remove(path, true);
}

Status FileRemover::remove(const std::string& path, bool overwritten) {
  Status status;
  if (overwritten) {
    const Result<std::uint64_t> bytes = overwrite_file(file_system_, path);
    if (bytes.ok()) overwritten_bytes_.fetch_add(*bytes);
    status = bytes.status();
  }
  if (status.ok()) status = file_system_.remove_file(path);
  if (status.ok()) removed_files_.fetch_add(1);
  if (status.code() == StatusCode::NotFound) status = ok();
  MutexLock lock(mutex_);
  if (status.ok()) {
    left_.erase(path);
  } else {
    left_.insert(path);
  }
  return status;
}

Status FileRemover::blank(const std::string& path, std::span<const FilePart> parts) {
  EC_TRY(overwrite_parts(file_system_, path, parts));
  for (const FilePart& part : parts) overwritten_bytes_.fetch_add(part.bytes);
  return ok();
}

Status FileRemover::retry() {
  std::set<std::string> left;
  {
    MutexLock lock(mutex_);
    left = left_;
  }
  Status first;
  for (const std::string& path : left) {
    Status removed = remove(path, true);
    if (first.ok()) first = std::move(removed);
  }
  return first;
}

}  // namespace edgecase::engine
