// Columns of doubles inside groups, kept bit for bit; layout: group_format.h ("doubles block").
#pragma once

#include <cstdint>
#include <span>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// `bits` are the doubles' bit patterns. Appends the cheapest encoding.
void append_doubles(Bytes& out, std::span<const std::uint64_t> bits);

// Takes exactly `bits.size()` doubles from the front of `input`. False when it is malformed; then
// `input` and `bits` mean nothing.
[[nodiscard]] bool take_doubles(ByteView& input, std::span<std::uint64_t> bits);

}  // namespace edgecase::engine
