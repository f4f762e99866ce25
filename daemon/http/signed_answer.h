// Answers that are kept and shown to others: signed by the store's key (sign/signed_json.h).
#pragma once

#include "http/http_routes.h"
#include "sign/signing_key.h"

namespace edgecase::http {

// The log knows a new key before anything is signed by it. Unsupported: nothing is signed here.
Result<Bytes> signing_secret(HttpContext& context, const Call& call);

// Adds `signature`; returns what was signed.
Result<std::string> add_signature(HttpContext& context, const Bytes& secret, wire::Json& answer);

}  // namespace edgecase::http
