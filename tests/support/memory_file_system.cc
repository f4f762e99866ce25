#include "support/memory_file_system.h"

#include <algorithm>
#include <cerrno>

#include "edgecase/status.h"
#include "file/posix_file_system.h"
#include "support/memory_file_system_inside.h"

namespace edgecase::test {
namespace {

using engine::errno_status;
using Guard = std::lock_guard<std::mutex>;

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool lies_in(const std::string& path, const std::string& root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool changes_names(Operation operation) {
  switch (operation) {
    case Operation::CreateFile:
    case Operation::CreateLogFile:
    case Operation::CreateDirectory:
    case Operation::Rename:
    case Operation::Remove: return true;
    default: return false;
  }
}

bool writes(Operation operation) {
  return operation == Operation::Append || operation == Operation::LogWrite;
}

bool syncs(Operation operation) {
  return operation == Operation::Sync || operation == Operation::LogSync ||
         operation == Operation::SyncDirectory;
}

}  // namespace

// --- the state ---

MemoryFileSystem::Inside::Drive& MemoryFileSystem::Inside::drive_of(const std::string& path) {
  Drive* best = &drives.front();
  std::size_t longest = 0;
  for (Drive& drive : drives) {
    if (lies_in(path, drive.root) && drive.root.size() >= longest) {
      best = &drive;
      longest = drive.root.size();
    }
  }
  return *best;
}

int MemoryFileSystem::Inside::begin(Operation operation, const std::string& path) {
  ++operations;
  ++counts[static_cast<std::size_t>(operation)];
  if (operations >= stop_at) return EIO;
  const Drive& drive = drive_of(path);
  int error = 0;
  for (Fault& fault : faults) {
    if (fault.operation != Operation::Any && fault.operation != operation) continue;
    if (!fault.root.empty() && fault.root != drive.root) continue;
    if (fault.after > 0) {
      --fault.after;
    } else if (!fault.spent) {
      fault.spent = fault.mode == FaultMode::Once;
      error = fault.error;
      ++failed;
    }
  }
  if (error != 0) return error;
  if (drive.gone) return writes(operation) ? 0 : changes_names(operation) ? EROFS : EIO;
  if (drive.read_only && (writes(operation) || changes_names(operation))) return EROFS;
  if (drive.read_only && syncs(operation)) return EROFS;
  return 0;
}

int MemoryFileSystem::Inside::begin(Operation operation, const Handle& handle) {
  const int error = begin(operation, handle.path);
  return is_stale(handle) ? EIO : error;
}

bool MemoryFileSystem::Inside::is_stale(const Handle& handle) {
  return handle.epoch != epoch || handle.drive_epoch != drive_of(handle.path).epoch;
}

void MemoryFileSystem::Inside::stamp(Handle& handle) {
  handle.epoch = epoch;
  handle.drive_epoch = drive_of(handle.path).epoch;
}

int MemoryFileSystem::Inside::reserve(const std::string& path, std::uint64_t bytes) {
  const Drive& drive = drive_of(path);
  if (drive.capacity_bytes == 0) return 0;
  std::uint64_t used = disk.used_bytes(drive.root + "/");
  for (const Drive& other : drives) {  // a drive mounted inside this one is not on it
    if (&other != &drive && lies_in(other.root, drive.root)) {
      used -= disk.used_bytes(other.root + "/");
    }
  }
  return used + bytes > drive.capacity_bytes ? ENOSPC : 0;
}

void MemoryFileSystem::Inside::lose_unsynced(const Drive& drive) {
  std::vector<std::string> directories{drive.root};
  while (!directories.empty()) {
    const std::string directory = directories.back();
    directories.pop_back();
    disk.lose_unsynced_names(directory);
    for (const std::string& path : disk.children(directory)) {
      if (&drive_of(path) != &drive) continue;
      if (disk.is_directory(path)) {
        directories.push_back(path);
      } else {
        disk.file(path)->lose_unsynced();
      }
    }
  }
}

// --- what happens to drives, and what a test wants to know ---

MemoryFileSystem::MemoryFileSystem(std::vector<std::string> roots)
    : inside_(std::make_shared<Inside>()) {
  for (std::string& root : roots) {
    Inside::Drive drive;
    drive.root = without_slash(std::move(root));
    inside_->disk.add_root(drive.root);
    inside_->drives.push_back(std::move(drive));
  }
}

MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::power_cut(std::uint64_t seed, CutPolicy policy) {
  const Guard guard(inside_->mutex);
  SeededRandom random(seed);
  inside_->disk.cut(random, policy);
  ++inside_->epoch;
  inside_->stop_at = UINT64_MAX;
  inside_->locks.clear();
  inside_->appending.clear();
}

void MemoryFileSystem::kill_process(std::uint64_t seed) {
  const Guard guard(inside_->mutex);
  SeededRandom random(seed);
  for (const auto& [number, file] : inside_->appending) {
    const std::uint64_t size = file->live().size();
    const std::uint64_t synced = std::min<std::uint64_t>(file->durable().size(), size);
    file->forget_behind(synced + random.below(size - synced + 1));
  }
  ++inside_->epoch;
  inside_->stop_at = UINT64_MAX;
  inside_->locks.clear();
  inside_->appending.clear();
}

void MemoryFileSystem::stop_at(std::uint64_t nth) {
  const Guard guard(inside_->mutex);
  inside_->stop_at = nth == kNever ? UINT64_MAX : inside_->operations + nth;
}
bool MemoryFileSystem::stopped() const {
  const Guard guard(inside_->mutex);
  return inside_->operations >= inside_->stop_at;
}

void MemoryFileSystem::fail_nth(Operation operation, std::uint64_t nth, int error, FaultMode mode,
                                const std::string& root) {
  const Guard guard(inside_->mutex);
  inside_->faults.push_back({operation, nth - 1, error, mode, without_slash(root)});
}
void MemoryFileSystem::clear_faults() {
  const Guard guard(inside_->mutex);
  inside_->faults.clear();
}
std::uint64_t MemoryFileSystem::faults() const {
  const Guard guard(inside_->mutex);
  return inside_->failed;
}

void MemoryFileSystem::set_capacity(const std::string& root, std::uint64_t bytes) {
  const Guard guard(inside_->mutex);
  inside_->drive_of(without_slash(root)).capacity_bytes = bytes;
}
void MemoryFileSystem::set_gone(const std::string& root, bool gone) {
  const Guard guard(inside_->mutex);
  Inside::Drive& drive = inside_->drive_of(without_slash(root));
  if (drive.gone == gone) return;
  drive.gone = gone;
  inside_->lose_unsynced(drive);
  if (gone) return;
  // What was open stays with the drive that was pulled, and so does what the page cache held.
  ++drive.epoch;
  SeededRandom random(0);
  inside_->disk.cut(random, CutPolicy::None,
                    [&](const std::string& path) { return &inside_->drive_of(path) == &drive; });
}
void MemoryFileSystem::set_read_only(const std::string& root, bool read_only) {
  const Guard guard(inside_->mutex);
  inside_->drive_of(without_slash(root)).read_only = read_only;
}
void MemoryFileSystem::set_lying_sync(const std::string& root, bool lying) {
  const Guard guard(inside_->mutex);
  inside_->drive_of(without_slash(root)).lying_sync = lying;
}

std::uint64_t MemoryFileSystem::operations() const {
  const Guard guard(inside_->mutex);
  return inside_->operations;
}
std::uint64_t MemoryFileSystem::operations(Operation operation) const {
  if (operation == Operation::Any) return operations();
  const Guard guard(inside_->mutex);
  return inside_->counts[static_cast<std::size_t>(operation)];
}
bool MemoryFileSystem::exists(const std::string& path) const {
  const Guard guard(inside_->mutex);
  return inside_->disk.exists(path);
}
Bytes MemoryFileSystem::contents(const std::string& path) const {
  const Guard guard(inside_->mutex);
  const SimulatedDisk::File file = inside_->disk.file(path);
  return file ? file->live().whole() : Bytes();
}
std::map<std::string, Bytes> MemoryFileSystem::durable_contents() const {
  const Guard guard(inside_->mutex);
  return inside_->disk.durable_contents();
}
std::uint64_t MemoryFileSystem::used_bytes(const std::string& root) const {
  const Guard guard(inside_->mutex);
  return inside_->disk.used_bytes(without_slash(root) + "/");
}

void MemoryFileSystem::keep_freed() {
  const Guard guard(inside_->mutex);
  inside_->disk.keep_freed();
}
std::string MemoryFileSystem::find_bytes(const std::vector<Bytes>& needles) const {
  const Guard guard(inside_->mutex);
  return inside_->disk.find_bytes(needles);
}
void MemoryFileSystem::seek(Bytes needle) {
  const Guard guard(inside_->mutex);
  inside_->disk.seek(std::move(needle));
}
std::string MemoryFileSystem::find_sought() const {
  const Guard guard(inside_->mutex);
  return inside_->disk.find_sought();
}
void MemoryFileSystem::watch_sealing() {
  const Guard guard(inside_->mutex);
  inside_->disk.watch_sealing();
}
std::string MemoryFileSystem::written_twice() const {
  const Guard guard(inside_->mutex);
  return inside_->disk.written_twice();
}

void MemoryFileSystem::set_contents(const std::string& path, SparseBytes bytes) {
  const Guard guard(inside_->mutex);
  SimulatedDisk::File file = inside_->disk.file(path);
  if (!file) {
    file = std::make_shared<SimulatedFile>();
    inside_->disk.add(path, file);
    inside_->disk.sync_directory(SimulatedDisk::parent_of(path));
  }
  file->replace(std::move(bytes));
}
void MemoryFileSystem::flip_bit(const std::string& path, std::uint64_t byte, int bit) {
  const Guard guard(inside_->mutex);
  const SimulatedDisk::File file = inside_->disk.file(path);
  EC_CHECK(file != nullptr);
  file->flip_bit(byte, bit);
}
void MemoryFileSystem::truncate(const std::string& path, std::uint64_t size) {
  set_contents(path, contents(path).substr(0, size));
}

void MemoryFileSystem::break_page(const std::string& path, std::uint64_t byte) {
  const Guard guard(inside_->mutex);
  inside_->broken_pages[path].insert(byte / 4096);
}

// --- FileSystem ---

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::create_file(const std::string& path) {
  Inside::Handle handle{path, std::make_shared<SimulatedFile>(), 0};
  {
    const Guard guard(inside_->mutex);
    int error = inside_->begin(Operation::CreateFile, path);
    if (error == 0 && inside_->disk.exists(path)) error = EEXIST;
    if (error == 0 && !inside_->disk.is_directory(SimulatedDisk::parent_of(path))) error = ENOENT;
    if (error != 0) return errno_status(error, "create", path);
    inside_->disk.add(path, handle.file);
    inside_->stamp(handle);
  }
  return make_memory_writable_file(inside_, std::move(handle));
}

Result<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::open_mapped(const std::string& path,
                                                                        std::uint64_t store_bytes) {
  {
    const Guard guard(inside_->mutex);
    inside_->mapped_store_bytes = store_bytes;
  }
  return open_file(path);
}

std::uint64_t MemoryFileSystem::mapped_store_bytes() const {
  const Guard guard(inside_->mutex);
  return inside_->mapped_store_bytes;
}

Result<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::open_file(const std::string& path) {
  Inside::Handle handle{path, nullptr, 0};
  {
    const Guard guard(inside_->mutex);
    int error = inside_->begin(Operation::OpenFile, path);
    handle.file = inside_->disk.file(path);
    if (error == 0 && !handle.file) error = inside_->disk.is_directory(path) ? EISDIR : ENOENT;
    if (error != 0) return errno_status(error, "open", path);
    inside_->stamp(handle);
  }
  return make_memory_random_access_file(inside_, std::move(handle));
}

Result<std::unique_ptr<LogFile>> MemoryFileSystem::create_log_file(const std::string& path,
                                                                   std::uint64_t capacity_bytes) {
  Inside::Handle handle{path, std::make_shared<SimulatedFile>(), 0};
  {
    const Guard guard(inside_->mutex);
    int error = inside_->begin(Operation::CreateLogFile, path);
    if (error == 0 && inside_->disk.exists(path)) error = EEXIST;
    if (error == 0 && !inside_->disk.is_directory(SimulatedDisk::parent_of(path))) error = ENOENT;
    if (error == 0) error = inside_->reserve(path, capacity_bytes);
    if (error != 0) return errno_status(error, "create", path);
    handle.file->fill(capacity_bytes);
    inside_->disk.add(path, handle.file);
    inside_->stamp(handle);
  }
  return make_memory_log_file(inside_, std::move(handle));
}

Result<std::unique_ptr<LogFile>> MemoryFileSystem::open_log_file(const std::string& path) {
  Inside::Handle handle{path, nullptr, 0};
  {
    const Guard guard(inside_->mutex);
    int error = inside_->begin(Operation::OpenLogFile, path);
    handle.file = inside_->disk.file(path);
    if (error == 0 && !handle.file) error = inside_->disk.is_directory(path) ? EISDIR : ENOENT;
    if (error != 0) return errno_status(error, "open", path);
    inside_->stamp(handle);
  }
  return make_memory_log_file(inside_, std::move(handle));
}

Status MemoryFileSystem::create_directory(const std::string& name) {
  const std::string path = without_slash(name);
  const Guard guard(inside_->mutex);
  if (inside_->disk.is_directory(path)) return ok();
  int error = inside_->begin(Operation::CreateDirectory, path);
  if (error == 0 && inside_->disk.exists(path)) error = EEXIST;
  if (error == 0 && !inside_->disk.is_directory(SimulatedDisk::parent_of(path))) error = ENOENT;
  if (error != 0) return errno_status(error, "create directory", path);
  inside_->disk.add(path, nullptr);
  return ok();
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list_directory(const std::string& name) {
  const std::string path = without_slash(name);
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::ListDirectory, path);
  if (error == 0 && !inside_->disk.is_directory(path)) error = ENOENT;
  if (error != 0) return errno_status(error, "list", path);
  std::vector<DirectoryEntry> entries;
  for (const std::string& child : inside_->disk.children(path)) {
    entries.push_back({child.substr(path.size() + 1), inside_->disk.is_directory(child)});
  }
  return entries;
}

Status MemoryFileSystem::sync_directory(const std::string& name) {
  const std::string path = without_slash(name);
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::SyncDirectory, path);
  if (error != 0 && inside_->operations < inside_->stop_at) inside_->disk.lose_unsynced_names(path);
  if (error == 0 && !inside_->disk.is_directory(path)) error = ENOENT;
  if (error != 0) return errno_status(error, "sync", path);
  if (!inside_->drive_of(path).lying_sync) inside_->disk.sync_directory(path);
  return ok();
}

Status MemoryFileSystem::rename_file(const std::string& from, const std::string& to) {
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::Rename, to);
  if (error == 0 && !inside_->disk.file(from)) error = ENOENT;
  if (error == 0 && !inside_->disk.is_directory(SimulatedDisk::parent_of(to))) error = ENOENT;
  if (error == 0 && &inside_->drive_of(from) != &inside_->drive_of(to)) error = EXDEV;
  if (error != 0) return errno_status(error, "rename", from + " to " + to);
  inside_->disk.rename(from, to);
  return ok();
}

