#include "http/signed_answer.h"

#include "audit/audit_log.h"
#include "sign/signature.h"
#include "sign/signed_json.h"

namespace edgecase::http {

Result<Bytes> signing_secret(HttpContext& context, const Call& call) {
  if (context.parts.signing_key == nullptr) return unsupported("nothing is signed here");
  EC_ASSIGN_OR_RETURN(sign::SigningKey::Secret secret, context.parts.signing_key->secret());
  if (secret.is_new && context.parts.audit != nullptr) {
    EC_ASSIGN_OR_RETURN(const std::string key,
                        sign::public_key_of(secret.bytes, context.parts.signing_key->random()));
    audit::Record record = audit::record_of("report.key-made", call.principal());
    record.detail = "fingerprint " + sign::fingerprint(key);
    EC_TRY(context.parts.audit->note(std::move(record)));
  }
  return std::move(secret.bytes);
}

Result<std::string> add_signature(HttpContext& context, const Bytes& secret, wire::Json& answer) {
  const nlohmann::json document = answer;
  EC_ASSIGN_OR_RETURN(answer[sign::kSignatureMember],
                      sign::signature_of(document, secret, context.parts.signing_key->random()));
  return sign::signed_text(document);
}

}  // namespace edgecase::http
