// Columns of numbers of a group of a series, as blocks of bytes: integers_block.cc and
// doubles_block.cc.
#pragma once

#include <cstdint>
#include <span>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Columns of 64-bit integers inside groups; layout: group_format.h ("integers block").

// Appends the cheapest encoding. Signed numbers are passed as two's complement.
void append_integers(Bytes& out, std::span<const std::uint64_t> values);

// How many bytes append_integers() would add.
std::size_t integers_bytes(std::span<const std::uint64_t> values);

// Takes exactly `values.size()` numbers from the front of `input`. False when it is malformed; then
// `input` and `values` mean nothing.
[[nodiscard]] bool take_integers(ByteView& input, std::span<std::uint64_t> values);

// Columns of doubles inside groups, kept bit for bit; layout: group_format.h ("doubles block").

// `bits` are the doubles' bit patterns. Appends the cheapest encoding.
void append_doubles(Bytes& out, std::span<const std::uint64_t> bits);

// Takes exactly `bits.size()` doubles from the front of `input`. False when it is malformed; then
// `input` and `bits` mean nothing.
[[nodiscard]] bool take_doubles(ByteView& input, std::span<std::uint64_t> bits);

}  // namespace edgecase::engine
