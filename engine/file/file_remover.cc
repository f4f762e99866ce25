#include "file/file_remover.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace edgecase::engine {
namespace {

// Open at once, and unlinked at once.
constexpr std::size_t kFilesPerStep = 64;
// More that is blank gives its room back, though other bytes are urgent: a drive may be full.
constexpr std::uint64_t kBlankBytesMax = 512u << 20;

}  // namespace

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

bool FileRemover::Waiting::is_of(std::span<const NamespaceId> namespaces) const {
  return of == kAnyNamespace ||
         std::find(namespaces.begin(), namespaces.end(), of) != namespaces.end();
}

bool FileRemover::has_waiting(Urgency urgency) const {
  MutexLock lock(mutex_);
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& each) { return each.urgency <= urgency; });
}

bool FileRemover::has_bytes(Urgency urgency) const {
  MutexLock lock(mutex_);
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
    return !each.is_blank && each.urgency <= urgency;
  });
}

std::vector<FileRemover::Waiting*> FileRemover::choose(const Choice& is_chosen) {
  std::vector<Waiting*> chosen;
  MutexLock lock(mutex_);
  for (const Urgency urgency : {Urgency::Soon, Urgency::Whenever})
    for (Waiting& each : waiting_)
      if (each.urgency == urgency && chosen.size() < kFilesPerStep && is_chosen(each))
        chosen.push_back(&each);
  return chosen;
}

Overwriting FileRemover::next_part(Waiting& file, std::uint64_t bytes) {
  if (!file.size) {
    const Result<std::uint64_t> size = file_system_.file_size(file.path);
    if (!size.ok()) return {file.path, 0, 0, size.status()};
    file.size = *size;
  }
  return {file.path, file.done, std::min(bytes, *file.size - file.done)};
}

bool FileRemover::overwrite_some(std::uint64_t bytes, const Choice& is_chosen) {
  const std::vector<Waiting*> files =
      choose([&](const Waiting& each) { return !each.is_blank && is_chosen(each); });
  std::vector<Overwriting> parts;
  for (std::size_t i = 0; i < files.size() && bytes > 0; ++i) {
    parts.push_back(next_part(*files[i], bytes));
    bytes -= parts.back().bytes;
  }
  if (parts.empty()) return false;
  file_system_.overwrite(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) note_overwritten(*files[i], parts[i]);
  forget_done();
  return true;
}

void FileRemover::note_overwritten(Waiting& file, const Overwriting& part) {
  if (!part.status.ok()) {
    file.is_done = true;
    return note(file.path, part.status.code() == StatusCode::NotFound ? ok() : part.status);
  }
  overwritten_bytes_.fetch_add(part.bytes);
  file.done += part.bytes;
  if (file.done < *file.size) return;
  blank_bytes_ += *file.size;
  MutexLock lock(mutex_);
  file.is_blank = true;
}

bool FileRemover::unlink_some(const Choice& is_chosen) {
  const std::vector<Waiting*> files =
      choose([&](const Waiting& each) { return each.is_blank && is_chosen(each); });
  for (Waiting* file : files) {
    note(file->path, unlink(file->path));
    blank_bytes_ -= *file->size;
    file->is_done = true;
  }
  forget_done();
  return !files.empty();
}

void FileRemover::forget_done() {
  MutexLock lock(mutex_);
  std::erase_if(waiting_, [](const Waiting& each) { return each.is_done; });
}

void FileRemover::overwrite(std::uint64_t bytes, Urgency urgency) {
  const auto is_chosen = [&](const Waiting& each) { return each.urgency <= urgency; };
  MutexLock stepping(step_mutex_);
  overwrite_some(bytes, is_chosen);
  if (blank_bytes_ > kBlankBytesMax) unlink_some(is_chosen);
}

void FileRemover::step(std::uint64_t bytes, Urgency urgency) {
  const auto is_chosen = [&](const Waiting& each) { return each.urgency <= urgency; };
  MutexLock stepping(step_mutex_);
  overwrite_some(bytes, is_chosen);
  if (blank_bytes_ > kBlankBytesMax || !has_bytes(Urgency::Soon)) unlink_some(is_chosen);
}

void FileRemover::finish(std::span<const NamespaceId> namespaces) {
  const auto is_chosen = [&](const Waiting& each) { return each.is_of(namespaces); };
  MutexLock stepping(step_mutex_);
  while (overwrite_some(UINT64_MAX, is_chosen)) {
  }
  while (unlink_some(is_chosen)) {
  }
}

Status FileRemover::blank(const std::string& path, std::span<const FilePart> parts,
                          const FileBytes& written) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> file, file_system_.open_log_file(path));
  for (const FilePart& part : parts) EC_TRY(write_zeros(*file, part.offset, part.bytes));
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

namespace edgecase {

// One after the other, but each is on its way to the drive while the next is written.
void FileSystem::overwrite(std::span<Overwriting> stretches) {
  std::vector<std::unique_ptr<LogFile>> files(stretches.size());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    Overwriting& each = stretches[i];
    if (!each.status.ok()) continue;
    auto file = open_log_file(each.path);
    each.status = file.status();
    if (!file.ok()) continue;
    files[i] = *std::move(file);
    each.status = engine::write_zeros(*files[i], each.offset, each.bytes);
    if (each.status.ok()) files[i]->begin_write_out(each.offset + each.bytes);
  }
  for (std::size_t i = 0; i < stretches.size(); ++i)
    if (stretches[i].status.ok()) stretches[i].status = files[i]->sync();
}

namespace engine {
namespace {

constexpr std::uint64_t kZerosBytes = 256u << 10;

}  // namespace

Status write_zeros(LogFile& file, std::uint64_t offset, std::uint64_t bytes) {
  const Bytes zeros(std::min(kZerosBytes, bytes), '\0');
  for (std::uint64_t done = 0; done < bytes; done += zeros.size()) {
    const std::uint64_t size = std::min<std::uint64_t>(zeros.size(), bytes - done);
    EC_TRY(file.write(offset + done, ByteView(zeros).substr(0, size)));
  }
  return ok();
}

Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, file_system.file_size(path));
  Overwriting all{path, 0, size};
  file_system.overwrite({&all, 1});
  EC_TRY(all.status);
  return size;
}

}  // namespace engine
}  // namespace edgecase
