// Columns of 64-bit integers inside groups; layout: group_format.h ("integers block").
#pragma once

#include <cstdint>
#include <span>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Appends the cheapest encoding. Signed numbers are passed as two's complement.
void append_integers(Bytes& out, std::span<const std::uint64_t> values);

// How many bytes append_integers() would add.
std::size_t integers_bytes(std::span<const std::uint64_t> values);

// Takes exactly `values.size()` numbers from the front of `input`. False when it is malformed; then
// `input` and `values` mean nothing.
[[nodiscard]] bool take_integers(ByteView& input, std::span<std::uint64_t> values);

}  // namespace edgecase::engine
