// A JSON object with the member `signature`: whoever has it can tell that nothing in it was changed
// since the store with this key made it.
//
//   {..., "signature":{"algorithm","public_key","fingerprint","value"}}
//
// What is signed is the object without that member, written in one way whatever it was kept as:
// members sorted by name, no spaces, UTF-8, no line feed at the end. `jq -cjS 'del(.signature)'`
// writes the same. Pure functions; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "auth/hashing.h"
#include "edgecase/bytes.h"
#include "edgecase/random.h"
#include "edgecase/status.h"

namespace edgecase::sign {

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

}  // namespace edgecase::sign
