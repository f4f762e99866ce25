#include "file/file_remover.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kZerosBytes = 256u << 10;
// Open at once.
constexpr std::size_t kFilesPerStep = 64;

// Not synced.
Status write_zeros(LogFile& file, std::span<const FilePart> parts) {
  std::uint64_t longest = 0;
  for (const FilePart& part : parts) longest = std::max(longest, part.bytes);
  const Bytes zeros(std::min(kZerosBytes, longest), '\0');
  for (const FilePart& part : parts) {
    for (std::uint64_t done = 0; done < part.bytes; done += zeros.size()) {
      const std::uint64_t size = std::min<std::uint64_t>(zeros.size(), part.bytes - done);
      EC_TRY(file.write(part.offset + done, ByteView(zeros).substr(0, size)));
    }
  }
  return ok();
}

}  // namespace

Status overwrite_parts(FileSystem& file_system, const std::string& path,
                       std::span<const FilePart> parts) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> file, file_system.open_log_file(path));
  EC_TRY(write_zeros(*file, parts));
  return file->sync();
}

Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, file_system.file_size(path));
  const FilePart all{0, size};
  EC_TRY(overwrite_parts(file_system, path, {&all, 1}));
  return size;
}

Status FileRemover::remove(const std::string& path, NamespaceId of, Urgency urgency) {
  if (overwrites_()) {
    remove_overwritten(path, of, urgency);
    return ok();
  }
  const Status removed = unlink(path);
  note(path, removed);
  return removed;
}

void FileRemover::remove_new(std::span<const std::string> paths) {
  std::set<std::string> directories;
  for (const std::string& path : paths) directories.insert(path.substr(0, path.rfind('/')));
  const bool durable =
      overwrites_() &&
      std::all_of(directories.begin(), directories.end(), [&](const std::string& directory) {
        return file_system_.sync_directory(directory).ok();
      });
  for (const std::string& path : paths) {
    const Status removed = durable || !overwrites_() ? remove(path) : remove_now(path);
    static_cast<void>(removed.ok());  // what resists is remembered
  }
}

void FileRemover::remove_overwritten(const std::string& path, NamespaceId of, Urgency urgency) {
  MutexLock lock(mutex_);
  waiting_.push_back({path, of, urgency});
}

Status FileRemover::remove_now(const std::string& path) {
  const Result<std::uint64_t> bytes = overwrite_file(file_system_, path);
  if (bytes.ok()) overwritten_bytes_.fetch_add(*bytes);
  Status removed = bytes.ok() ? unlink(path) : bytes.status();
  if (removed.code() == StatusCode::NotFound) removed = ok();
  note(path, removed);
  return removed;
}

Status FileRemover::unlink(const std::string& path) {
  Status removed = file_system_.remove_file(path);
  if (removed.ok()) removed_files_.fetch_add(1);
  return removed.code() == StatusCode::NotFound ? ok() : removed;
}

void FileRemover::note(const std::string& path, const Status& removed) {
  MutexLock lock(mutex_);
  if (removed.ok()) {
    left_.erase(path);
  } else {
    left_.insert(path);
  }
}

bool FileRemover::has_waiting(Urgency urgency) const {
  MutexLock lock(mutex_);
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& each) { return each.urgency <= urgency; });
}

Result<std::uint64_t> FileRemover::overwrite_some(Waiting& file, std::uint64_t bytes) {
  if (file.file == nullptr) {
    EC_ASSIGN_OR_RETURN(file.size, file_system_.file_size(file.path));
    EC_ASSIGN_OR_RETURN(file.file, file_system_.open_log_file(file.path));
  }
  const FilePart part{file.done, std::min(bytes, file.size - file.done)};
  EC_TRY(write_zeros(*file.file, {&part, 1}));
  file.done += part.bytes;
  file.file->begin_write_out(file.done);
  return part.bytes;
}

void FileRemover::finish_written(std::vector<Waiting> files, std::span<const Status> written) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    Waiting& file = files[i];
    Status removed = written[i].ok() ? file.file->sync() : written[i];
    if (removed.ok() && file.done < file.size) {
      MutexLock lock(mutex_);
      waiting_.push_front(std::move(file));
      continue;
    }
    if (removed.ok()) removed = unlink(file.path);
    if (removed.code() == StatusCode::NotFound) removed = ok();
    note(file.path, removed);
  }
}

std::optional<FileRemover::Waiting> FileRemover::take_next(Urgency urgency) {
  MutexLock lock(mutex_);
  auto chosen = waiting_.end();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it)
    if (it->urgency <= urgency && (chosen == waiting_.end() || it->urgency < chosen->urgency))
      chosen = it;
  if (chosen == waiting_.end()) return std::nullopt;
  std::optional<Waiting> next = std::move(*chosen);
  waiting_.erase(chosen);
  return next;
}

// What is written is on its way to the drive while the next file is: small files take hardly longer
// than one that is as large as all of them.
void FileRemover::step(std::uint64_t bytes, Urgency urgency) {
  MutexLock stepping(step_mutex_);
  std::vector<Waiting> files;
  std::vector<Status> written;
  while (bytes > 0 && files.size() < kFilesPerStep) {
    std::optional<Waiting> next = take_next(urgency);
    if (!next) break;
    const Result<std::uint64_t> done = overwrite_some(*next, bytes);
    if (done.ok()) {
      bytes -= *done;
      overwritten_bytes_.fetch_add(*done);
    }
    written.push_back(done.status());
    files.push_back(*std::move(next));
  }
  finish_written(std::move(files), written);
}

void FileRemover::finish(std::span<const NamespaceId> namespaces) {
  MutexLock stepping(step_mutex_);
  for (;;) {
    std::vector<Waiting> next;
    {
      MutexLock lock(mutex_);
      const auto chosen = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
        return each.of == kAnyNamespace ||
               std::find(namespaces.begin(), namespaces.end(), each.of) != namespaces.end();
      });
      if (chosen == waiting_.end()) return;
      next.push_back(std::move(*chosen));
      waiting_.erase(chosen);
    }
    const Result<std::uint64_t> done = overwrite_some(next.front(), UINT64_MAX);
    if (done.ok()) overwritten_bytes_.fetch_add(*done);
    const Status written = done.status();
    finish_written(std::move(next), {&written, 1});
  }
}

Status FileRemover::blank(const std::string& path, std::span<const FilePart> parts,
                          const FileBytes& written) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> file, file_system_.open_log_file(path));
  EC_TRY(write_zeros(*file, parts));
  if (!written.bytes.empty()) EC_TRY(file->write(written.offset, written.bytes));
  EC_TRY(file->sync());
  overwritten_bytes_.fetch_add(written.bytes.size());
  for (const FilePart& part : parts) overwritten_bytes_.fetch_add(part.bytes);
  return ok();
}

void FileRemover::queue_left() {
  MutexLock lock(mutex_);
  for (const std::string& path : std::exchange(left_, {})) waiting_.push_back({path});
}

Status FileRemover::retry() {
  std::set<std::string> left;
  {
    MutexLock lock(mutex_);
    left = left_;
  }
  Status first;
  for (const std::string& path : left) {
    Status removed = remove_now(path);
    if (first.ok()) first = std::move(removed);
  }
  return first;
}

}  // namespace edgecase::engine
