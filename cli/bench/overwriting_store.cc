#include "bench/overwriting_store.h"

#include <utility>

namespace edgecase::cli::bench {

Result<std::unique_ptr<OverwritingStore>> OverwritingStore::open(const BenchOptions& options,
                                                                 ExpiryMode expiry,
                                                                 const NamespaceOptions& space) {
  std::unique_ptr<OverwritingStore> store(new OverwritingStore());
  EC_ASSIGN_OR_RETURN(store->directories_,
                      create_store_directories(options.metadata, options.values));
  Options wanted;
  wanted.metadata_directory = store->directories_.metadata;
  wanted.values_directory = store->directories_.values;
  wanted.expiry = expiry;
  wanted.removal = Removal::Overwrite;
  if (options.memory_bytes != 0) wanted.memory_limit_bytes = options.memory_bytes;
  const Environment environment{posix_file_system(), system_clock(), system_random(),
                                *store->executor_, store->listener_};
  EC_ASSIGN_OR_RETURN(store->engine_, Engine::open(wanted, environment));
  EC_ASSIGN_OR_RETURN(store->space_, store->engine_->create_namespace("bench", space));
  return store;
}

std::vector<MarkedFile> OverwritingStore::files_with(std::string_view marker) const {
  std::vector<MarkedFile> files = bench::files_with(directories_.metadata, marker);
  for (MarkedFile& each : bench::files_with(directories_.values, marker))
    files.push_back(std::move(each));
  return files;
}

}  // namespace edgecase::cli::bench
