// Seals the parts of one file of an encrypted store: blocks, items, pages, records. Each part has a
// nonce of its own, its place in the file, under keys that no other file has (key_ring.h). A part
// opens in its own file and place alone. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/aes_gcm.h"
#include "crypto/key_ring.h"
#include "edgecase/bytes.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

inline constexpr std::size_t kSealBytes = kGcmTagBytes;  // what a sealed part is longer by

enum class Opened : unsigned char {
  Yes,
  Destroyed,  // its key is no more: it was erased
  Changed,    // by other hands, or it belongs elsewhere
};

// Which kind of file it is, and which of them: what takes another's place does not open.
struct FileRole {
  std::string_view purpose;
  std::uint64_t number = 0;
};

// Seals and opens parts of a file under one of its keys: for who has several in a row. Used by one
// thread.
class PartCipher {
 public:
  PartCipher(const SecretKey& key, KeyId id);

  KeyId id() const { return id_; }
  // As those of FileCipher.
  void seal(std::uint64_t place, ByteView plain, char* out);
  [[nodiscard]] Opened open(std::uint64_t place, ByteView sealed, char* out);
  // For a part that is sealed piece by piece (aes_gcm.h).
  AesGcm& begin_sealing(std::uint64_t place);
  // For one that is opened like that.
  AesGcm& begin_opening(std::uint64_t place);

 private:
  const KeyId id_;
  const Bytes associated_;
  AesGcm gcm_;
};

class FileCipher {
 public:
  // `salt` is what the file's head says.
  FileCipher(KeyRing& ring, const KeySalt& salt, const FileRole& role);

  KeyRing& ring() const { return ring_; }
  const KeySalt& salt() const { return salt_; }

  // Writes plain.size() + kSealBytes, in place too. No two parts of a file may have one place. What
  // is sealed under a key that was destroyed meanwhile, nobody can open.
  void seal(KeyId key, std::uint64_t place, ByteView plain, char* out) const;
  // Writes sealed.size() - kSealBytes, in place too.
  [[nodiscard]] Opened open(KeyId key, std::uint64_t place, ByteView sealed, char* out) const;

  PartCipher sealer(KeyId key) const;
  // Nothing: the key is destroyed.
  std::optional<PartCipher> opener(KeyId key) const;

  // For a part that is sealed piece by piece, with nonce and associated data of its place.
  const SecretKey& database_key() const { return database_key_; }
  static GcmNonce nonce_of(std::uint64_t place);
  static Bytes associated_of(KeyId key);

 private:
  static constexpr std::size_t kKeptKeys = 32;
  struct Kept {
    KeyId id = kDatabaseKey;
    SecretKey key{};
  };

  std::optional<SecretKey> key_of(KeyId id) const;

  KeyRing& ring_;
  const KeySalt salt_;
  const Bytes purpose_;
  SecretKey database_key_;
  mutable Mutex mutex_;
  // Each at its id's place; none until a scope's key is asked for.
  mutable std::vector<Kept> kept_ EC_GUARDED_BY(mutex_);
};

// The cipher that a file's salt asks for; null for a file that is not encrypted. Errors:
// without_key(), not_sealed().
Result<std::unique_ptr<FileCipher>> cipher_for(KeyRing* keys, const std::optional<KeySalt>& salt,
                                               const FileRole& role, const std::string& path);
// The cipher of a new file: null without keys.
std::unique_ptr<FileCipher> new_cipher(KeyRing* keys, const FileRole& role);
std::optional<KeySalt> salt_of(const FileCipher* cipher);

// What tells of a part that did not open. `what` names the part.
Status explain(Opened opened, const std::string& path, std::uint64_t place, std::string_view what);

// Opens what is sealed under the database's key, in place, and drops the tag. Errors: explain().
Status open_sealed(const FileCipher& cipher, std::uint64_t place, Bytes& bytes,
                   const std::string& path, std::string_view what);

// Judges a part of a file that was just written and read again: an IoError where it did not open. A
// key that was destroyed meanwhile is no error.
Status judge_read_back(const Status& opened, const std::string& path);

// A file that is encrypted and no key was given; one that is not, in a store that is.
Status without_key(const std::string& path);
Status not_sealed(const std::string& path);

// The face's Sealer, by the database key of a store.
class KeyRingSealer final : public Sealer {
 public:
  // `ring` must outlive it.
  explicit KeyRingSealer(KeyRing& ring) : ring_(ring) {}

  Bytes seal(std::string_view kind, std::uint64_t place, ByteView plain) override;
  std::optional<Bytes> open(std::string_view kind, std::uint64_t place, ByteView sealed) override;

 private:
  FileCipher cipher_for(std::string_view kind, const KeySalt& salt);

  KeyRing& ring_;
};

}  // namespace edgecase::engine
