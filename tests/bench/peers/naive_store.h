// NaiveKV, the baseline of the LogKV paper (section 3.2): a hash table in memory that is written
// whole into a new file, its snapshot, whenever so many bytes of updates came together; opened
// again, it is what its last snapshot holds. With a threshold of 0 there are no snapshots:
// std::unordered_map.
#pragma once

#include <memory>
#include <string>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// "naive-32k", "naive-1m", "naive-2m", "naive-32m": by threshold. "unordered-map": none.
inline constexpr const char* kNaiveStores[] = {"naive-32k", "naive-1m", "naive-2m", "naive-32m",
                                               "unordered-map"};
bool is_naive_store(const std::string& name);

// Everything lies in the metadata directory. Writes are never synced, whatever is asked.
Result<std::unique_ptr<BenchStore>> make_naive_store(const std::string& name,
                                                     const StoreSettings& settings);

}  // namespace edgecase::cli::bench
