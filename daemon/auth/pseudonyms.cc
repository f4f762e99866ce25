#include "auth/pseudonyms.h"

#include <utility>

namespace edgecase::auth {
namespace {

constexpr char kKey[] = "K";

Result<NamespaceId> open_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kPseudonymsNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  return engine.create_namespace(kPseudonymsNamespace, {.placement = Placement::Metadata});
}

Bytes fresh_key(Random& random) {
  Bytes key;
  while (key.size() < kPseudonymKeyBytes) {
    const std::uint64_t word = random.next();
    for (int shift = 0; shift < 64; shift += 8) key.push_back(static_cast<char>(word >> shift));
  }
  return key;
}

}  // namespace

Result<Pseudonyms> Pseudonyms::load(Engine& engine, Random& random) {
  EC_ASSIGN_OR_RETURN(const NamespaceId records, open_namespace(engine));
  auto key = engine.get(records, kKey, {});
  if (key.status().code() == StatusCode::NotFound) {
    Bytes fresh = fresh_key(random);
    WriteBatch batch;
    batch.put(records, kKey, fresh);
    EC_TRY(engine.write(batch, Durability::Sync));
    return Pseudonyms(std::move(fresh));
  }
  // What is lost with it nobody can match any more; a repair may bring it back, so that it is not
  // replaced.
  if (key.status().code() == StatusCode::Corruption) return Pseudonyms(fresh_key(random));
  if (!key.ok()) return key.status();
  if (key->size() != kPseudonymKeyBytes) {
    return corruption("the key of pseudonyms has a wrong size");
  }
  return Pseudonyms(std::move(key).value());
}

// No name holds a zero byte.
Pseudonym Pseudonyms::of(std::string_view kind, std::string_view a, std::string_view b,
                         std::string_view c) const {
  Bytes message;
  message.reserve(kind.size() + a.size() + b.size() + c.size() + 4);
  for (const std::string_view part : {kind, a, b, c}) message.append(part) += '\0';
  return hmac_sha256(key_, message);
}

}  // namespace edgecase::auth
