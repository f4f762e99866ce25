// Bytes of KEYS-<n>, version 1, little-endian. The file is the same copy twice, each padded with
// zeros to half of the file.
//
//   copy    offset  size  field
//                0     8  magic "ECKEYS\r\n"
//                8     4  format version, 1
//               12     4  bytes of the copy, its checksum included
//               16    16  store id
//               32     8  generation, the number in the file's name
//               40     8  which master key: 8 bytes derived from it
//               48    12  nonce, random
//               60    48  the database key, sealed under the master key with that nonce
//              108    24  salt: the entries' key is derived from the database key with it
//              132     n  entries, sealed; then their tag (16)
//          132 + n     4  crc32c of all before it
//
//   entries  varint: how many; of each:
//            length-prefixed: scope
//            8 bytes: the sequence of the item it was made for; 8 bytes: key id; 32 bytes: the key
#include "crypto/key_ring.h"

#include <algorithm>
#include <cstring>

#include "base/coding.h"
#include "base/crc32c.h"
#include "crypto/aes_gcm.h"
#include "file/file_names.h"
#include "file/file_remover.h"
#include "file/whole_file.h"

namespace edgecase::engine {
namespace {

constexpr char kMagic[] = {'E', 'C', 'K', 'E', 'Y', 'S', '\r', '\n'};
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kSizeAt = 12;
constexpr std::size_t kStoreIdAt = 16;
constexpr std::size_t kGenerationAt = 32;
constexpr std::size_t kFingerprintAt = 40;
constexpr std::size_t kFingerprintBytes = 8;
constexpr std::size_t kNonceAt = 48;
constexpr std::size_t kWrappedAt = 60;
constexpr std::size_t kWrappedBytes = kSecretKeyBytes + kGcmTagBytes;
constexpr std::size_t kSaltAt = kWrappedAt + kWrappedBytes;
constexpr std::size_t kEntriesAt = kSaltAt + kSaltBytes;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kCopyAlignment = 4096;
constexpr std::size_t kFileMaxBytes = 64u << 20;
constexpr std::size_t kScopeMaxBytes = kNamespacePrefixBytes + kKeySizeMaxBytes;
constexpr std::string_view kWrappingPurpose = "edgecase wrapping key";
constexpr std::string_view kFingerprintPurpose = "edgecase which master key";
constexpr std::string_view kEntriesPurpose = "edgecase key ring";

Bytes fingerprint_of(const SecretKey& master) {
  return Bytes(bytes_of(derive_key(master, {}, kFingerprintPurpose)).substr(0, kFingerprintBytes));
}

GcmNonce nonce_in(ByteView bytes) {
  GcmNonce nonce{};
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

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

// Whole by its checksum. Nothing: not written to its end, or damaged.
std::optional<ByteView> whole_copy(ByteView half) {
  if (half.size() < kEntriesAt + kGcmTagBytes + kChecksumBytes) return std::nullopt;
  if (std::memcmp(half.data(), kMagic, sizeof kMagic) != 0) return std::nullopt;
  const std::uint32_t size = decode_fixed32(half.data() + kSizeAt);
  if (size < kEntriesAt + kGcmTagBytes + kChecksumBytes || size > half.size()) return std::nullopt;
  const ByteView copy = half.substr(0, size);
  const std::size_t checksum_at = size - kChecksumBytes;
  if (decode_fixed32(copy.data() + checksum_at) != crc32c(copy.substr(0, checksum_at)))
    return std::nullopt;
  return copy;
}

}  // namespace

KeyRing::KeyRing(FileSystem& file_system, std::string metadata_directory, const StoreId& store_id,
                 const SecretKey& master, Random& random)
    : file_system_(file_system),
      metadata_directory_(std::move(metadata_directory)),
      store_id_(store_id),
      master_(master),
      random_(random) {}

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
                       ": the store was made without encryption, and a key was given; a key is set "
                       "before the first start (export, start anew, import)");
  return std::unique_ptr<KeyRing>();
}

Status KeyRing::read(std::uint64_t generation, const MasterKeys& master) {
  const std::string path = key_ring_path(metadata_directory_, generation);
  EC_ASSIGN_OR_RETURN(const Bytes file, read_whole_file(file_system_, path, kFileMaxBytes));
  const auto with_path = [&](const Status& status) {
    return status.ok() ? status : Status(status.code(), path + ": " + status.message());
  };
  const ByteView view = file;
  Status status = corruption("the key ring is damaged, in both of its copies");
  for (const ByteView half : {view.substr(0, view.size() / 2), view.substr(view.size() / 2)}) {
    const auto copy = whole_copy(half);
    if (!copy) continue;
    if (decode_fixed64(copy->data() + kGenerationAt) != generation) continue;
    status = read_copy(*copy, master);
    if (status.code() != StatusCode::Corruption) break;
  }
  return with_path(status);
}

Status KeyRing::read_copy(ByteView copy, const MasterKeys& master) {
  const std::uint32_t version = decode_fixed32(copy.data() + sizeof kMagic);
  if (version != kFormatVersion)
    return unsupported("written by a newer version of EdgeCase (format " + std::to_string(version) +
                       ")");
  if (std::memcmp(copy.data() + kStoreIdAt, store_id_.data(), store_id_.size()) != 0)
    return unavailable("the key ring belongs to another store");
  EC_TRY(unwrap(copy, master));
  const SecretKey key = derive_from_database(copy.substr(kSaltAt, kSaltBytes), kEntriesPurpose);
  const ByteView sealed = copy.substr(kEntriesAt, copy.size() - kEntriesAt - kChecksumBytes);
  Bytes entries(sealed.size() - kGcmTagBytes, '\0');
  const WipeAtEnd wipe(entries);
  if (!AesGcm(key).open(GcmNonce{}, copy.substr(0, kFingerprintAt), sealed, entries.data()))
    return corruption("the key ring was changed by other hands");
  if (!take_entries(entries)) return corruption("the key ring is malformed");
  return ok();
}

