#include "version/version_set.h"

#include <algorithm>
#include <utility>

#include "edgecase/status.h"
#include "file/file_names.h"
#include "file/file_remover.h"
#include "log/log_format.h"
#include "version/version.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kManifestBytes = 1u << 20;
// Steps in which the memory of file lists counts; less than one counts for nothing.
constexpr std::uint64_t kListMemoryStep = 1u << 20;
// Reserved at once: an edit every 65,536 files.
constexpr std::uint64_t kFileNumberBlock = 1u << 16;
bool names(const Version& version, const ObsoleteFile& file) {
  if (file.kind == ObsoleteFile::Kind::Values) return version.value_files.contains(file.number);
  return std::any_of(version.tables.begin(), version.tables.end(),
                     [&](const TablePointer& table) { return table->number == file.number; });
}

}  // namespace

VersionSet::VersionSet(FileSystem& file_system, std::string metadata_directory,
                       const StoreId& store_id, KeyRing* keys)
    : file_system_(file_system),
      metadata_directory_(std::move(metadata_directory)),
      store_id_(store_id),
      keys_(keys) {}

Result<std::unique_ptr<VersionSet>> VersionSet::create(FileSystem& file_system,
                                                       std::string metadata_directory,
                                                       const StoreId& store_id, KeyRing* keys) {
  std::unique_ptr<VersionSet> set(
      new VersionSet(file_system, std::move(metadata_directory), store_id, keys));
  MutexLock lock(set->edit_mutex_);
  EC_TRY(set->start_manifest(VersionState{}));
  return set;
}

Result<std::unique_ptr<VersionSet>> VersionSet::recover(FileSystem& file_system,
                                                        std::string metadata_directory,
                                                        const StoreId& store_id, KeyRing* keys) {
  std::unique_ptr<VersionSet> set(
      new VersionSet(file_system, std::move(metadata_directory), store_id, keys));
  EC_TRY(set->read_manifest());
  return set;
}

Status VersionSet::read_manifest() {
  EC_ASSIGN_OR_RETURN(const std::uint64_t number,
                      find_current(file_system_, metadata_directory_, current_damage_));
  const std::string path = manifest_path(metadata_directory_, number);
  auto copies = look_at_copies(file_system_, path, keys_);
  if (copies.status().code() == StatusCode::NotFound)
    return corruption_in(path, ": missing, but CURRENT names it");
  if (!copies.ok()) return copies.status();
  found_ = std::move(copies).value();
  if (found_.status.code() == StatusCode::NotFound)
    return corruption_in(path, ": has no head, but CURRENT names it");
  EC_TRY(found_.status);
  const LogIdentity& identity = found_.best_copy().identity;
  if (identity.store_id != store_id_) return unavailable(path + ": belongs to another store");
  if (identity.type != LogType::Manifest || identity.number != number)
    return corruption_in(path, ": the head is not that of this manifest");

  EC_ASSIGN_OR_RETURN(auto file, open_copy(file_system_, path, found_.best_copy().begin));
  EC_ASSIGN_OR_RETURN(const auto opened, LogReader::open(std::move(file), keys_));
  LogReader& reader = *opened;
  VersionReplay replay;
  bool first = true;
  for (;;) {
    EC_ASSIGN_OR_RETURN(const std::optional<LogRecord> record, reader.next());
    if (!record) break;
    auto edit = VersionEdit::decode(record->payload);
    if (!edit.ok()) return edit.status().in_file(path);
    if (first != edit->format_version.has_value())
      return corruption_in(path, ": the state does not begin with its format version");
    first = false;
    if (const Status fits = replay.apply(*edit); !fits.ok())
      return fits.as(StatusCode::Corruption).in_file(path);
  }
  if (first) return corruption_in(path, ": holds no state, but CURRENT names it");
  auto replayed = replay.finish();
  if (!replayed.ok()) return replayed.status().as(StatusCode::Corruption).in_file(path);
  VersionState state = std::move(replayed).value();

  MutexLock lock(edit_mutex_);
  next_manifest_number_ = number + 1;
  manifest_end_bytes_ = reader.end_bytes();
  manifest_number_.store(number);
  auto live = state.namespaces.begin();
  for (NamespaceId id = 1; id < state.namespace_id_limit; ++id) {
    if (live != state.namespaces.end() && live->id == id) {
      ++live;
    } else {
      dropped_.insert(id);
    }
  }
  const FileNumber limit = state.file_number_limit;
  install(std::move(state));
  MutexLock state_lock(mutex_);
  next_file_number_ = limit;  // what was reserved and not used is skipped
  return ok();
}

