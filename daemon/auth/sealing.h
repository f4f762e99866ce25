// Sealing of single records, which nobody can read once their key is gone: AES-256-GCM by Nettle.
// daemon/forward/ keeps names so, of which a target will have to be told. The engine seals whole
// stores by itself (engine/crypto/). Pure functions; any thread.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"
#include "edgecase/random.h"
#include "edgecase/result.h"

namespace edgecase::auth {

inline constexpr std::size_t kSealKeyBytes = 32;

// `random`: one that nobody can predict.
Bytes make_seal_key(Random& random);
// A key seals one text under each number, never two.
Bytes seal(ByteView key, std::uint64_t number, ByteView text);
// Corruption: it was not sealed so, or is not what was written.
Result<Bytes> open_sealed(ByteView key, std::uint64_t number, ByteView sealed);

}  // namespace edgecase::auth
