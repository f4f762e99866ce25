#include "core/drives.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "file/file_names.h"

namespace edgecase::engine {

FreeSpace::FreeSpace(FileSystem& file_system, Clock& clock, std::string metadata_directory,
                     std::string values_directory, std::uint64_t keep_free_bytes)
    : file_system_(file_system),
      clock_(clock),
      metadata_directory_(std::move(metadata_directory)),
      values_directory_(std::move(values_directory)),
      keep_free_bytes_(keep_free_bytes) {}

FreeSpace::Shortage FreeSpace::shortage() const {
  MutexLock lock(mutex_);
  return shortage_;
}

Status FreeSpace::judge(const std::string& directory, const Result<Space>& space,
                        bool was_short) const {
  if (!space.ok()) return ok();
  const std::uint64_t kept = std::min(keep_free_bytes_, space->total_bytes / kKeepFreePart);
  if (space->free_bytes >= kept + (was_short ? kept / 8 : 0)) return ok();
  return Status::of_file(StatusCode::OutOfSpace, "", directory,
                         ": of the drive " + std::to_string(space->free_bytes >> 20) +
                             " MiB are free, and writes leave " + std::to_string(kept >> 20) +
                             " MiB of it");
}

bool FreeSpace::look() {
  MutexLock lock(mutex_);
  const auto values = file_system_.space(values_directory_);
  roomy_.store(values.ok() && values->free_bytes >= values->total_bytes / kRoomyPart,
               std::memory_order_relaxed);
  if (keep_free_bytes_ == 0) return false;
  const bool was_short = !shortage_.status.ok();
  Shortage found;
  found.status = judge(metadata_directory_, file_system_.space(metadata_directory_),
                       was_short && !shortage_.is_of_values)
                     .on(Drive::Metadata);
  if (found.status.ok()) {
    found.status =
        judge(values_directory_, values, was_short && shortage_.is_of_values).on(Drive::Values);
    found.is_of_values = !found.status.ok();
  }
  const bool is_now_short = !found.status.ok();
  if (!is_now_short) found.is_of_values = shortage_.is_of_values;
  found.since_ns = was_short ? shortage_.since_ns : clock_.wall_ns();
  shortage_ = std::move(found);
  short_.store(is_now_short, std::memory_order_relaxed);
  return was_short != is_now_short;
}

bool SpaceReserve::fill() {
  if (bytes_ == 0) return true;
  MutexLock lock(mutex_);
  bool is_whole = true;
  for (const std::string& path : paths_) is_whole = fill(path) && is_whole;
  return is_whole;
}

// A drive without room is asked first: an attempt would take all that is left while it lasts.
bool SpaceReserve::fill(const std::string& path) {
  const Result<std::uint64_t> size = file_system_.file_size(path);
  if (size.ok() && *size == bytes_) return true;
  if (size.ok() && !file_system_.remove_file(path).ok()) return false;
  const Result<Space> space = file_system_.space(path.substr(0, path.rfind('/')));
  if (space.ok() && space->free_bytes < bytes_) return false;
  return file_system_.create_log_file(path, bytes_).ok();
}

bool SpaceReserve::release() {
  MutexLock lock(mutex_);
  bool any = false;
  for (const std::string& path : paths_) any = file_system_.remove_file(path).ok() || any;
  return any;
}

namespace {

constexpr std::int64_t kFillReserveNs = 10'000'000'000;

}  // namespace

DriveRoom::DriveRoom(const Store& store, ValuesDrive& values)
    : store_(store),
      values_(values),
      free_space_(store.environment.file_system, store.environment.clock,
                  store.options.metadata_directory, store.options.values_directory,
                  store.options.keep_free_bytes),
      reserve_(store.environment.file_system,
               {reserve_path(store.options.metadata_directory),
                reserve_path(store.options.values_directory)},
               store.options.erasure_reserve_bytes) {}

void DriveRoom::look() {
  free_space_.look();
  const FreeSpace::Shortage shortage = free_space_.shortage();
  if (!shortage.status.ok()) {
    store_.health.fail(Work::Space, shortage.status);
  } else if (store_.health.is_failing(Work::Space)) {
    store_.health.succeed(Work::Space);
  }
  if (!is_short() || look_scheduled_.exchange(true)) return;
  store_.tasks.schedule_after(Lane::Flush, kLookForSpaceNs, [this] {
    look_scheduled_ = false;
    look();
  });
}

Status DriveRoom::check(const WriteBatch& batch) const {
  if (!is_short() || batch.makes_room()) return ok();
  const std::vector<NamespaceId>& ids = batch.namespaces();
  const bool is_of_metadata_alone = std::all_of(ids.begin(), ids.end(), [this](NamespaceId id) {
    const auto info = store_.versions.find_namespace(id);
    return info.ok() && info->options.placement == Placement::Metadata;
  });
  return is_of_metadata_alone ? ok() : free_space_.shortage().status;
}

void DriveRoom::fill_reserve() {
  if (store_.options.erasure_reserve_bytes == 0) return;
  store_.tasks.schedule(Lane::Compaction, [this] {
    // Not into the directory that an unmounted drive leaves behind.
    if (!values_.check().ok() || !reserve_.fill()) fill_reserve_later();
  });
}

// Not while an erasure is pending: that needs the room, and has it filled when it is done.
void DriveRoom::fill_reserve_later() {
  if (fill_scheduled_.exchange(true)) return;
  store_.tasks.schedule_after(Lane::Compaction, kFillReserveNs, [this] {
    fill_scheduled_ = false;
    if (store_.versions.has_erasures()) {
      fill_reserve_later();
    } else {
      fill_reserve();
    }
  });
}

bool DriveRoom::release_reserve() {
  if (!reserve_.release()) return false;
  fill_reserve_later();
  return true;
}

namespace {

constexpr char kMagic[] = {'E', 'C', 'I', 'D', 'E', 'N', 'T', '1'};
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kRoleAt = 12;
constexpr std::size_t kStoreIdAt = 16;
constexpr std::size_t kChecksumAt = 32;
constexpr std::size_t kIdentityReadMaxBytes = 4096;

}  // namespace

StoreId make_store_id(Random& random) {
  StoreId id;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = random.next();
    std::memcpy(id.data() + half * sizeof bits, &bits, sizeof bits);
  }
  return id;
}