Status VersionSet::make_durable() {
  MutexLock lock(edit_mutex_);
  if (manifest_ != nullptr) return ok();  // this process made it
  const Status started = start_manifest(state());
  if (started.code() != StatusCode::OutOfSpace) return started;
  // On a full drive the store must open all the same, to be read and to give space back.
  EC_TRY(write_copies_again(file_system_,
                            manifest_path(metadata_directory_, manifest_number_.load()), found_));
  return file_system_.sync_directory(metadata_directory_);
}

Status VersionSet::damage() const {
  return current_damage_.ok() ? found_.damage : current_damage_;
}

bool VersionSet::copies_differed() const {
  return found_.ends_differ;
}

Status VersionSet::scrub() {
  MutexLock lock(edit_mutex_);
  if (manifest_ == nullptr) return ok();
  const std::string path = manifest_path(metadata_directory_, manifest_number_.load());
  const auto read = look_at_copies(file_system_, path, keys_, LogSource::Drive);
  Status damage = read.ok() ? read->damage : read.status();
  if (read.ok()) {
    if (!read->status.ok()) damage = read->status;
    for (const LogCopy& copy : read->copies) {
      if (damage.ok() && copy.end_bytes != manifest_->durable_bytes())
        damage = corruption_in(
            path, " at byte " + std::to_string(copy.begin + kLogHeadBytes + copy.end_bytes) +
                      ": record is damaged");
    }
  }
  if (damage.ok()) return ok();
  const Status renewed = renew_manifest(state());
  return damage.as(StatusCode::Corruption)
      .with_context("", renewed.ok() ? "; nothing is lost, it is written anew"
                                     : "; it cannot be written anew yet: " + renewed.message());
}

std::shared_ptr<const Version> VersionSet::current() const {
  MutexLock lock(mutex_);
  return state_.version;
}

bool VersionSet::has_erasures(SequenceNumber through) const {
  if (!has_erasures()) return false;
  MutexLock lock(mutex_);
  if (state_.erasures.empty()) return has_erasures();
  return std::any_of(state_.erasures.begin(), state_.erasures.end(),
                     [through](const RangeDelete& each) { return each.sequence <= through; });
}

std::vector<RangeDelete> VersionSet::pending_erasures() const {
  MutexLock lock(mutex_);
  return state_.erasures;
}

VersionState VersionSet::state() const {
  MutexLock lock(mutex_);
  return state_;
}

std::size_t VersionSet::waiting_range_deletes() const {
  MutexLock lock(mutex_);
  return std::max(state_.version->range_delete_list.size(), state_.erasures.size());
}

Status VersionSet::apply(const VersionEdit& edit) {
  MutexLock lock(edit_mutex_);
  if (dropped_.empty()) return apply_locked(edit);
  VersionEdit rest = edit;
  std::vector<ObsoleteFile> withdrawn = withdraw_dropped(state(), rest);
  EC_TRY(apply_locked(rest));
  if (!withdrawn.empty()) {
    MutexLock state_lock(mutex_);
    retired_.push_back({{}, std::move(withdrawn)});
  }
  return ok();
}