Status MemoryFileSystem::remove_file(const std::string& path) {
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::Remove, path);
  if (error == 0 && !inside_->disk.file(path)) error = ENOENT;
  if (error != 0) return errno_status(error, "remove", path);
  inside_->disk.remove(path);
  return ok();
}

Result<std::uint64_t> MemoryFileSystem::file_size(const std::string& path) {
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::FileSize, path);
  const SimulatedDisk::File file = inside_->disk.file(path);
  if (error == 0 && !file) error = ENOENT;
  if (error != 0) return errno_status(error, "look at", path);
  return std::uint64_t{file->live().size()};
}

Result<edgecase::Space> MemoryFileSystem::space(const std::string& name) {
  constexpr std::uint64_t kUnlimitedBytes = 1ull << 40;
  const std::string path = without_slash(name);
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::Space, path);
  if (error == 0 && !inside_->disk.exists(path)) error = ENOENT;
  if (error != 0) return errno_status(error, "ask the size of", path);
  const Inside::Drive& drive = inside_->drive_of(path);
  const std::uint64_t used = inside_->disk.used_bytes(drive.root + "/");
  edgecase::Space space;
  space.total_bytes = drive.capacity_bytes != 0 ? drive.capacity_bytes : kUnlimitedBytes;
  space.free_bytes = space.total_bytes > used ? space.total_bytes - used : 0;
  space.device = static_cast<std::uint64_t>(&drive - inside_->drives.data()) + 1;
  return space;
}

