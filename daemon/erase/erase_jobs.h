// The ranges of keys of an erasure, of which there may be more than one batch, or memory, holds:
// they are written ahead as jobs, records of `_erasures`, 'J' number of the erasure (8) count (4),
// big-endian. The batch with the certificate of that number makes them count; they are done then,
// again and again until that is durable. A job is erased in the batch that does what it says; one
// whose erasure has no certificate by the next start, for nothing.
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

// What one erasure takes. One thread; no other erasure meanwhile.
class ErasureRanges {
 public:
  ErasureRanges(Engine& engine, NamespaceId records, std::uint64_t number)
      : engine_(engine), records_(records), number_(number) {}

  // Adds a span; two that touch, one after the other, become one. Errors: the engine's.
  Status add(catalog::KeySpan span);
  // Adds what is not written ahead to `batch`, which is to hold the certificate; puts come after.
  void append_to(WriteBatch& batch) const;
  std::uint64_t count() const { return count_; }
  // The erasure comes to nothing: before anybody tried to write the certificate. After an error its
  // number must not be used again before the next start.
  Status abandon();

 private:
  Status write_ahead();

  Engine& engine_;
  const NamespaceId records_;
  const std::uint64_t number_;
  std::vector<catalog::KeySpan> spans_;  // kRangesPerJob at most
  std::uint32_t jobs_ = 0;               // written ahead
  std::uint64_t count_ = 0;              // with those
};

// Does what records say. Errors: the engine's; what is done stays done.
Status run_jobs(Engine& engine, NamespaceId records);

// The same at start, before anybody reads names: those that are to go are not to be seen.
Status resume_jobs(Engine& engine);

}  // namespace edgecase::erase
