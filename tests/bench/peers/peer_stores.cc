#include "bench/peers/peer_stores.h"

#include "bench/peers/naive_store.h"

namespace edgecase::cli::bench {

Result<std::unique_ptr<BenchStore>> make_peer_store(const std::string& name,
                                                    const StoreSettings& settings) {
  if (is_naive_store(name)) return make_naive_store(name, settings);
#ifdef EDGECASE_HAS_LEVELDB
  if (name == "leveldb") return make_leveldb_store(settings);
#endif
#ifdef EDGECASE_HAS_ROCKSDB
  if (name == "rocksdb") return make_rocksdb_store(settings, false);
  if (name == "rocksdb-blob") return make_rocksdb_store(settings, true);
#endif
  static_cast<void>(settings);
  return unsupported(name + " is not built in: its library was not found (" +
                     "packaging/install-dependencies.sh peers, then configure again)");
}

}  // namespace edgecase::cli::bench
