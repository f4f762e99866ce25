// AES-256 in Galois/counter mode (NIST SP 800-38D), by Nettle: nobody can read what was sealed, or
// change it unseen, without the key. A nonce must never serve twice under one key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "crypto/secret_key.h"
#include "edgecase/status.h"

namespace edgecase::engine {

inline constexpr std::size_t kGcmTagBytes = 16;
inline constexpr std::size_t kGcmNonceBytes = 12;
inline constexpr std::size_t kGcmBlockBytes = 16;

using GcmNonce = std::array<std::uint8_t, kGcmNonceBytes>;

// Used by one thread. To make one takes about as long as to seal 500 bytes; it takes 4.4 KiB, which
// are wiped when it goes.
class AesGcm {
 public:
  explicit AesGcm(const SecretKey& key);
  ~AesGcm();
  AesGcm(const AesGcm&) = delete;
  AesGcm& operator=(const AesGcm&) = delete;

  // Writes plain.size() bytes and the tag behind them; `out` may be where `plain` is. `associated`
  // is not written but must be the same for open().
  void seal(const GcmNonce& nonce, ByteView associated, ByteView plain, char* out);
  // False when it was not sealed so, or has been changed. Writes sealed.size() - kGcmTagBytes
  // bytes, in place too; after false they mean nothing.
  [[nodiscard]] bool open(const GcmNonce& nonce, ByteView associated, ByteView sealed, char* out);

  // In pieces: each but the last a multiple of kGcmBlockBytes. `out` may be where `plain` is.
  void begin_sealing(const GcmNonce& nonce, ByteView associated);
  void seal_piece(ByteView plain, char* out);
  std::array<char, kGcmTagBytes> finish_sealing();
  // The same way back, in place too. What was opened means nothing until the tag of all of it was
  // compared.
  void begin_opening(const GcmNonce& nonce, ByteView associated);
  void open_piece(ByteView sealed, char* out);
  // As if what was sealed or opened by now were all. Only to be compared: whoever saw several of
  // one nonce could forge.
  std::array<char, kGcmTagBytes> tag_so_far() const;

 private:
  static constexpr std::size_t kContextBytes = 4400;

  void begin(const GcmNonce& nonce, ByteView associated);

  alignas(16) std::byte context_[kContextBytes];  // the library's
};

// In constant time; both have kGcmTagBytes.
[[nodiscard]] bool is_same_tag(const char* one, const char* other);

// Whether the library computes what the standard says. Internal error: it does not, and nothing may
// be sealed with it.
Status test_aes_gcm();

}  // namespace edgecase::engine
