// Iterator::take_numbers() by way of the iterator's other functions: a few at a time, as small
// groups would give them.
#pragma once

#include "base/coding.h"
#include "edgecase/engine.h"

namespace edgecase::test {

inline std::size_t take_few_numbers(Iterator& at, bool is_reverse, ByteView end,
                                    NumberColumns& columns) {
  constexpr std::size_t kFew = 5;
  columns.clear();
  if (!at.valid() || at.key().size() < 8) return 0;
  const Bytes prefix(at.key().substr(0, at.key().size() - 8));
  for (; at.valid() && columns.size() < kFew; at.next()) {
    const ByteView key = at.key();
    const ByteView value = at.value();
    const bool is_in_reach = end.empty() || (is_reverse ? key > end : key < end);
    const bool is_number = value.size() == 9 && (value[0] == kFloatTag || value[0] == kIntegerTag);
    if (!is_in_reach || !is_number || key.size() != prefix.size() + 8 || !key.starts_with(prefix))
      break;
    const bool is_float = value[0] == kFloatTag;
    if (!columns.empty() && is_float != columns.is_float) break;
    columns.is_float = is_float;
    columns.ordinals.push_back(engine::load_ordinal(key.data() + prefix.size()));
    columns.bits.push_back(engine::decode_fixed64(value.data() + 1));
  }
  return columns.size();
}

}  // namespace edgecase::test
