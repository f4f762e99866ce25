// Any bytes as the header Authorization, and as the record of a token that a store holds: the first
// byte chooses.
#include <string>
#include <string_view>

#include "auth/authorize.h"
#include "auth/token_store.h"
#include "fuzz/fuzz_targets.h"
#include "http/router.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::test {
namespace {

void take_header(std::string_view header) {
  static ModelEngine engine;
  static ManualClock clock;
  static SeededRandom random(1);
  static const auto tokens = auth::TokenStore::open(engine, clock, random).value();
  const auto shown = http::presented_token(header);
  if (!shown.ok()) {
    demand(shown.status().code() == StatusCode::NotAllowed);
    return;
  }
  // None was made, so none is good; and what is refused is not repeated in words.
  const auto grant = tokens->check(*shown);
  demand(!grant.ok() && grant.status().code() == StatusCode::NotAllowed);
  if (auth::looks_like_token(*shown)) {
    demand(grant.status().message().find(*shown) == std::string::npos);
  }
}

void take_record(std::string_view record) {
  ModelEngine engine;
  ManualClock clock;
  SeededRandom random(1);
  const auto place =
      engine.create_namespace(auth::kTokensNamespace, {.placement = Placement::Metadata});
  demand(place.ok());
  WriteBatch batch;
  batch.put(*place, "T0123456789", record);
  demand(engine.write(batch, Durability::Sync).ok());
  const auto tokens = auth::TokenStore::open(engine, clock, random);
  if (!tokens.ok()) return;
  for (const auth::TokenInfo& token : (*tokens)->list()) demand(token.id == "0123456789");
  static_cast<void>((*tokens)->revoke("0123456789", std::nullopt));
}

}  // namespace

void take_tokens(std::string_view bytes) {
  if (bytes.empty()) return;
  return bytes[0] % 2 == 0 ? take_header(bytes.substr(1)) : take_record(bytes.substr(1));
}

}  // namespace edgecase::test