Status VersionSet::drop_namespace(NamespaceId id) {
  MutexLock lock(edit_mutex_);
  EC_TRY(find_namespace(id).status());
  const std::shared_ptr<const Version> version = current();
  VersionEdit edit;
  edit.dropped_namespaces.push_back(id);
  for (const auto& [number, file] : version->value_files) {
    if (file.namespace_id == id) edit.removed_value_files.push_back(number);
  }
  for (const TablePointer& table : version->tables) {
    const bool all_of_it = std::all_of(
        table->value_files.begin(), table->value_files.end(), [&](const ValueFileUse& use) {
          return version->value_files.at(use.file_number).namespace_id == id;
        });
    if (all_of_it) edit.removed_tables.push_back(table->number);
  }
  return apply_locked(edit);
}

Status VersionSet::apply_locked(const VersionEdit& edit) {
  VersionState next = state();
  EC_TRY(next.apply(edit));
  EC_TRY(log_edit(edit, next));
  retire(edit, next);
  // Before the state changes: who does not find a namespace there knows that it was dropped.
  for (const NamespaceId id : edit.dropped_namespaces) dropped_.insert(id);
  install(std::move(next));
  return ok();
}

void VersionSet::retire(const VersionEdit& edit, const VersionState& next) {
  MutexLock lock(mutex_);
  if (next.version == state_.version) return;
  while (!retired_.empty() && retired_.front().files.empty() && retired_.front().version.expired())
    retired_.pop_front();
  std::vector<ObsoleteFile> files;
  const Version& before = *state_.version;
  for (const TablePointer& table : before.tables) {
    const bool removed = std::find(edit.removed_tables.begin(), edit.removed_tables.end(),
                                   table->number) != edit.removed_tables.end();
    if (removed)
      files.push_back({ObsoleteFile::Kind::Table, Placement::Metadata, table->number, 0,
                       table->smallest, table->largest});
  }
  for (const FileNumber number : edit.removed_value_files) {
    const ValueFileMetadata& file = before.value_files.at(number);
    files.push_back({ObsoleteFile::Kind::Values, file.placement, number, file.namespace_id});
  }
  retired_.push_back({state_.version, std::move(files)});
}

std::vector<ObsoleteFile> VersionSet::take_obsolete_files() {
  std::vector<ObsoleteFile> files;
  std::vector<std::shared_ptr<const Version>> held;  // let go after the lock
  MutexLock lock(mutex_);
  for (Retired& retired : retired_) {
    if (auto version = retired.version.lock()) held.push_back(std::move(version));
    // A file was named by versions up to this one only.
    std::erase_if(retired.files, [&](const ObsoleteFile& file) {
      const bool named = std::any_of(held.begin(), held.end(),
                                     [&](const auto& version) { return names(*version, file); });
      if (!named) files.push_back(file);
      return !named;
    });
  }
  std::erase_if(retired_, [](const Retired& retired) {
    return retired.files.empty() && retired.version.expired();
  });
  lock.unlock();
  return files;
}

std::vector<ObsoleteFile> VersionSet::obsolete_files() const {
  MutexLock lock(mutex_);
  std::vector<ObsoleteFile> files;
  for (const Retired& retired : retired_)
    files.insert(files.end(), retired.files.begin(), retired.files.end());
  return files;
}

bool VersionSet::has_obsolete_files() const {
  MutexLock lock(mutex_);
  return std::any_of(retired_.begin(), retired_.end(),
                     [](const Retired& retired) { return !retired.files.empty(); });
}

void VersionSet::install(VersionState next) {
  has_erasures_.store(!next.erasures.empty() || manifest_is_left_, std::memory_order_release);
  has_retention_.store(next.retention != nullptr, std::memory_order_release);
  const std::uint64_t rules = next.retention == nullptr ? 0 : next.retention->memory_bytes();
  const std::uint64_t lists = next.version->memory_bytes() / kListMemoryStep * kListMemoryStep;
  memory_bytes_.store(rules + lists, std::memory_order_relaxed);
  namespace_id_limit_.store(next.namespace_id_limit, std::memory_order_release);
  MutexLock lock(mutex_);
  state_ = std::move(next);
}

Status VersionSet::log_edit(const VersionEdit& edit, const VersionState& next) {
  if (manifest_ != nullptr) {
    const Bytes payload = edit.encode();
    if (manifest_->fits(payload.size()) && append(payload).ok()) return ok();
  }
  return renew_manifest(next);
}

