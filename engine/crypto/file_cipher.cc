#include "crypto/file_cipher.h"

#include <cstring>

#include "base/coding.h"

namespace edgecase::engine {

namespace {

Bytes purpose_of(const FileRole& role) {
  Bytes purpose(role.purpose);
  append_fixed64(purpose, role.number);
  return purpose;
}

}  // namespace

PartCipher::PartCipher(const SecretKey& key, KeyId id)
    : id_(id), associated_(FileCipher::associated_of(id)), gcm_(key) {}

void PartCipher::seal(std::uint64_t place, ByteView plain, char* out) {
  gcm_.seal(FileCipher::nonce_of(place), associated_, plain, out);
}

AesGcm& PartCipher::begin_sealing(std::uint64_t place) {
  gcm_.begin_sealing(FileCipher::nonce_of(place), associated_);
  return gcm_;
}

AesGcm& PartCipher::begin_opening(std::uint64_t place) {
  gcm_.begin_opening(FileCipher::nonce_of(place), associated_);
  return gcm_;
}

Opened PartCipher::open(std::uint64_t place, ByteView sealed, char* out) {
  return gcm_.open(FileCipher::nonce_of(place), associated_, sealed, out) ? Opened::Yes
                                                                          : Opened::Changed;
}

FileCipher::FileCipher(KeyRing& ring, const KeySalt& salt, const FileRole& role)
    : ring_(ring),
      salt_(salt),
      purpose_(purpose_of(role)),
      database_key_(ring.derive_from_database(bytes_of(salt_), purpose_)) {}

GcmNonce FileCipher::nonce_of(std::uint64_t place) {
  GcmNonce nonce{};
  encode_fixed64(reinterpret_cast<char*>(nonce.data()), place);
  return nonce;
}

Bytes FileCipher::associated_of(KeyId key) {
  Bytes associated("edgecase 1");
  append_fixed64(associated, key);
  return associated;
}

std::optional<SecretKey> FileCipher::key_of(KeyId id) const {
  if (id == kDatabaseKey) return database_key_;
  // Asked each time: a key that was destroyed must not be used because somebody kept what came
  // of it.
  const std::optional<SecretKey> scope_key = ring_.find(id);
  if (!scope_key) return std::nullopt;
  {
    MutexLock lock(mutex_);
    if (kept_.empty()) kept_.resize(kKeptKeys);
    const Kept& kept = kept_[id % kKeptKeys];
    if (kept.id == id) return kept.key;
  }
  const SecretKey derived = derive_key(*scope_key, bytes_of(salt_), purpose_);
  MutexLock lock(mutex_);
  kept_[id % kKeptKeys] = {id, derived};
  return derived;
}

PartCipher FileCipher::sealer(KeyId key) const {
  const std::optional<SecretKey> found = key_of(key);
  return PartCipher(found ? *found : ring_.random().key(), key);
}

std::optional<PartCipher> FileCipher::opener(KeyId key) const {
  const std::optional<SecretKey> found = key_of(key);
  if (!found) return std::nullopt;
  return std::optional<PartCipher>(std::in_place, *found, key);
}

void FileCipher::seal(KeyId key, std::uint64_t place, ByteView plain, char* out) const {
  sealer(key).seal(place, plain, out);
}

Opened FileCipher::open(KeyId key, std::uint64_t place, ByteView sealed, char* out) const {
  std::optional<PartCipher> part = opener(key);
  return part ? part->open(place, sealed, out) : Opened::Destroyed;
}

Result<std::unique_ptr<FileCipher>> cipher_for(KeyRing* keys, const std::optional<KeySalt>& salt,
                                               const FileRole& role, const std::string& path) {
  if (salt && keys == nullptr) return without_key(path);
  if (!salt && keys != nullptr) return not_sealed(path);
  if (!salt) return std::unique_ptr<FileCipher>();
  return std::make_unique<FileCipher>(*keys, *salt, role);
}

std::unique_ptr<FileCipher> new_cipher(KeyRing* keys, const FileRole& role) {
  if (keys == nullptr) return nullptr;
  return std::make_unique<FileCipher>(*keys, keys->random().salt(), role);
}

std::optional<KeySalt> salt_of(const FileCipher* cipher) {
  if (cipher == nullptr) return std::nullopt;
  return cipher->salt();
}

Status explain(Opened opened, const std::string& path, std::uint64_t place, std::string_view what) {
  const std::string at = path + " at byte " + std::to_string(place) + ": " + std::string(what);
  if (opened == Opened::Destroyed) return not_found(at + " was erased: its key is destroyed");
  return corruption(at + " was changed by other hands, or is not where it belongs");
}

Status open_sealed(const FileCipher& cipher, std::uint64_t place, Bytes& bytes,
                   const std::string& path, std::string_view what) {
  const Opened opened = cipher.open(kDatabaseKey, place, bytes, bytes.data());
  if (opened != Opened::Yes) return explain(opened, path, place, what);
  bytes.resize(bytes.size() - kSealBytes);
  return ok();
}

Status judge_read_back(const Status& opened, const std::string& path) {
  if (opened.ok() || opened.code() == StatusCode::NotFound) return ok();
  if (opened.code() != StatusCode::Corruption) return opened;
  return opened.as(StatusCode::IoError).with_context(path + ": what was sealed does not open: ");
}

Status without_key(const std::string& path) {
  return not_allowed(path + " is encrypted, and no key was given");
}

Status not_sealed(const std::string& path) {
  return corruption_in(path, " is not encrypted, but the store is");
}

namespace {

// Apart from every purpose of the store's own files.
constexpr std::string_view kBesidePurpose = "edgecase beside ";

static_assert(Sealer::kOverheadBytes == kSaltBytes + kSealBytes);

}  // namespace

// It locks and is not moved: made where it is returned to.
FileCipher KeyRingSealer::cipher_for(std::string_view kind, const KeySalt& salt) {
  return FileCipher(ring_, salt, {std::string(kBesidePurpose).append(kind), 0});
}

Bytes KeyRingSealer::seal(std::string_view kind, std::uint64_t place, ByteView plain) {
  const KeySalt salt = ring_.random().salt();
  Bytes sealed(bytes_of(salt));
  sealed.resize(kOverheadBytes + plain.size());
  cipher_for(kind, salt).seal(kDatabaseKey, place, plain, sealed.data() + kSaltBytes);
  return sealed;
}

std::optional<Bytes> KeyRingSealer::open(std::string_view kind, std::uint64_t place,
                                         ByteView sealed) {
  if (sealed.size() < kOverheadBytes) return std::nullopt;
  KeySalt salt;
  std::memcpy(salt.data(), sealed.data(), salt.size());
  const ByteView rest = sealed.substr(kSaltBytes);
  Bytes plain(rest.size() - kSealBytes, '\0');
  const Opened opened = cipher_for(kind, salt).open(kDatabaseKey, place, rest, plain.data());
  if (opened != Opened::Yes) return std::nullopt;
  return plain;
}

}  // namespace edgecase::engine
