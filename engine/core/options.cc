#include "edgecase/options.h"

namespace edgecase {

Status validate_options(const Options& options) {
  if (options.metadata_directory.empty()) return invalid_argument("metadata_directory is empty");
  if (options.values_directory.empty()) return invalid_argument("values_directory is empty");
  if (options.metadata_directory == options.values_directory)
    return invalid_argument("metadata_directory and values_directory are the same");
  if (options.memory_limit_bytes < kMemoryLimitMinBytes)
    return invalid_argument("memory_limit_bytes is below 8 MiB");
  if (options.wal_segment_bytes < (8u << 10))
    return invalid_argument("wal_segment_bytes is below 8 KiB");
  if (options.wal_limit_bytes < 2 * options.wal_segment_bytes)
    return invalid_argument("wal_limit_bytes is below two segments");
  return ok();
}

}  // namespace edgecase
