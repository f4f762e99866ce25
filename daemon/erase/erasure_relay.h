// The relay that passes an erasure on to where readings went before (daemon/forward/). EraseService
// tells it in time: what it writes is durable with the erasure or not at all. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catalog/catalog.h"
#include "edgecase/write_batch.h"
#include "erase/erase_target.h"

namespace edgecase::erase {

struct PassedErasure {
  std::uint64_t number = 0;  // of its certificate
  std::int64_t asked_ns = 0;
  bool has_all_times = false;  // with the names
  TimeRange range = {};
  FenceKind fence = FenceKind::Lasting;
  std::optional<std::int64_t> fence_to_ns = {};  // none: it has no end
};

class ErasureRelay {
 public:
  virtual ~ErasureRelay() = default;
  // Whether a target may hold some of it, whatever is here; without a sensor: of the device.
  virtual bool may_hold(const std::string& namespace_name, const std::string& device,
                        const std::string& sensor) const = 0;
  // While no reading is written and no other erasure begins. Adds to `batch` what it is to know
  // later; may write ahead, in batches of its own, what means nothing without that. Errors: the
  // engine's; then nothing is erased.
  virtual Status plan(const PassedErasure& erasure, const catalog::Catalog& catalog,
                      const EraseTarget& target, WriteBatch& batch) = 0;
  // The batch of that erasure is durable; nobody has written a reading since.
  virtual void planned(std::uint64_t number) = 0;
  // The fences of that erasure are to be lifted where it went, too. Durable on return. Errors: the
  // engine's; Corruption: where that is is not known any more.
  virtual Status lift(std::uint64_t number) = 0;
};

}  // namespace edgecase::erase