Status KeyRing::unwrap(ByteView copy, const MasterKeys& master) {
  const ByteView fingerprint = copy.substr(kFingerprintAt, kFingerprintBytes);
  const SecretKey* fits = nullptr;
  if (fingerprint == fingerprint_of(master.current)) fits = &master.current;
  if (fits == nullptr && master.previous && fingerprint == fingerprint_of(*master.previous))
    fits = &*master.previous;
  is_outdated_ = fits != nullptr && fits != &master.current;
  if (fits == nullptr)
    return not_allowed("the store was encrypted with another key than the one given");
  const SecretKey wrapping = derive_key(*fits, {}, kWrappingPurpose);
  char* const out = reinterpret_cast<char*>(database_key_.data());
  if (!AesGcm(wrapping).open(nonce_in(copy.substr(kNonceAt)), copy.substr(kStoreIdAt, 16),
                             copy.substr(kWrappedAt, kWrappedBytes), out))
    return corruption("the store's key was changed by other hands");
  return ok();
}

bool KeyRing::take_entries(ByteView entries) {
  MutexLock lock(mutex_);
  scopes_.clear();
  by_id_.clear();
  std::uint64_t count = 0;
  if (!take_varint64(entries, count) || count > entries.size()) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    ByteView scope;
    ByteView numbers;
    ByteView key;
    if (!take_length_prefixed(entries, kScopeMaxBytes, scope) ||
        scope.size() < kNamespacePrefixBytes || !take_bytes(entries, 16, numbers) ||
        !take_bytes(entries, kSecretKeyBytes, key))
      return false;
    Entry entry;
    entry.id = decode_fixed64(numbers.data() + 8);
    std::memcpy(entry.key.data(), key.data(), entry.key.size());
    if (entry.id == kDatabaseKey || by_id_.contains(entry.id)) return false;
    insert({Bytes(scope), decode_fixed64(numbers.data())}, entry);
  }
  return entries.empty();
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
  }
  return write();
}

Bytes KeyRing::encode() {
  std::size_t most = kVarint64MaxBytes;
  for (const auto& [place, entry] : scopes_)
    most += kVarint64MaxBytes + place.first.size() + 16 + kSecretKeyBytes;
  Bytes entries;
  entries.reserve(most);  // what it outgrew would not be wiped
  append_varint64(entries, scopes_.size());
  for (const auto& [place, entry] : scopes_) {
    append_length_prefixed(entries, place.first);
    append_fixed64(entries, place.second);
    append_fixed64(entries, entry.id);
    entries.append(bytes_of(entry.key));
  }
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
  Bytes copy(kMagic, sizeof kMagic);
  append_fixed32(copy, kFormatVersion);
  append_fixed32(copy, static_cast<std::uint32_t>(kEntriesAt + entries.size() + kGcmTagBytes +
                                                  kChecksumBytes));
  copy.append(reinterpret_cast<const char*>(store_id_.data()), store_id_.size());
  append_fixed64(copy, generation);
  copy.append(fingerprint_of(master_));
  const KeySalt random = random_.salt();
  copy.append(bytes_of(random).substr(0, kGcmNonceBytes));
  copy.resize(kEntriesAt);
  AesGcm(derive_key(master_, {}, kWrappingPurpose))
      .seal(nonce_in(ByteView(copy).substr(kNonceAt)), ByteView(copy).substr(kStoreIdAt, 16),
            bytes_of(database_key_), copy.data() + kWrappedAt);
  const KeySalt salt = random_.salt();
  std::memcpy(copy.data() + kSaltAt, salt.data(), salt.size());
  copy.resize(kEntriesAt + entries.size() + kGcmTagBytes);
  AesGcm(derive_from_database(bytes_of(salt), kEntriesPurpose))
      .seal(GcmNonce{}, ByteView(copy).substr(0, kFingerprintAt), entries,
            copy.data() + kEntriesAt);
  append_fixed32(copy, crc32c(copy));
  const std::size_t half = (copy.size() + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
  Bytes file(2 * half, '\0');
  file.replace(0, copy.size(), copy);
  file.replace(half, copy.size(), copy);

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
  EC_ASSIGN_OR_RETURN(const Bytes read, read_whole_file(file_system_, path, kFileMaxBytes));
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
  EC_ASSIGN_OR_RETURN(const Bytes file, read_whole_file(file_system, path, kFileMaxBytes));
  const ByteView view = file;
  KeyRingLook look;
  look.bytes = file.size();
  for (const ByteView half : {view.substr(0, view.size() / 2), view.substr(view.size() / 2)}) {
    const auto copy = whole_copy(half);
    if (!copy) continue;
    ++look.whole_copies;
    std::memcpy(look.store_id.data(), copy->data() + kStoreIdAt, look.store_id.size());
    look.generation = decode_fixed64(copy->data() + kGenerationAt);
    look.master_key.clear();
    for (const char byte : copy->substr(kFingerprintAt, kFingerprintBytes)) {
      look.master_key += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
      look.master_key += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
    }
  }
  if (look.whole_copies == 0) return corruption(path + ": no copy of the key ring is whole");
  return look;
}

}  // namespace edgecase::engine
