// Names of what was erased, as they may be kept: HMAC-SHA-256 with a key of the store. Who knows a
// name can find its pseudonym, with the store at hand; nobody finds a name. Immutable; any thread.
#pragma once

#include <string_view>

#include "auth/sha256.h"
#include "edgecase/bytes.h"

namespace edgecase::erase {

inline constexpr std::size_t kPseudonymKeyBytes = 32;

using Pseudonym = auth::Digest;

class Pseudonyms {
 public:
  explicit Pseudonyms(Bytes key) : key_(std::move(key)) {}

  Pseudonym of_device(std::string_view namespace_name, std::string_view device) const {
    return of('D', namespace_name, device, {});
  }
  Pseudonym of_series(std::string_view namespace_name, std::string_view device,
                      std::string_view sensor) const {
    return of('S', namespace_name, device, sensor);
  }
  Pseudonym of_owner(std::string_view owner) const { return of('O', owner, {}, {}); }

 private:
  // No name holds a zero byte.
  Pseudonym of(char kind, std::string_view a, std::string_view b, std::string_view c) const {
    Bytes message(1, kind);
    for (const std::string_view name : {a, b, c}) message.append(name) += '\0';
    return auth::hmac_sha256(key_, message);
  }

  Bytes key_;
};

}  // namespace edgecase::erase
