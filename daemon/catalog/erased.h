// The list of what an erasure takes whole, with all its times and its names, for those who keep
// records of devices and series: catalog, device index, retention. Each tells which keys are to go,
// a range after another, and once these are gone for good forgets what it has in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/bytes.h"
#include "edgecase/write_batch.h"

namespace edgecase::catalog {

// By number, so that ranges of neighbours follow each other.
struct Erased {
  std::vector<DeviceEntry> devices;  // id 0: something is said of it, and it never had a reading
  std::vector<SeriesEntry> series;   // of devices that stay
};

// Keys from `lower` to before `upper`; an empty `upper` is unbounded.
struct KeySpan {
  NamespaceId namespace_id = 0;
  Bytes lower, upper;

  friend bool operator==(const KeySpan&, const KeySpan&) = default;
};

// The span of one key.
inline KeySpan span_of_key(NamespaceId namespace_id, ByteView key) {
  return {namespace_id, Bytes(key), Bytes(key) + '\0'};
}
// The span of the keys that begin so.
inline KeySpan span_of_prefix(NamespaceId namespace_id, ByteView prefix) {
  Bytes upper(prefix);
  while (!upper.empty() && upper.back() == '\xff') upper.pop_back();
  if (!upper.empty()) upper.back() = static_cast<char>(upper.back() + 1);
  return {namespace_id, Bytes(prefix), std::move(upper)};
}

}  // namespace edgecase::catalog
