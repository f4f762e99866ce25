// Numbers in the records of targets, big-endian. Inside daemon/forward only; no state.
#pragma once

#include <cstddef>

#include "wire/reading_key.h"

namespace edgecase::forward {

template <typename Integer>
void append_number(Integer number, Bytes& out) {
  wire::append_big_endian(static_cast<std::uint64_t>(number), out, sizeof(Integer));
}

// Takes it off the front; false where there is too little.
template <typename Integer>
bool take_number(ByteView& bytes, Integer& number) {
  if (bytes.size() < sizeof(Integer)) return false;
  number = static_cast<Integer>(wire::read_big_endian(bytes.substr(0, sizeof(Integer))));
  bytes.remove_prefix(sizeof(Integer));
  return true;
}

}  // namespace edgecase::forward
