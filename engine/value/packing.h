// Bytes in less room: packed by LZ4 (packing.cc), and the columns of a group of a series: strings
// (packing.cc), integers (integers_block.cc), doubles (doubles_block.cc). Layouts: value_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// General compression of what groups hold besides numbers: text, JSON. LZ4 blocks: they unpack
// faster than a page is read, and bytes that do not repeat stay as they are, so that whoever looks
// for what was erased finds it in packed bytes as well.

// Bytes that shrink by less than this part of them stay as they are.
inline constexpr std::size_t kPackingPaysShare = 8;
// Shorter ones are not tried.
inline constexpr std::size_t kPackedMinBytes = 128;
// What is said to unpack to more is malformed.
inline constexpr std::size_t kUnpackedMaxBytes = 8u << 20;

// Packs one after another. Owned by one thread.
class Packer {
 public:
  // Views its own memory, until the next call. Empty: it does not pay.
  ByteView pack(ByteView bytes);

  // Whether a sample is to be shown of what might be packed. Where the last ones did not pay, the
  // next 1, 3, 7 ... are passed over, up to kPassedOverMax.
  bool wants_sample();
  // Whether it pays to pack what the sample is of.
  bool pays(ByteView sample);

 private:
  static constexpr std::uint32_t kPassedOverMax = 15;

  std::vector<std::uint64_t> state_;
  Bytes packed_;
  std::uint32_t pass_over_ = 0;    // samples, since the last one did not pay
  std::uint32_t passed_over_ = 0;  // of them
};

// Into `room`, from `at` on; it only grows. False when `packed` does not unpack to as many bytes,
// or to none.
[[nodiscard]] bool unpack(ByteView packed, std::uint64_t unpacked_bytes, Bytes& room,
                          std::size_t at = 0);

// Columns of byte strings: "bytes block".

// Appends the cheapest encoding; without a packer nothing is packed.
void append_strings(Bytes& out, std::span<const ByteView> values, Packer* packer = nullptr);

// Takes exactly `count` strings from the front of `input` into `values`; they point into what
// `input` views, or into `unpacked`. False when it is malformed; then `input` and `values` mean
// nothing.
[[nodiscard]] bool take_strings(ByteView& input, std::size_t count, std::vector<ByteView>& values,
                                Bytes& unpacked);

// Columns of 64-bit integers: "integers block".

// Appends the cheapest encoding. Signed numbers are passed as two's complement.
void append_integers(Bytes& out, std::span<const std::uint64_t> values);

// How many bytes append_integers() would add.
std::size_t integers_bytes(std::span<const std::uint64_t> values);

// Takes exactly `values.size()` numbers from the front of `input`. False when it is malformed; then
// `input` and `values` mean nothing.
[[nodiscard]] bool take_integers(ByteView& input, std::span<std::uint64_t> values);
// The same of `count` numbers that are one, where the block says so. Else, or where it is
// malformed: none, and nothing is taken.
std::optional<std::uint64_t> take_one_integer(ByteView& input, std::size_t count);

// Columns of doubles, kept bit for bit: "doubles block".

// The m with m / 10^places == the double, bit for bit, and the other way; `places` is at most
// kDecimalPlacesMax.
std::optional<std::int64_t> as_decimal(std::uint64_t bits, unsigned places);
std::uint64_t bits_of_decimal(std::int64_t m, unsigned places);

// `bits` are the doubles' bit patterns. Appends the cheapest encoding.
void append_doubles(Bytes& out, std::span<const std::uint64_t> bits);

// Takes exactly `bits.size()` doubles from the front of `input`. False when it is malformed; then
// `input` and `bits` mean nothing.
[[nodiscard]] bool take_doubles(ByteView& input, std::span<std::uint64_t> bits);

}  // namespace edgecase::engine
