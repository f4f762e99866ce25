// Takes windows that a tier of another store has kept, or of this one: what `export --tiers` wrote
// comes back as it was (retention/TIERS.md).
//
// A window is taken where the rule of its series has a tier of its length, and readings of the
// series are younger than it: before the mark, which moves up to its end, there are windows alone.
// One that is there already is itself once more; another one in its place is refused, and so is one
// whose readings a coarser window of the store has not counted. A time that was erased stays so.
//
// While windows are looked at and written no reading is on its way in, and no tier is made: the
// gate of the fences is closed, for a commit of kWindowsAtOnce at most. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "audit/audit_log.h"
#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "erase/fences.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::tiers {

inline constexpr std::size_t kWindowsAtOnce = 4'096;

// Which of them are not there, by their number among what was handed over.
struct WindowOutcome {
  struct Refused {
    std::size_t window = 0;
    Status why;
  };
  std::vector<Refused> refused;
  std::vector<std::size_t> erased, evicted, expired;
};

class WindowIntake {
 public:
  struct Parts {
    Engine& engine;
    catalog::Catalog& catalog;
    Clock& clock;
    retention::RetentionService& retention;
    erase::Fences& fences;
    const retention::Eviction* eviction = nullptr;  // null: nothing is evicted
    audit::AuditLog* audit = nullptr;               // null: nothing is recorded
  };
  explicit WindowIntake(const Parts& parts) : parts_(parts) {}

  // Ok: those that `outcome` does not name are durable. Each reading of the batch has a window.
  // Busy: the tiers of a series are being changed. Else the engine's errors; what was written
  // before stays.
  Status take(const auth::AuthorizedBatch& windows, erase::Copied copied, WindowOutcome& outcome);

 private:
  class Chunk;

  const Parts parts_;
};

}  // namespace edgecase::tiers