// The one there is, full, failed or to be erased, is never written to again.
Status VersionSet::renew_manifest(const VersionState& state) {
  if (manifest_ != nullptr) manifest_end_bytes_ = manifest_->durable_bytes();
  manifest_.reset();
  return start_manifest(state);
}

Status VersionSet::append(const Bytes& payload) {
  const std::uint64_t before = manifest_->appended_bytes();
  const ByteView part = payload;
  EC_TRY(manifest_->append(++edits_, {&part, 1}));
  EC_TRY(manifest_->sync());
  bytes_written_.fetch_add(2 * (manifest_->appended_bytes() - before));
  return ok();
}

Status VersionSet::start_manifest(const VersionState& state) {
  const std::uint64_t number = next_manifest_number_++;
  const std::string path = manifest_path(metadata_directory_, number);
  const Bytes payload = state.snapshot().encode();
  // Half of it stays for the edits to come.
  const std::uint64_t capacity =
      std::max(kManifestBytes, 2 * doubled_log_bytes_for(payload.size(), keys_ != nullptr));

  // A file of this number can only be what an unfinished start left.
  if (const Status removed = file_system_.remove_file(path);
      !removed.ok() && removed.code() != StatusCode::NotFound) {
    return removed;
  }
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> file, file_system_.create_log_file(path, capacity));
  LogIdentity identity;
  identity.store_id = store_id_;
  identity.type = LogType::Manifest;
  identity.number = number;
  identity.predecessor = manifest_number_.load();
  identity.predecessor_bytes = manifest_end_bytes_;
  EC_ASSIGN_OR_RETURN(manifest_, DoubledLogWriter::create(std::move(file), identity, keys_));
  Status written = append(payload);
  if (written.ok()) written = file_system_.sync_directory(metadata_directory_);
  if (written.ok()) written = replace_current(number);
  if (!written.ok()) {
    manifest_.reset();
    return written;
  }
  manifest_number_.store(number);
  // It does no harm otherwise; the next start tries again.
  manifest_is_left_ = !remove_other_manifests(number).ok();
  return ok();
}

Status VersionSet::replace_current(std::uint64_t number) {
  return write_current(file_system_, metadata_directory_, number);
}

// Overwritten first: they name keys.
Status VersionSet::remove_other_manifests(std::uint64_t kept) {
  EC_ASSIGN_OR_RETURN(const auto entries, file_system_.list_directory(metadata_directory_));
  Status first;
  for (const DirectoryEntry& entry : entries) {
    const auto parsed = parse_file_name(entry.name);
    if (!parsed || parsed->type != FileType::Manifest || parsed->number == kept) continue;
    const std::string path = join_path(metadata_directory_, entry.name);
    Status removed = overwrite_file(file_system_, path).status();
    if (removed.ok()) removed = file_system_.remove_file(path);
    if (first.ok()) first = std::move(removed);
  }
  return first;
}

Status VersionSet::finish_erasures(SequenceNumber through) {
  MutexLock lock(edit_mutex_);
  // First without the keys of tables that were, the ranges themselves pending still: a failure
  // here leaves them so.
  EC_TRY(renew_manifest(state()));
  EC_TRY(remove_other_manifests(manifest_number_.load()));
  manifest_is_left_ = false;
  VersionState next = state();
  VersionEdit edit;
  edit.erased_sequence = through;
  EC_TRY(next.apply(edit));
  EC_TRY(renew_manifest(next));
  install(std::move(next));
  if (!manifest_is_left_) return ok();
  return io_error(metadata_directory_ + ": an old manifest cannot be overwritten");
}

Status VersionSet::forget_past() {
  MutexLock lock(edit_mutex_);
  EC_TRY(renew_manifest(state()));
  EC_TRY(remove_other_manifests(manifest_number_.load()));
  manifest_is_left_ = false;
  return ok();
}

