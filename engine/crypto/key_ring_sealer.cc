#include "crypto/key_ring_sealer.h"

#include <cstring>

namespace edgecase::engine {
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
