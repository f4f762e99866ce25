// Columns of byte strings inside groups; layout: group_format.h ("bytes block").
#pragma once

#include <span>
#include <vector>

#include "edgecase/bytes.h"

namespace edgecase::engine {

class Packer;

// Appends the cheapest encoding; without a packer nothing is packed.
void append_strings(Bytes& out, std::span<const ByteView> values, Packer* packer = nullptr);

// Takes exactly `count` strings from the front of `input` into `values`; they point into what
// `input` views, or into `unpacked`. False when it is malformed; then `input` and `values` mean
// nothing.
[[nodiscard]] bool take_strings(ByteView& input, std::size_t count, std::vector<ByteView>& values,
                                Bytes& unpacked);

}  // namespace edgecase::engine
