// Signatures that anybody can check, without this store and with any tool: ECDSA on P-256 with
// SHA-256, in DER; public keys in PEM.
//   openssl dgst -sha256 -verify key.pem -signature report.sig report.txt
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "auth/hashing.h"
#include "edgecase/bytes.h"
#include "edgecase/random.h"
#include "edgecase/status.h"

namespace edgecase::sign {

inline constexpr std::string_view kAlgorithm = "ECDSA P-256 SHA-256";
inline constexpr std::size_t kSecretBytes = 32;

// `random`: one that nobody can predict. Errors: IoError.
Result<Bytes> make_secret(Random& random);
// "-----BEGIN PUBLIC KEY-----...". Errors: Corruption: that is no secret.
Result<std::string> public_key_of(ByteView secret, Random& random);
// The same text and secret have one signature.
Result<Bytes> sign(ByteView secret, const auth::Digest& digest, Random& random);
inline Result<Bytes> sign(ByteView secret, std::string_view text, Random& random) {
  return sign(secret, auth::sha256(text), random);
}
// InvalidArgument: that is no public key. Corruption: the signature is not one of the text by it.
Status verify(const std::string& public_key, std::string_view text, ByteView signature);

// What people compare: the SHA-256 of the key as DER, in hex. Empty: that is no public key.
std::string fingerprint(std::string_view public_key);

}  // namespace edgecase::sign
