// The random number that both directories of one store share.
#pragma once

#include <array>
#include <cstdint>

namespace edgecase::engine {

using StoreId = std::array<std::uint8_t, 16>;

}  // namespace edgecase::engine