namespace {

class MemoryFileLock final : public FileLock {
 public:
  MemoryFileLock(std::shared_ptr<MemoryFileSystem::Inside> inside, std::string path)
      : inside_(std::move(inside)), path_(std::move(path)), epoch_(inside_->epoch) {}
  ~MemoryFileLock() override {
    const Guard guard(inside_->mutex);
    if (inside_->epoch == epoch_) inside_->locks.erase(path_);
  }

 private:
  std::shared_ptr<MemoryFileSystem::Inside> inside_;
  std::string path_;
  std::uint64_t epoch_;
};

}  // namespace

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock_file(const std::string& path) {
  const Guard guard(inside_->mutex);
  int error = inside_->begin(Operation::Lock, path);
  const bool there = inside_->disk.exists(path);
  if (error == 0 && !there && !inside_->disk.is_directory(SimulatedDisk::parent_of(path))) {
    error = ENOENT;
  }
  if (error == 0 && !there && inside_->drive_of(path).gone) error = EROFS;
  if (error != 0) return errno_status(error, "lock", path);
  if (!there) inside_->disk.add(path, std::make_shared<SimulatedFile>());
  if (!inside_->locks.insert(path).second) {
    return locked(path + " is held by another process or by another store of this one");
  }
  return std::unique_ptr<FileLock>(std::make_unique<MemoryFileLock>(inside_, path));
}

}  // namespace edgecase::test
