// Somebody who writes beside everybody else: asked at each group commit what it has to add, so that
// its entries and those of the group share one sync. At most one an engine (Engine::
// set_commit_companion).
#pragma once

#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase {

class CommitCompanion {
 public:
  virtual ~CommitCompanion() = default;

  // Adds entries to `batch`, which is empty, or nothing. Called by the thread that commits, one
  // call at a time, after every batch of the group was handed to write(): what its callers said
  // before that can be in here. Must neither call the engine nor wait for who does. The batch comes
  // first in the group, is synced, and is applied whole or not at all, apart from the others.
  // Beside a batch that makes room it finds the room that one finds
  // (Options::erasure_reserve_bytes).
  virtual void add_to(WriteBatch& batch) = 0;

  // What became of what add_to() added; called after it where that was anything, and before any
  // writer of the group returns. Its entries are visible when these return.
  virtual void committed(const Status& status) = 0;
};

}  // namespace edgecase
