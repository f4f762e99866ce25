// SeriesKey: a user key as GroupCodec::Series sees it, a prefix and a big-endian 64-bit ordinal
// behind it. A key may be too short for one.
#pragma once

#include "base/ordinal.h"
#include "edgecase/bytes.h"
#include "value/group_format.h"

namespace edgecase::engine {

inline bool is_short_key(ByteView user_key) {
  return user_key.size() < kOrdinalBytes;
}

// The prefix of a key that is not short.
inline ByteView series_prefix(ByteView user_key) {
  return user_key.substr(0, user_key.size() - kOrdinalBytes);
}

}  // namespace edgecase::engine
