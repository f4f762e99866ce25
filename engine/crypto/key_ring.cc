#include "crypto/key_ring.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/coding.h"
#include "file/file_names.h"
#include "file/file_remover.h"

namespace edgecase::engine {
namespace {

// The first key behind all that begin with `prefix`; empty: there is none.
Bytes end_of_prefix(ByteView prefix) {
  Bytes end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(end.back() + 1);
  return end;
}

bool lies_within(ByteView scope, ByteView lower, ByteView upper) {
  if (scope < lower) return false;
  const Bytes end = end_of_prefix(scope);
  return !end.empty() && ByteView(end) <= upper;
}

// Numbers of the files there are, the newest first.
Result<std::vector<std::uint64_t>> find_generations(FileSystem& file_system,
                                                    const std::string& directory) {
  std::vector<std::uint64_t> numbers;
  auto entries = file_system.list_directory(directory);
  if (entries.status().code() == StatusCode::NotFound) return numbers;
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    const auto parsed = parse_file_name(entry.name);
    if (parsed && parsed->type == FileType::KeyRing) numbers.push_back(parsed->number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

}  // namespace

KeyRing::KeyRing(FileSystem& file_system, std::string metadata_directory, const StoreId& store_id,
                 const SecretKey& master, Random& random)
    : file_system_(file_system),
      metadata_directory_(std::move(metadata_directory)),
      store_id_(store_id),
      master_(master),
      random_(random) {
  static_cast<void>(lock_in_memory(this, sizeof *this));
}

KeyRing::~KeyRing() = default;

Result<bool> KeyRing::exists(FileSystem& file_system, const std::string& metadata_directory) {
  EC_ASSIGN_OR_RETURN(const auto generations, find_generations(file_system, metadata_directory));
  return !generations.empty();
}

Result<std::unique_ptr<KeyRing>> KeyRing::create(FileSystem& file_system,
                                                 const std::string& metadata_directory,
                                                 const StoreId& store_id, const MasterKeys& master,
                                                 Random& random) {
  EC_TRY(test_aes_gcm());
  std::unique_ptr<KeyRing> ring(
      new KeyRing(file_system, metadata_directory, store_id, master.current, random));
  EC_ASSIGN_OR_RETURN(const auto generations, find_generations(file_system, metadata_directory));
  ring->database_key_ = ring->random_.key();
  MutexLock lock(ring->write_mutex_);
  ring->generation_ = generations.empty() ? 0 : generations.front();
  EC_TRY(ring->write());
  lock.unlock();
  return ring;
}

Result<std::unique_ptr<KeyRing>> KeyRing::open(FileSystem& file_system,
                                               const std::string& metadata_directory,
                                               const StoreId& store_id, const MasterKeys& master,
                                               Random& random) {
  EC_TRY(test_aes_gcm());
  std::unique_ptr<KeyRing> ring(
      new KeyRing(file_system, metadata_directory, store_id, master.current, random));
  EC_ASSIGN_OR_RETURN(const auto generations, find_generations(file_system, metadata_directory));
  Status status = corruption(metadata_directory + ": there is no key ring");
  for (const std::uint64_t generation : generations) {
    status = ring->read(generation, master);
    // One that is damaged was not finished if there is an older one: that goes when it is.
    if (status.code() != StatusCode::Corruption) break;
  }
  EC_TRY(status);
  MutexLock lock(ring->write_mutex_);
  ring->generation_ = generations.front();
  lock.unlock();
  return ring;
}

Result<std::unique_ptr<KeyRing>> KeyRing::open_if_encrypted(FileSystem& file_system,
                                                            const Options& options,
                                                            const StoreId& store_id,
                                                            Random& random) {
  const std::string& directory = options.metadata_directory;
  EC_ASSIGN_OR_RETURN(const bool encrypted, exists(file_system, directory));
  if (encrypted && options.encryption)
    return open(file_system, directory, store_id, *options.encryption, random);
  if (encrypted) return not_allowed(directory + ": the store is encrypted, and no key was given");
  if (options.encryption)
    return not_allowed(directory +
                       ": the store was made without encryption, or its key ring (KEYS-<n>) is "
                       "lost, and a key was given; a key is set before the first start (export, "
                       "start anew, import)");
  return std::unique_ptr<KeyRing>();
}

Status KeyRing::read(std::uint64_t generation, const MasterKeys& master) {
  const std::string path = key_ring_path(metadata_directory_, generation);
  EC_ASSIGN_OR_RETURN(const Bytes file, read_whole_file(file_system_, path, kKeyRingFileMaxBytes));
  Status status = corruption("the key ring is damaged, in both of its copies");
  for (const ByteView half : key_ring_halves(file)) {
    const auto copy = KeyRingCopy::find(half);
    if (!copy || copy->generation() != generation) continue;
    status = read_copy(*copy, master);
    if (status.code() != StatusCode::Corruption) break;
  }
  return status.in_file(path);
}

Status KeyRing::read_copy(const KeyRingCopy& copy, const MasterKeys& master) {
  if (copy.version() != kKeyRingVersion)
    return unsupported("written by a newer version of EdgeCase (format " +
                       std::to_string(copy.version()) + ")");
  if (copy.store_id() != store_id_) return unavailable("the key ring belongs to another store");
  const ByteView fingerprint = copy.master_fingerprint();
  const SecretKey* fits = nullptr;
  if (fingerprint == fingerprint_of(master.current)) fits = &master.current;
  if (fits == nullptr && master.previous && fingerprint == fingerprint_of(*master.previous))
    fits = &*master.previous;
  is_outdated_ = fits != nullptr && fits != &master.current;
  if (fits == nullptr)
    return not_allowed("the store was encrypted with another key than the one given");
  if (!copy.unwrap(*fits, database_key_))
    return corruption("the store's key was changed by other hands");
  std::optional<Bytes> entries = copy.open_entries(database_key_);
  if (!entries) return corruption("the key ring was changed by other hands");
  const WipeAtEnd wipe(*entries);
  if (!take_entries(*entries)) return corruption("the key ring is malformed");
  return ok();
}

bool KeyRing::take_entries(ByteView entries) {
  MutexLock lock(mutex_);
  scopes_.clear();
  by_id_.clear();
  // The analysis of locks does not look into a closure.
  std::vector<std::pair<Place, Entry>> taken;
  const bool whole = take_key_entries(entries, [&](const KeyEntry& each) {
    Entry entry;
    entry.id = each.id;
    std::memcpy(entry.key.data(), each.key.data(), entry.key.size());
    taken.push_back({{Bytes(each.scope), each.sequence}, entry});
    return true;
  });
  if (!whole) return false;
  // A namespace with a key, beside others for scopes in it. The longer ones follow it.
  std::set<NamespaceId> whole_namespaces;
  for (auto& [place, entry] : taken) {
    if (place.first.size() == kNamespacePrefixBytes) {
      whole_namespaces.insert(namespace_of(place.first));
    } else if (whole_namespaces.contains(namespace_of(place.first))) {
      shares_keys_ = true;
    }
    if (by_id_.contains(entry.id) || scopes_.contains(place)) return false;
    insert(std::move(place), entry);
  }
  return true;
}

void KeyRing::insert(Place place, const Entry& entry) {
  const auto [at, fresh] = scopes_.insert_or_assign(std::move(place), entry);
  by_id_.insert_or_assign(entry.id, &at->second);
}

KeyId KeyRing::unused_id() {
  for (;;) {
    const KeyId id = random_.number();
    if (id != kDatabaseKey && !by_id_.contains(id)) return id;
  }
}

KeyId KeyRing::add(ByteView scope, SequenceNumber newest) {
  const Entry entry{unused_id(), random_.key()};
  insert({Bytes(scope), newest}, entry);
  ++changes_;
  return entry.id;
}

// The newest key of a scope that was made for an item in (after, upto].
std::optional<KeyId> KeyRing::find_between(ByteView scope, SequenceNumber after,
                                           SequenceNumber upto) {
  auto at = scopes_.upper_bound({Bytes(scope), upto});
  if (at == scopes_.begin()) return std::nullopt;
  --at;
  if (at->first.first != scope || at->first.second <= after) return std::nullopt;
  return at->second.id;
}

SequenceNumber KeyRing::retired_upto(ByteView scope) const {
  SequenceNumber upto = 0;
  for (const Retired& each : retired_)
    if (each.sequence > upto && lies_within(scope, each.lower, each.upper)) upto = each.sequence;
  return upto;
}

KeyId KeyRing::key_for(ByteView full_key, std::size_t scope_bytes, SequenceNumber newest) {
  ByteView scope = full_key.substr(0, kNamespacePrefixBytes + scope_bytes);
  MutexLock lock(mutex_);
  const SequenceNumber retired = retired_upto(scope);
  if (newest <= retired) {
    // Erased, and about to be removed: whoever writes it did not know. Nobody reads it.
    return find_between(scope, 0, retired).value_or(unused_id());
  }
  if (const auto id = find_between(scope, retired, UINT64_MAX)) return *id;
  if (scopes_.size() >= kScopeKeysMax && scope.size() > kNamespacePrefixBytes) {
    scope = scope.substr(0, kNamespacePrefixBytes);
    shares_keys_ = true;
    if (const auto id = find_between(scope, retired_upto(scope), UINT64_MAX)) return *id;
  }
  return add(scope, newest);
}

std::optional<SecretKey> KeyRing::find(KeyId id) const {
  MutexLock lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->key;
}

std::size_t KeyRing::size() const {
  MutexLock lock(mutex_);
  return scopes_.size();
}

bool KeyRing::shares_keys() const {
  MutexLock lock(mutex_);
  return shares_keys_;
}

std::uint64_t KeyRing::memory_bytes() const {
  MutexLock lock(mutex_);
  return scopes_.size() * kScopeKeyMemoryBytes;
}

std::string KeyRing::path() const {
  MutexLock writing(write_mutex_);
  return key_ring_path(metadata_directory_, generation_);
}

void KeyRing::retire(ByteView lower, ByteView upper, SequenceNumber sequence) {
  MutexLock lock(mutex_);
  retired_.push_back({Bytes(lower), Bytes(upper), sequence});
}

void KeyRing::forget(SequenceNumber through) {
  MutexLock lock(mutex_);
  std::erase_if(retired_, [&](const Retired& each) { return each.sequence <= through; });
}

std::uint64_t KeyRing::erase_keys(ByteView lower, ByteView upper, SequenceNumber through) {
  std::uint64_t found = 0;
  for (auto at = scopes_.lower_bound({Bytes(lower), 0});
       at != scopes_.end() && ByteView(at->first.first) < upper;) {
    const bool goes = at->first.second <= through && lies_within(at->first.first, lower, upper);
    if (goes) {
      by_id_.erase(at->second.id);
      ++found;
      ++changes_;
    }
    at = goes ? scopes_.erase(at) : std::next(at);
  }
  return found;
}

Result<std::uint64_t> KeyRing::destroy_retired(SequenceNumber through) {
  std::uint64_t found = 0;
  {
    MutexLock lock(mutex_);
    for (const Retired& each : retired_)
      if (each.sequence <= through) found += erase_keys(each.lower, each.upper, each.sequence);
  }
  EC_TRY(persist());
  return found;
}

void KeyRing::drop_namespace(NamespaceId id) {
  MutexLock lock(mutex_);
  dropped_.push_back(id);
}

Status KeyRing::destroy_dropped() {
  {
    MutexLock lock(mutex_);
    if (dropped_.empty()) return ok();
    for (const NamespaceId id : dropped_) {
      const Bytes prefix = make_full_key(id, {});
      erase_keys(prefix, end_of_prefix(prefix), UINT64_MAX);
    }
    dropped_.clear();
  }
  return persist();
}

Status KeyRing::persist() {
  MutexLock writing(write_mutex_);
  {
    MutexLock lock(mutex_);
    if (changes_ == saved_changes_ && !others_left_) return ok();
  }
  return write();
}

Status KeyRing::write_again(const std::function<bool(NamespaceId)>& has_namespace) {
  MutexLock writing(write_mutex_);
  {
    MutexLock lock(mutex_);
    for (auto at = scopes_.begin(); at != scopes_.end();) {
      const bool stays = has_namespace(namespace_of(at->first.first));
      if (!stays) by_id_.erase(at->second.id);
      at = stays ? std::next(at) : scopes_.erase(at);
    }
    // Should it fail, what was read is not taken for saved.
    ++changes_;
  }
  return write();
}

Bytes KeyRing::encode() {
  std::size_t most = kVarint64MaxBytes;
  for (const auto& [place, entry] : scopes_) most += place.first.size() + kKeyEntryOverheadMaxBytes;
  Bytes entries;
  entries.reserve(most);  // what it outgrew would not be wiped
  append_varint64(entries, scopes_.size());
  for (const auto& [place, entry] : scopes_)
    append_key_entry(entries, {place.first, place.second, entry.id, bytes_of(entry.key)});
  return entries;
}

Status KeyRing::write() {
  Bytes entries;
  const WipeAtEnd wipe(entries);
  std::uint64_t changes = 0;
  {
    MutexLock lock(mutex_);
    entries = encode();
    changes = changes_;
  }
  const std::uint64_t generation = ++generation_;
  const Bytes file =
      encode_key_ring_file({store_id_, generation}, master_, database_key_, entries, random_);
  const std::string path = key_ring_path(metadata_directory_, generation);
  if (const Status removed = file_system_.remove_file(path);
      !removed.ok() && removed.code() != StatusCode::NotFound)
    return removed;
  {
    EC_ASSIGN_OR_RETURN(const auto written, file_system_.create_file(path));
    EC_TRY(written->append(file));
    EC_TRY(written->sync());
  }
  EC_TRY(file_system_.sync_directory(metadata_directory_));
  EC_ASSIGN_OR_RETURN(const Bytes read, read_whole_file(file_system_, path, kKeyRingFileMaxBytes));
  if (read != file) return io_error(path + ": reads otherwise than it was written");
  const Status removed = remove_others(generation);
  others_left_ = !removed.ok();
  EC_TRY(removed);
  MutexLock lock(mutex_);
  saved_changes_ = changes;
  return ok();
}

Status KeyRing::remove_others(std::uint64_t kept) {
  EC_ASSIGN_OR_RETURN(const auto generations, find_generations(file_system_, metadata_directory_));
  Status first;
  for (const std::uint64_t generation : generations) {
    if (generation == kept) continue;
    const std::string path = key_ring_path(metadata_directory_, generation);
    Status removed = overwrite_file(file_system_, path).status();
    if (removed.ok()) removed = file_system_.remove_file(path);
    if (first.ok()) first = std::move(removed);
  }
  return first;
}

Result<KeyRingLook> look_at_key_ring(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const Bytes file, read_whole_file(file_system, path, kKeyRingFileMaxBytes));
  KeyRingLook look;
  look.bytes = file.size();
  for (const ByteView half : key_ring_halves(file)) {
    const auto copy = KeyRingCopy::find(half);
    if (!copy) continue;
    ++look.whole_copies;
    look.store_id = copy->store_id();
    look.generation = copy->generation();
    look.master_key.clear();
    for (const char byte : copy->master_fingerprint()) {
      look.master_key += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
      look.master_key += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
    }
  }
  if (look.whole_copies == 0) return corruption_in(path, ": no copy of the key ring is whole");
  return look;
}

}  // namespace edgecase::engine
