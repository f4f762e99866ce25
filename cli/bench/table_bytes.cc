#include "bench/table_bytes.h"

#include "edgecase/engine.h"

namespace edgecase::cli::bench {

Result<std::uint64_t> table_bytes(const StoreDirectories& directories) {
  Options options;
  options.metadata_directory = directories.metadata;
  options.values_directory = directories.values;
  options.create_if_missing = false;
  EventListener listener;
  const auto executor = make_thread_executor();
  const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                listener};
  EC_ASSIGN_OR_RETURN(const auto engine, Engine::open(options, environment));
  EC_TRY(engine->flush());
  const Stats stats = engine->stats();
  return stats.metadata.live_bytes + stats.values.live_bytes;
}

}  // namespace edgecase::cli::bench
