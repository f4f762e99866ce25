// A store of a benchmark's own that overwrites what goes: in private directories that are removed
// with it, with one namespace, "bench". Errors: the engine's, and those of directories.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bench/bench_options.h"
#include "bench/marked_files.h"
#include "bench/private_directory.h"
#include "edgecase/engine.h"

namespace edgecase::cli::bench {

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
