// The keys of an encrypted store. Each key opens the next:
//
//   master key    from outside, never stored
//   database key  random, made with the store; wrapped by the master key
//   scope keys    random, one for each scope (the leading bytes of a key: in the daemon a device)
//                 that has values in tables; sealed under the database key
//   file keys     derived (HKDF, fresh random salt in the file) from the database key for logs and
//                 metadata tables, from the scope's key for its items in a value file
//
// A new master key wraps the database key anew and nothing else changes. To destroy a scope's key
// makes its values unreadable wherever copies of them are, on a drive that is away too.
//
// The keys lie in KEYS-<n> in the metadata directory, nowhere else; each change writes <n + 1>,
// whole and twice (in either half of the file), syncs it, then overwrites and removes the
// older ones. Layout: below. Where the drive keeps what was overwritten (flash does),
// old keys can be had by whoever has the drive's raw cells and the master key.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "crypto/aes_gcm.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "file/machine.h"

namespace edgecase::engine {

// The format (key_ring_format.cc). Bytes of KEYS-<n>, version 1, little-endian. The file is the
// same copy twice, each padded with zeros to half of the file.
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

// Scopes beyond share the key of their namespace, which is destroyed with that alone.
inline constexpr std::size_t kScopeKeysMax = 65'536;
// What one takes: its key and name, and what finds them by name and by id.
inline constexpr std::size_t kScopeKeyMemoryBytes = 170;

class KeyRing {
 public:
  // Makes the ring of a new store. What an unfinished creation left is replaced.
  static Result<std::unique_ptr<KeyRing>> create(FileSystem& file_system,
                                                 const std::string& metadata_directory,
                                                 const StoreId& store_id, const MasterKeys& master,
                                                 Random& random);
  // Errors: NotAllowed (another master key), Corruption, Unsupported, Unavailable (another
  // store's), IoError. Changes nothing.
  static Result<std::unique_ptr<KeyRing>> open(FileSystem& file_system,
                                               const std::string& metadata_directory,
                                               const StoreId& store_id, const MasterKeys& master,
                                               Random& random);
  // Whether the directory has one.
  static Result<bool> exists(FileSystem& file_system, const std::string& metadata_directory);
  // Opens the ring of a store that is there: null when it is not encrypted and no keys were given.
  // Errors: NotAllowed, for a store with a key ring and no keys, for another store with keys.
  static Result<std::unique_ptr<KeyRing>> open_if_encrypted(FileSystem& file_system,
                                                            const Options& options,
                                                            const StoreId& store_id,
                                                            Random& random);

  ~KeyRing();

  // Whether it was the previous master key that opened it: write_again() takes the current one.
  bool is_outdated() const { return is_outdated_; }

  SecretRandom& random() { return random_; }
  SecretKey derive_from_database(ByteView salt, std::string_view purpose) const {
    return derive_key(database_key_, salt, purpose);
  }

  // The key for an item of this scope whose newest entry has this sequence. It must be durable
  // (persist()) before anything names the item.
  KeyId key_for(ByteView full_key, std::size_t scope_bytes, SequenceNumber newest);
  // Nothing: it was destroyed.
  std::optional<SecretKey> find(KeyId id) const;

  // Keys that were given out so far are durable on return.
  Status persist();
  // Writes all anew, so that nothing depends on what an earlier process could not sync; without the
  // keys of namespaces that are no more.
  Status write_again(const std::function<bool(NamespaceId)>& has_namespace);

  // What lies in [lower, upper) (full keys) is erased up to `sequence`: of scopes that lie in there
  // as a whole, newer items get other keys than older ones. To be said before there is anything
  // newer, and again when the store is opened, until forget().
  void retire(ByteView lower, ByteView upper, SequenceNumber sequence);
  void forget(SequenceNumber through);
  // The keys of what retire() spoke of up to `through` are gone, from the drive too. Answers how
  // many there were. After an error nobody gets them any more, but the drive may hold them: the
  // next call tries again.
  Result<std::uint64_t> destroy_retired(SequenceNumber through);
  // A namespace was dropped: its keys go when nobody reads its files any more, which
  // destroy_dropped() is told.
  void drop_namespace(NamespaceId id);
  Status destroy_dropped();

  std::size_t size() const;
  std::uint64_t memory_bytes() const;  // of its scope keys
  // Whether there may be scopes that have no key of their own.
  bool shares_keys() const;
  std::string path() const EC_EXCLUDES(write_mutex_);  // of its file

 private:
  struct Entry {
    KeyId id = 0;
    SecretKey key{};
  };
  // A scope, and the sequence of the item that its key was made for: no older item of an erased
  // scope has the same key.
  using Place = std::pair<Bytes, SequenceNumber>;
  struct Retired {
    Bytes lower;
    Bytes upper;
    SequenceNumber sequence = 0;
  };

  KeyRing(FileSystem& file_system, std::string metadata_directory, const StoreId& store_id,
          const SecretKey& master, Random& random);

  Status read(std::uint64_t generation, const MasterKeys& master);
  Status read_copy(const KeyRingCopy& copy, const MasterKeys& master);
  [[nodiscard]] bool take_entries(ByteView entries);
  Bytes encode() EC_REQUIRES(mutex_);
  Status write() EC_REQUIRES(write_mutex_);
  Status remove_others(std::uint64_t kept) EC_REQUIRES(write_mutex_);
  void insert(Place place, const Entry& entry) EC_REQUIRES(mutex_);
  KeyId add(ByteView scope, SequenceNumber newest) EC_REQUIRES(mutex_);
  std::optional<KeyId> find_between(ByteView scope, SequenceNumber after, SequenceNumber upto)
      EC_REQUIRES(mutex_);
  SequenceNumber retired_upto(ByteView scope) const EC_REQUIRES(mutex_);
  KeyId unused_id() EC_REQUIRES(mutex_);
  std::uint64_t erase_keys(ByteView lower, ByteView upper, SequenceNumber through)
      EC_REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string metadata_directory_;
  const StoreId store_id_;
  const SecretKey master_;
  SecretKey database_key_{};
  bool is_outdated_ = false;
  mutable SecretRandom random_;

  mutable Mutex write_mutex_;  // held across I/O; taken before mutex_
  std::uint64_t generation_ EC_GUARDED_BY(write_mutex_) = 0;
  bool others_left_ EC_GUARDED_BY(write_mutex_) = false;  // older ones resist

  mutable Mutex mutex_;
  // Keys of scopes, in memory of their own.
  std::map<Place, Entry, std::less<Place>, LockedAllocator<std::pair<const Place, Entry>>> scopes_
      EC_GUARDED_BY(mutex_);
  std::unordered_map<KeyId, const Entry*> by_id_ EC_GUARDED_BY(mutex_);
  std::vector<Retired> retired_ EC_GUARDED_BY(mutex_);
  std::vector<NamespaceId> dropped_ EC_GUARDED_BY(mutex_);
  bool shares_keys_ EC_GUARDED_BY(mutex_) = false;
  std::uint64_t changes_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t saved_changes_ EC_GUARDED_BY(mutex_) = 0;
};

// What a file of a key ring says without any key.
struct KeyRingLook {
  StoreId store_id{};
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t whole_copies = 0;  // of two
  std::string master_key;          // 16 hexadecimal digits that tell master keys apart
};

// Corruption when no copy is whole.
Result<KeyRingLook> look_at_key_ring(FileSystem& file_system, const std::string& path);

}  // namespace edgecase::engine