std::string to_text(const StoreId& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : id) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

Bytes encode_identity(const Identity& identity) {
  Bytes out(kMagic, sizeof kMagic);
  append_fixed32(out, kFormatVersion);
  out.push_back(static_cast<char>(identity.role));
  out.append(3, '\0');
  out.append(reinterpret_cast<const char*>(identity.store_id.data()), identity.store_id.size());
  append_fixed32(out, crc32c(out));
  return out;
}

Result<Identity> decode_identity(ByteView bytes, const std::string& path) {
  if (bytes.size() < kRoleAt || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return corruption_in(path, " at byte 0: is no identity of a store");
  const std::uint32_t version = decode_fixed32(bytes.data() + sizeof kMagic);
  const bool whole = bytes.size() == kIdentityBytes && decode_fixed32(bytes.data() + kChecksumAt) ==
                                                           crc32c(bytes.substr(0, kChecksumAt));
  // A newer format may be longer; of this one's length, it must be whole to be believed.
  if (version > kFormatVersion && (whole || bytes.size() != kIdentityBytes))
    return unsupported(path + ": written by a newer version of EdgeCase (format " +
                       std::to_string(version) + ")");
  if (!whole) return corruption_in(path, ": wrong length or checksum");
  Identity identity;
  const auto role = static_cast<unsigned char>(bytes[kRoleAt]);
  if (version == 0 || (role != static_cast<unsigned char>(DirectoryRole::Metadata) &&
                       role != static_cast<unsigned char>(DirectoryRole::Values))) {
    return corruption_in(path, ": unknown role or version 0");
  }
  identity.role = static_cast<DirectoryRole>(role);
  std::memcpy(identity.store_id.data(), bytes.data() + kStoreIdAt, identity.store_id.size());
  return identity;
}

namespace {

Result<std::optional<Identity>> read_one(FileSystem& file_system, const std::string& path) {
  const auto bytes = read_whole_file(file_system, path, kIdentityReadMaxBytes, ReadSource::Drive);
  if (bytes.status().code() == StatusCode::NotFound) return std::optional<Identity>();
  if (!bytes.ok()) return bytes.status();
  EC_ASSIGN_OR_RETURN(const Identity identity, decode_identity(*bytes, path));
  return std::optional<Identity>(identity);
}

bool is_one(const Result<std::optional<Identity>>& found, const Identity& wanted) {
  return found.ok() && *found && (*found)->store_id == wanted.store_id &&
         (*found)->role == wanted.role;
}

}  // namespace

Result<std::optional<Identity>> read_identity(FileSystem& file_system,
                                              const std::string& directory) {
  auto identity = read_one(file_system, identity_path(directory));
  const bool is_lost =
      identity.ok() ? !*identity : identity.status().code() == StatusCode::Corruption;
  if (!is_lost) return identity;
  auto copy = read_one(file_system, identity_copy_path(directory));
  return copy.ok() && *copy ? copy : identity;
}

Status identity_damage(FileSystem& file_system, const std::string& directory,
                       const Identity& identity) {
  const std::string path = identity_path(directory);
  const auto first = read_one(file_system, path);
  if (first.ok() && !*first) return corruption(path + ": missing");
  if (!first.ok()) return first.status();
  if (!is_one(first, identity)) return corruption(path + ": is not that of the store");
  const auto copy = read_one(file_system, identity_copy_path(directory));
  if (is_one(copy, identity) || (copy.ok() && !*copy)) return ok();
  return copy.ok() ? corruption(identity_copy_path(directory) + ": is not that of the store")
                   : copy.status();
}

Status heal_identity(FileSystem& file_system, const std::string& directory,
                     const Identity& identity) {
  const Status damage = identity_damage(file_system, directory, identity);
  for (const std::string& path : {identity_path(directory), identity_copy_path(directory)}) {
    if (is_one(read_one(file_system, path), identity)) continue;
    static_cast<void>(replace_whole_file(file_system, directory, identity_new_path(directory), path,
                                         encode_identity(identity))
                          .ok());
  }
  return damage;
}

Status write_identity(FileSystem& file_system, const std::string& directory,
                      const Identity& identity) {
  return replace_whole_file(file_system, directory, identity_new_path(directory),
                            identity_path(directory), encode_identity(identity));
}

Status check_metadata_identity(FileSystem& file_system, const std::string& metadata_directory,
                               const StoreId& store_id) {
  EC_ASSIGN_OR_RETURN(const std::optional<Identity> found,
                      read_identity(file_system, metadata_directory).on(Drive::Metadata));
  if (found && found->store_id == store_id && found->role == DirectoryRole::Metadata) return ok();
  return Status::of_file(StatusCode::Unavailable, "", metadata_directory,
                         ": the metadata drive is not the one of this store any more (is the "
                         "drive mounted?)")
      .on(Drive::Metadata);
}

Status check_values_identity(FileSystem& file_system, const std::string& values_directory,
                             const StoreId& store_id) {
  EC_ASSIGN_OR_RETURN(const std::optional<Identity> found,
                      read_identity(file_system, values_directory).on(Drive::Values));
  const auto away = [&](std::string_view why) {
    return Status::of_file(StatusCode::Unavailable, "", values_directory, why).on(Drive::Values);
  };
  if (!found)
    return away(
        ": the values drive is not the one of this store: the directory is empty or missing "
        "(is the drive mounted?)");
  if (found->store_id != store_id)
    return away(": the values drive is not the one of this store: it belongs to store " +
                to_text(found->store_id) + ", expected " + to_text(store_id));
  if (found->role != DirectoryRole::Values)
    return away(": this is the metadata directory of the store, not its values directory");
  return ok();
}

}  // namespace edgecase::engine
