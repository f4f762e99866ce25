// Opening, second part: the log of a store is read whole and checked, then the first changes are
// made to the drives, then what no table holds comes into the memtable.
//
// Called by EngineImpl once its owners are made, on the caller's thread, before anybody writes.
// It may wait for flushes of what does not fit into memory. Stateless; does I/O.
#pragma once

#include <vector>

#include "core/commit_leader.h"
#include "core/store.h"
#include "core/store_opening.h"
#include "edgecase/engine.h"
#include "edgecase/event_listener.h"

namespace edgecase::engine {

// Fills in `event`, and adds to `damage` what of the log could not be read. An error before the
// first change leaves the store as it was.
Status recover_log(const Store& store, const StoreParts& parts, CommitLeader& leader,
                   RecoveryEvent& event, std::vector<DamagedFile>& damage);

}  // namespace edgecase::engine
