// The key by which this store signs what it says of itself; made when something is signed first.
//
// In the engine's namespace `_signing` (Placement::Metadata): 'K' -> the secret (32).
#pragma once

#include <string_view>

#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"

namespace edgecase::sign {

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
