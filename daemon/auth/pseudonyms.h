// Names that may be kept after what they named is gone: HMAC-SHA-256 under one key of the store.
// Somebody who knows a name can find its pseudonym, with the store at hand; nobody finds a name.
// The audit log (which keeps the first 64 bits), certificates of erasures and fences have the same
// ones. Immutable; any thread.
//
// In the engine's namespace `_pseudonyms` (Placement::Metadata): 'K' -> the key (32).
#pragma once

#include <string>
#include <string_view>

#include "auth/sha256.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/random.h"

namespace edgecase::auth {

inline constexpr std::string_view kPseudonymsNamespace = "_pseudonyms";
inline constexpr std::size_t kPseudonymKeyBytes = 32;

using Pseudonym = Digest;

class Pseudonyms {
 public:
  explicit Pseudonyms(Bytes key) : key_(std::move(key)) {}
  // With the key of the store, which is made where there is none yet. Errors: the engine's;
  // Corruption of the key. `random`: one that nobody can predict.
  static Result<Pseudonyms> load(Engine& engine, Random& random);

  Pseudonym of_device(std::string_view namespace_name, std::string_view device) const {
    return of("device", namespace_name, device, {});
  }
  Pseudonym of_series(std::string_view namespace_name, std::string_view device,
                      std::string_view sensor) const {
    return of("series", namespace_name, device, sensor);
  }
  Pseudonym of_owner(std::string_view owner) const { return of_text("owner", {}, owner); }
  // The pseudonym of any other text; one of another kind never looks the same.
  Pseudonym of_text(std::string_view kind, std::string_view namespace_name,
                    std::string_view text) const {
    return of(kind, namespace_name, text, {});
  }

 private:
  Pseudonym of(std::string_view kind, std::string_view a, std::string_view b,
               std::string_view c) const;

  Bytes key_;
};

}  // namespace edgecase::auth
