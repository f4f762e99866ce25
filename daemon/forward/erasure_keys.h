// Keys of the records of erasures (erasures.h), and how far their targets are. Inside
// daemon/forward/ only; no state.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "forward/erasures.h"
#include "forward/record_bytes.h"

namespace edgecase::forward {

inline constexpr char kOrders = 'E', kKeys = 'K', kNames = 'N';

inline Bytes key_of(char kind, std::uint64_t number) {
  Bytes key(1, kind);
  append_number(number, key);
  return key;
}

// Everything that begins with it.
inline void erase_all(NamespaceId id, const Bytes& prefix, WriteBatch& batch) {
  const catalog::KeySpan span = catalog::span_of_prefix(id, prefix);
  batch.erase_range(id, span.lower, span.upper);
}

inline bool is_open(const std::vector<TargetErasure>& targets) {
  return std::any_of(targets.begin(), targets.end(),
                     [](const TargetErasure& each) { return !is_final(each.step) || each.lifts; });
}

template <typename Targets>
auto find_target(Targets& targets, const std::string& name) {
  return std::find_if(targets.begin(), targets.end(),
                      [&name](const TargetErasure& each) { return each.target == name; });
}

// A target that answers before its own sync is asked again at a start; an EdgeCase is not.
inline bool may_be_forgotten(const TargetErasure& each) {
  return each.step == ErasureStep::Requested && each.certificates.empty();
}

inline ReadOptions uncached() {
  ReadOptions options;
  options.fill_cache = false;
  return options;
}

}  // namespace edgecase::forward
