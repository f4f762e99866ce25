// Estimates which part of a table's entries newer runs supersede, from a sample: groups do not say
// which of their keys are dead. It costs a few groups and, of every newer run, a few blocks of
// records and the groups that hold what is dead.
#pragma once

#include <optional>

#include "compaction/merge_plan.h"
#include "table/table_cache.h"

namespace edgecase::engine {

// The dead share, 0 to 1, of the table that `plan` is to clean. `random` chooses the sample.
Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random);

// Which part of what a flush wrote takes the place of older entries, from a sample of the keys that
// items of `table`, which is in level 0, begin with; nothing where these are too few, or all of
// series, whose entries are written once. Costs of every older run a few blocks of records.
Result<std::optional<double>> probe_replacing_share(TableCache& tables, const Version& version,
                                                    const TablePointer& table,
                                                    std::uint64_t random);

}  // namespace edgecase::engine
