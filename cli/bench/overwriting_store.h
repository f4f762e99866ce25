// A store of a benchmark's own that overwrites what goes: in private directories that are removed
// with it, with one namespace, "bench". And the search for a marker in raw bytes that tells which
// files still hold what should be gone. Errors: the engine's, and those of directories.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_options.h"
#include "bench/directories.h"
#include "edgecase/engine.h"

namespace edgecase::cli::bench {

// A file in which a marker stands.
struct MarkedFile {
  std::string path;
  std::uint64_t bytes = 0;  // of the file
};

// Files below `directory` in which `marker` stands. A file that goes meanwhile does not count.
std::vector<MarkedFile> files_with(const std::string& directory, std::string_view marker);

// Used by one thread; the engine has its own.
class OverwritingStore {
 public:
  static Result<std::unique_ptr<OverwritingStore>> open(const BenchOptions& options,
                                                        ExpiryMode expiry,
                                                        const NamespaceOptions& space);

  Engine& engine() { return *engine_; }
  NamespaceId space() const { return space_; }
  // On both drives, those that hold these bytes.
  std::vector<MarkedFile> files_with(std::string_view marker) const;

 private:
  OverwritingStore() = default;

  StoreDirectories directories_;
  EventListener listener_;
  std::unique_ptr<Executor> executor_ = make_thread_executor();
  std::unique_ptr<Engine> engine_;
  NamespaceId space_ = 0;
};

}  // namespace edgecase::cli::bench
