// 256 bits that nobody else may know. Each copy wipes its memory when it goes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace edgecase {

struct SecretKey : std::array<std::uint8_t, 32> {
  ~SecretKey() { ::explicit_bzero(data(), size()); }
};

}  // namespace edgecase
