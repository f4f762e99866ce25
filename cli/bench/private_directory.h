// A directory of the benchmark's own, removed with all it holds at the end of its scope.
#pragma once

#include <memory>
#include <string>

#include "edgecase/result.h"

namespace edgecase::cli::bench {

class PrivateDirectory {
 public:
  // Inside `parent`, which must exist; empty: the working directory.
  static Result<std::unique_ptr<PrivateDirectory>> create(const std::string& parent);
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Bytes that the files below `path` occupy on their drive.
std::uint64_t occupied_bytes(const std::string& path);

// The pair of directories of one store, both private.
struct StoreDirectories {
  std::unique_ptr<PrivateDirectory> metadata_parent;
  std::unique_ptr<PrivateDirectory> values_parent;  // null: inside the other
  std::string metadata;
  std::string values;
};
Result<StoreDirectories> create_store_directories(const std::string& metadata,
                                                  const std::string& values);

}  // namespace edgecase::cli::bench
