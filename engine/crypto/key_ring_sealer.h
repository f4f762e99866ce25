// The face's Sealer, by the database key of a store.
#pragma once

#include "crypto/file_cipher.h"
#include "edgecase/sealer.h"

namespace edgecase::engine {

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
