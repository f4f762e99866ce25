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
// whole and twice (two sectors' worth of bad luck apart), syncs it, then overwrites and removes the
// older ones. Layout: key_ring_format.h. Where the drive keeps what was overwritten (flash does),
// old keys can be had by whoever has the drive's raw cells and the master key.
//
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "crypto/key_ring_format.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "file/locked_memory.h"

namespace edgecase::engine {

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
