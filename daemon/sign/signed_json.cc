#include "sign/signed_json.h"

#include <utility>

#include "sign/signature.h"
#include "wire/base64.h"

namespace edgecase::sign {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string signed_text(Json document) {
  document.erase(kSignatureMember);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> signature_of(const Json& document, ByteView secret, Random& random) {
  return signature_of(auth::sha256(signed_text(document)), secret, random);
}

Result<Json> signature_of(const auth::Digest& digest, ByteView secret, Random& random) {
  EC_ASSIGN_OR_RETURN(const std::string public_key, public_key_of(secret, random));
  EC_ASSIGN_OR_RETURN(const Bytes value, sign(secret, digest, random));
  std::string base64;
  wire::append_base64(value, base64);
  return Json{{"algorithm", kAlgorithm},
              {"public_key", public_key},
              {"fingerprint", fingerprint(public_key)},
              {"value", std::move(base64)}};
}

Result<Signer> check_signature(const Json& document) {
  const auto signature = document.is_object() ? document.find(kSignatureMember) : document.end();
  if (!document.is_object() || signature == document.end() || !signature->is_object())
    return invalid_argument("it is not signed");
  if (const std::string algorithm = text_of(*signature, "algorithm"); algorithm != kAlgorithm)
    return invalid_argument("it is signed by \"" + algorithm + "\", which is not known here");
  Signer signer;
  signer.public_key = text_of(*signature, "public_key");
  signer.fingerprint = fingerprint(signer.public_key);
  const Result<std::string> value = wire::decode_base64(text_of(*signature, "value"));
  if (!value.ok()) return corruption("the signature is no base64");
  EC_TRY(verify(signer.public_key, signed_text(document), *value));
  return signer;
}

}  // namespace edgecase::sign
