// Hashes and what is made of them: digests, sealed bytes, and pseudonyms of names.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/status.h"

namespace edgecase::auth {

// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104), by Nettle, with the processor's
// instructions where it has them. Functions are pure; any thread.

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view bytes);

// The hash of bytes that come one after another. Thread-compatible.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;

  void add(std::string_view bytes);
  // The hash of all that came; then it is as new.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest hmac_sha256(std::string_view key, std::string_view bytes);

// Takes as long wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

inline std::string_view view_of(const Digest& digest) {
  return {static_cast<const char*>(static_cast<const void*>(digest.data())), digest.size()};
}
// Lower case.
std::string hex_text(std::string_view bytes);
// False when `text` is not the hex of 32 bytes.
bool parse_digest(std::string_view text, Digest& digest);

// Sealing of single records, which nobody can read once their key is gone: AES-256-GCM by Nettle.
// daemon/forward/ keeps names so, of which a target will have to be told. The engine seals whole
// stores by itself (engine/crypto/). Pure functions; any thread.

inline constexpr std::size_t kSealKeyBytes = 32;

// `random`: one that nobody can predict.
Bytes make_seal_key(Random& random);
// A key seals one text under each number, never two.
Bytes seal(ByteView key, std::uint64_t number, ByteView text);
// Corruption: it was not sealed so, or is not what was written.
Result<Bytes> open_sealed(ByteView key, std::uint64_t number, ByteView sealed);

inline constexpr std::string_view kPseudonymsNamespace = "_pseudonyms";
inline constexpr std::size_t kPseudonymKeyBytes = 32;

using Pseudonym = Digest;

// Names that may be kept after what they named is gone: HMAC-SHA-256 under one key of the store.
// Somebody who knows a name can find its pseudonym, with the store at hand; nobody finds a name.
// The audit log (which keeps the first 64 bits), certificates of erasures and fences have the same
// ones. Immutable; any thread.
//
// In the engine's namespace `_pseudonyms` (Placement::Metadata): 'K' -> the key (32).
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
