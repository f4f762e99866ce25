#include "sign/signing_key.h"

#include <utility>

#include "sign/signature.h"

namespace edgecase::sign {
namespace {

constexpr char kKey[] = "K";

Result<NamespaceId> open_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kSigningNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  return engine.create_namespace(kSigningNamespace, {.placement = Placement::Metadata});
}

}  // namespace

Result<SigningKey::Secret> SigningKey::secret() {
  const MutexLock lock(mutex_);
  EC_ASSIGN_OR_RETURN(const NamespaceId records, open_namespace(engine_));
  auto known = engine_.get(records, kKey, {});
  if (known.ok()) {
    if (known->size() != kSecretBytes)
      return corruption("the key that reports are signed with has a wrong size");
    return Secret{std::move(known).value(), false};
  }
  if (known.status().code() != StatusCode::NotFound) return known.status();
  EC_ASSIGN_OR_RETURN(Bytes made, make_secret(random_));
  WriteBatch batch;
  batch.put(records, kKey, made);
  EC_TRY(engine_.write(batch, Durability::Sync));
  return Secret{std::move(made), true};
}

}  // namespace edgecase::sign
