// The peers that this build found, as BenchStores.
#pragma once

#include "bench/workloads.h"

namespace edgecase::cli::bench {

// `name` is one of kPeerStores. Unsupported when the build did not find its library.
MakeStore make_peer_store;

#ifdef EDGECASE_HAS_LEVELDB
Result<std::unique_ptr<BenchStore>> make_leveldb_store(const StoreSettings& settings);
#endif
#ifdef EDGECASE_HAS_ROCKSDB
Result<std::unique_ptr<BenchStore>> make_rocksdb_store(const StoreSettings& settings, bool blobs);
#endif

}  // namespace edgecase::cli::bench