Result<FileNumber> VersionSet::take_file_numbers(std::uint64_t count) {
  MutexLock lock(edit_mutex_);
  VersionEdit edit;
  {
    MutexLock state_lock(mutex_);
    if (state_.file_number_limit - next_file_number_ < count)
      edit.file_number_limit = next_file_number_ + std::max(count, kFileNumberBlock);
  }
  if (edit.file_number_limit) EC_TRY(apply_locked(edit));
  MutexLock state_lock(mutex_);
  const FileNumber first = next_file_number_;
  next_file_number_ += count;
  return first;
}

Result<NamespaceId> VersionSet::create_namespace(std::string_view name,
                                                 const NamespaceOptions& options) {
  if (name.empty() || name.size() > kNamespaceNameMaxBytes)
    return invalid_argument("a namespace name has 1 to " + std::to_string(kNamespaceNameMaxBytes) +
                            " bytes, this one " + std::to_string(name.size()));
  if (options.scope_bytes > kKeySizeMaxBytes)
    return invalid_argument("scope_bytes is over the limit of a key");
  MutexLock lock(edit_mutex_);
  const VersionState before = state();
  for (const NamespaceInfo& info : before.namespaces) {
    if (info.name == name) return already_exists("namespace " + std::string(name));
  }
  if (before.namespaces.size() >= kNamespaceCountMax)
    return limit_reached("there are " + std::to_string(kNamespaceCountMax) +
                         " namespaces, the most");
  if (before.namespace_id_limit > kNamespaceIdMax)
    return limit_reached("there have been " + std::to_string(kNamespaceIdMax) +
                         " namespaces, the most");
  VersionEdit edit;
  edit.namespace_id_limit = before.namespace_id_limit + 1;
  edit.namespaces.push_back({before.namespace_id_limit, std::string(name), options});
  EC_TRY(apply_locked(edit));
  return before.namespace_id_limit;
}

Status VersionSet::change_retention(VersionEdit& edit, std::int64_t now_ns) {
  MutexLock lock(edit_mutex_);
  edit.expiry_mark_ns = now_ns;
  NamespaceId known = 0;
  for (const RetentionRule& each : edit.rule_changes) {
    if (each.namespace_id != known) EC_TRY(find_namespace(each.namespace_id).status());
    known = each.namespace_id;
  }
  const auto before = retention();
  const std::size_t scopes = before == nullptr ? 0 : before->scopes().size();
  const auto fits = [&] {
    RetentionRules next = before == nullptr ? RetentionRules() : *before;
    return next.change(edit.rule_changes, now_ns);
  };
  if (scopes + edit.rule_changes.size() > kRetentionRulesMax && !fits())
    return limit_reached("there are " + std::to_string(kRetentionRulesMax) +
                         " retention rules, the most");
  return apply_locked(edit);
}

Status VersionSet::give_up(std::vector<GivenUp> given_up) {
  MutexLock lock(edit_mutex_);
  VersionEdit edit;
  edit.given_up = std::move(given_up);
  std::erase_if(edit.given_up,
                [&](const GivenUp& each) { return !find_namespace(each.namespace_id).ok(); });
  return edit.given_up.empty() ? ok() : apply_locked(edit);
}

std::shared_ptr<const RetentionRules> VersionSet::retention() const {
  if (!has_retention_.load(std::memory_order_acquire)) return nullptr;
  MutexLock lock(mutex_);
  return state_.retention;
}

Result<NamespaceInfo> VersionSet::find_namespace(std::string_view name) const {
  MutexLock lock(mutex_);
  for (const NamespaceInfo& info : state_.namespaces) {
    if (info.name == name) return info;
  }
  return not_found("namespace " + std::string(name));
}

Result<NamespaceInfo> VersionSet::find_namespace(NamespaceId id) const {
  MutexLock lock(mutex_);
  const auto found = std::lower_bound(
      state_.namespaces.begin(), state_.namespaces.end(), id,
      [](const NamespaceInfo& info, NamespaceId wanted) { return info.id < wanted; });
  if (found != state_.namespaces.end() && found->id == id) return *found;
  return not_found("namespace " + std::to_string(id));
}

}  // namespace edgecase::engine
