// Signatures that anybody can check, without this store and with any tool: of texts, of JSON
// documents, and the store's own key (SigningKey). ECDSA on P-256 with SHA-256, in DER; public keys
// in PEM.
//   openssl dgst -sha256 -verify key.pem -signature report.sig report.txt
// Functions are pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "auth/hashing.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
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

// A JSON object with the member `signature`: whoever has it can tell that nothing in it was changed
// since the store with this key made it.
//
//   {..., "signature":{"algorithm","public_key","fingerprint","value"}}
//
// What is signed is the object without that member, written in one way whatever it was kept as:
// members sorted by name, no spaces, UTF-8, no line feed at the end. `jq -cjS 'del(.signature)'`
// writes the same.
inline constexpr char kSignatureMember[] = "signature";

// What is signed of the object.
std::string signed_text(nlohmann::json document);

// The member of an object that has none; or of the digest of signed_text().
Result<nlohmann::json> signature_of(const nlohmann::json& document, ByteView secret,
                                    Random& random);
Result<nlohmann::json> signature_of(const auth::Digest& digest, ByteView secret, Random& random);

struct Signer {
  std::string public_key, fingerprint;
};
// Tells who signed the object. InvalidArgument: it is not signed, or by nothing that is known here;
// Corruption: it was changed since.
Result<Signer> check_signature(const nlohmann::json& document);

// The key by which this store signs what it says of itself; made when something is signed first.
//
// In the engine's namespace `_signing` (Placement::Metadata): 'K' -> the secret (32).

inline constexpr std::string_view kSigningNamespace = "_signing";

// Thread-safe. `random`: one that nobody can predict. Both must outlive it.
class SigningKey {
 public:
  SigningKey(Engine& engine, Random& random) : engine_(engine), random_(random) {}

  struct Secret {
    Bytes bytes;
    bool is_new = false;  // made by this call
  };
  // Durable where it is new. Errors: the engine's; Corruption of what is there.
  Result<Secret> secret() EC_EXCLUDES(mutex_);
  Random& random() { return random_; }

 private:
  Engine& engine_;
  Random& random_;
  Mutex mutex_;  // held while one is made, so that there is one only; protects no member
};

}  // namespace edgecase::sign
