#include "crypto/key_ring.h"

#include <nettle/hmac.h>

#include <algorithm>
#include <cstring>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/options.h"

namespace edgecase::engine {
namespace {

const std::uint8_t* as_input(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// Leaves nothing of its key behind.
class HmacSha256 {
 public:
  explicit HmacSha256(ByteView key) { set_key(key); }
  ~HmacSha256() { ::explicit_bzero(&context_, sizeof context_); }
  HmacSha256(const HmacSha256&) = delete;
  HmacSha256& operator=(const HmacSha256&) = delete;

  void set_key(ByteView key) { hmac_sha256_set_key(&context_, key.size(), as_input(key)); }
  SecretKey of(ByteView bytes) {
    hmac_sha256_update(&context_, bytes.size(), as_input(bytes));
    SecretKey sum;
    static_assert(sizeof sum == SHA256_DIGEST_SIZE);
    hmac_sha256_digest(&context_, sum.size(), sum.data());
    return sum;
  }

 private:
  hmac_sha256_ctx context_;
};

}  // namespace

// One block is all that a key takes: the loop of the standard is run once.
SecretKey derive_key(const SecretKey& key, ByteView salt, std::string_view purpose) {
  HmacSha256 hmac(salt);
  const SecretKey extracted = hmac.of(bytes_of(key));
  hmac.set_key(bytes_of(extracted));
  Bytes block(purpose);
  block.push_back('\x01');
  return hmac.of(block);
}

SecretRandom::SecretRandom(Random& source) {
  for (std::size_t at = 0; at < seed_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t number = source.next();
    std::memcpy(seed_.data() + at, &number, sizeof number);
  }
}

SecretKey SecretRandom::next() {
  char counter[8];
  {
    MutexLock lock(mutex_);
    encode_fixed64(counter, counter_++);
  }
  return HmacSha256(bytes_of(seed_)).of({counter, sizeof counter});
}

SecretKey SecretRandom::key() {
  return next();
}

KeySalt SecretRandom::salt() {
  const SecretKey number = next();
  KeySalt salt;
  std::copy_n(number.begin(), salt.size(), salt.begin());
  return salt;
}

std::uint64_t SecretRandom::number() {
  const SecretKey number = next();
  return decode_fixed64(reinterpret_cast<const char*>(number.data()));
}

namespace {

constexpr char kMagic[] = {'E', 'C', 'K', 'E', 'Y', 'S', '\r', '\n'};
constexpr std::size_t kSizeAt = 12;
constexpr std::size_t kStoreIdAt = 16;
constexpr std::size_t kGenerationAt = 32;
constexpr std::size_t kFingerprintAt = 40;
constexpr std::size_t kNonceAt = 48;
constexpr std::size_t kWrappedAt = 60;
constexpr std::size_t kWrappedBytes = kSecretKeyBytes + kGcmTagBytes;
constexpr std::size_t kSaltAt = kWrappedAt + kWrappedBytes;
constexpr std::size_t kEntriesAt = kSaltAt + kSaltBytes;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kCopyMinBytes = kEntriesAt + kGcmTagBytes + kChecksumBytes;
constexpr std::size_t kCopyAlignment = 4096;
constexpr std::size_t kScopeMaxBytes = kNamespacePrefixBytes + kKeySizeMaxBytes;
constexpr std::string_view kWrappingPurpose = "edgecase wrapping key";
constexpr std::string_view kFingerprintPurpose = "edgecase which master key";
constexpr std::string_view kEntriesPurpose = "edgecase key ring";

GcmNonce nonce_in(ByteView bytes) {
  GcmNonce nonce{};
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

// What the seal of the database key also vouches for, and that of the entries.
ByteView store_id_in(ByteView copy) {
  return copy.substr(kStoreIdAt, kGenerationAt - kStoreIdAt);
}
ByteView head_in(ByteView copy) {
  return copy.substr(0, kFingerprintAt);
}

}  // namespace

void append_key_entry(Bytes& entries, const KeyEntry& entry) {
  append_length_prefixed(entries, entry.scope);
  append_fixed64(entries, entry.sequence);
  append_fixed64(entries, entry.id);
  entries.append(entry.key);
}

bool take_key_entries(ByteView entries, const std::function<bool(const KeyEntry&)>& take) {
  std::uint64_t count = 0;
  if (!take_varint64(entries, count) || count > entries.size()) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    KeyEntry entry;
    ByteView numbers;
    if (!take_length_prefixed(entries, kScopeMaxBytes, entry.scope) ||
        entry.scope.size() < kNamespacePrefixBytes || !take_bytes(entries, 16, numbers) ||
        !take_bytes(entries, kSecretKeyBytes, entry.key))
      return false;
    entry.sequence = decode_fixed64(numbers.data());
    entry.id = decode_fixed64(numbers.data() + 8);
    if (entry.id == kDatabaseKey || !take(entry)) return false;
  }
  return entries.empty();
}

std::array<ByteView, 2> key_ring_halves(ByteView file) {
  return {file.substr(0, file.size() / 2), file.substr(file.size() / 2)};
}

std::optional<KeyRingCopy> KeyRingCopy::find(ByteView half) {
  if (half.size() < kCopyMinBytes) return std::nullopt;
  if (std::memcmp(half.data(), kMagic, sizeof kMagic) != 0) return std::nullopt;
  const std::uint32_t size = decode_fixed32(half.data() + kSizeAt);
  if (size < kCopyMinBytes || size > half.size()) return std::nullopt;
  const ByteView copy = half.substr(0, size);
  const std::size_t checksum_at = size - kChecksumBytes;
  if (decode_fixed32(copy.data() + checksum_at) != crc32c(copy.substr(0, checksum_at)))
    return std::nullopt;
  return KeyRingCopy(copy);
}

std::uint32_t KeyRingCopy::version() const {
  return decode_fixed32(bytes_.data() + sizeof kMagic);
}

StoreId KeyRingCopy::store_id() const {
  StoreId id;
  std::memcpy(id.data(), bytes_.data() + kStoreIdAt, id.size());
  return id;
}

std::uint64_t KeyRingCopy::generation() const {
  return decode_fixed64(bytes_.data() + kGenerationAt);
}

ByteView KeyRingCopy::master_fingerprint() const {
  return bytes_.substr(kFingerprintAt, kMasterFingerprintBytes);
}

bool KeyRingCopy::unwrap(const SecretKey& master, SecretKey& database_key) const {
  return AesGcm(derive_key(master, {}, kWrappingPurpose))
      .open(nonce_in(bytes_.substr(kNonceAt)), store_id_in(bytes_),
            bytes_.substr(kWrappedAt, kWrappedBytes), reinterpret_cast<char*>(database_key.data()));
}

std::optional<Bytes> KeyRingCopy::open_entries(const SecretKey& database_key) const {
  const ByteView sealed = bytes_.substr(kEntriesAt, bytes_.size() - kEntriesAt - kChecksumBytes);
  std::optional<Bytes> entries(std::in_place, sealed.size() - kGcmTagBytes, '\0');
  AesGcm gcm(derive_key(database_key, bytes_.substr(kSaltAt, kSaltBytes), kEntriesPurpose));
  if (gcm.open(GcmNonce{}, head_in(bytes_), sealed, entries->data())) return entries;
  { const WipeAtEnd wipe(*entries); }
  return std::nullopt;
}

Bytes fingerprint_of(const SecretKey& master) {
  return Bytes(
      bytes_of(derive_key(master, {}, kFingerprintPurpose)).substr(0, kMasterFingerprintBytes));
}

Bytes encode_key_ring_file(const KeyRingHead& head, const SecretKey& master,
                           const SecretKey& database_key, ByteView entries, SecretRandom& random) {
  Bytes copy(kMagic, sizeof kMagic);
  append_fixed32(copy, kKeyRingVersion);
  append_fixed32(copy, static_cast<std::uint32_t>(kCopyMinBytes + entries.size()));
  copy.append(reinterpret_cast<const char*>(head.store_id.data()), head.store_id.size());
  append_fixed64(copy, head.generation);
  copy.append(fingerprint_of(master));
  const KeySalt nonce = random.salt();
  copy.append(bytes_of(nonce).substr(0, kGcmNonceBytes));
  copy.resize(kEntriesAt);
  AesGcm(derive_key(master, {}, kWrappingPurpose))
      .seal(nonce_in(ByteView(copy).substr(kNonceAt)), store_id_in(copy), bytes_of(database_key),
            copy.data() + kWrappedAt);
  const KeySalt salt = random.salt();
  std::memcpy(copy.data() + kSaltAt, salt.data(), salt.size());
  copy.resize(kEntriesAt + entries.size() + kGcmTagBytes);
  AesGcm(derive_key(database_key, bytes_of(salt), kEntriesPurpose))
      .seal(GcmNonce{}, head_in(copy), entries, copy.data() + kEntriesAt);
  append_fixed32(copy, crc32c(copy));
  const std::size_t half = (copy.size() + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
  Bytes file(2 * half, '\0');
  file.replace(0, copy.size(), copy);
  file.replace(half, copy.size(), copy);
  return file;
}

}  // namespace edgecase::engine
