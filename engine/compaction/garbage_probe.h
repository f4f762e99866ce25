// Which part of a table's entries newer runs supersede: deduced from a sample, since groups do not
// say which of their keys are dead. Costs a few groups and, of every newer run, a few blocks of
// records and the groups that hold what is dead.
#pragma once

#include "compaction/merge_plan.h"
#include "table/table_cache.h"

namespace edgecase::engine {

// Of the table that `plan` is to clean: between 0 and 1. `random` chooses the sample.
Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random);

}  // namespace edgecase::engine
