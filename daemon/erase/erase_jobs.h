// Erasures of more ranges of keys than one batch may hold: what is left of them stands in records
// of
// `_erasures`, 'J' number of the erasure (8) count (4), big-endian, and is done again and again
// until it is durable. A record is erased in the batch that does what it says.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "catalog/erased.h"
#include "edgecase/engine.h"
#include "edgecase/options.h"

namespace edgecase::erase {

inline constexpr std::string_view kErasuresNamespace = "_erasures";
// One more range is the record itself.
inline constexpr std::size_t kRangesPerJob = kRangeDeletesPerBatchMax - 1;

// Adds the first ranges to `batch`, and records of the rest; puts come after.
void append_erasure(const std::vector<catalog::KeySpan>& spans, NamespaceId records,
                    std::uint64_t number, WriteBatch& batch);

// Does what records say. Errors: the engine's; what is done stays done.
Status run_jobs(Engine& engine, NamespaceId records);

// The same at start, before anybody reads names: those that are to go are not to be seen.
Status resume_jobs(Engine& engine);

}  // namespace edgecase::erase
