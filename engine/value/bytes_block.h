// Columns of byte strings inside groups; layout: group_format.h ("bytes block").
#pragma once

#include <span>
#include <vector>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Appends the cheapest encoding.
void append_strings(Bytes& out, std::span<const ByteView> values);

// Takes exactly `count` strings from the front of `input` into `values`; they point into what
// `input` views. False when it is malformed; then `input` and `values` mean nothing.
[[nodiscard]] bool take_strings(ByteView& input, std::size_t count, std::vector<ByteView>& values);

}  // namespace edgecase::engine
