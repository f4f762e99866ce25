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
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/entry.h"
#include "crypto/aes_gcm.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"

namespace edgecase::engine {

// Keys from keys, by HKDF with SHA-256 (RFC 5869), and random numbers that are good for keys.

inline constexpr std::size_t kSaltBytes = 24;
using KeySalt = std::array<std::uint8_t, kSaltBytes>;

inline ByteView bytes_of(const KeySalt& salt) {
  return {reinterpret_cast<const char*>(salt.data()), salt.size()};
}

// `purpose` keeps apart what is derived from one key for different uses.
SecretKey derive_key(const SecretKey& key, ByteView salt, std::string_view purpose);

// As unpredictable as the 256 bits it takes from `source` when it is made: HMAC-SHA-256 of a
// counter under them. Thread-safe, which `source` need not be.
class SecretRandom {
 public:
  explicit SecretRandom(Random& source);

  SecretKey key();
  KeySalt salt();
  std::uint64_t number();

 private:
  SecretKey next();

  SecretKey seed_{};
  Mutex mutex_;
  std::uint64_t counter_ EC_GUARDED_BY(mutex_) = 0;
};

inline constexpr std::uint32_t kKeyRingVersion = 1;
inline constexpr std::size_t kKeyRingFileMaxBytes = 64u << 20;
inline constexpr std::size_t kMasterFingerprintBytes = 8;

// 0: the database key.
using KeyId = std::uint64_t;
inline constexpr KeyId kDatabaseKey = 0;

// An entry; views what it was taken from.
struct KeyEntry {
  ByteView scope;
  SequenceNumber sequence = 0;
  KeyId id = 0;
  ByteView key;  // kSecretKeyBytes
};

void append_key_entry(Bytes& entries, const KeyEntry& entry);
inline constexpr std::size_t kKeyEntryOverheadMaxBytes = 10 + 8 + 8 + kSecretKeyBytes;

// Hands each entry to `take` until one is refused. False: that, or malformed. Behind their number.
[[nodiscard]] bool take_key_entries(ByteView entries,
                                    const std::function<bool(const KeyEntry&)>& take);

// The halves of a file: each should hold a copy.
std::array<ByteView, 2> key_ring_halves(ByteView file);

// A copy that is whole by its checksum. Views the file.
class KeyRingCopy {
 public:
  // Nothing: not written to its end, or damaged.
  static std::optional<KeyRingCopy> find(ByteView half);

  std::uint32_t version() const;
  StoreId store_id() const;
  std::uint64_t generation() const;
  ByteView master_fingerprint() const;

  // False: it was changed by other hands.
  [[nodiscard]] bool unwrap(const SecretKey& master, SecretKey& database_key) const;
  // Nothing: they were changed by other hands. To be wiped.
  std::optional<Bytes> open_entries(const SecretKey& database_key) const;

 private:
  explicit KeyRingCopy(ByteView bytes) : bytes_(bytes) {}

  ByteView bytes_;
};

Bytes fingerprint_of(const SecretKey& master);

struct KeyRingHead {
  StoreId store_id{};
  std::uint64_t generation = 0;
};
// The whole file. `entries` begins with their number.
Bytes encode_key_ring_file(const KeyRingHead& head, const SecretKey& master,
                           const SecretKey& database_key, ByteView entries, SecretRandom& random);

}  // namespace edgecase::engine
