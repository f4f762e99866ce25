// The answers that test_aes_gcm() compares, in a header so that tests can plant a wrong one.
#pragma once

#include <array>

#include "crypto/aes_gcm.h"

namespace edgecase::engine {

// The tag of test case 15 of the mode's specification.
inline constexpr std::array<std::uint8_t, kGcmTagBytes> kGcmTestTag = {
    0xb0, 0x94, 0xda, 0xc5, 0xd9, 0x34, 0x71, 0xbd, 0xec, 0x1a, 0x50, 0x22, 0x70, 0xe3, 0xcc, 0x6c};

// As test_aes_gcm(), which gives it the right tag. Unsupported: nothing may be sealed or opened.
Status compare_aes_gcm(const std::array<std::uint8_t, kGcmTagBytes>& right_tag);

}  // namespace edgecase::engine
