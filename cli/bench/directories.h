// Directories of the benchmark's own, removed with all they hold at the end of their scope, and
// what is looked at before a workload writes to those that the user named.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "edgecase/status.h"

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

// The pair of directories of one store, both private.
struct StoreDirectories {
  std::unique_ptr<PrivateDirectory> metadata_parent;
  std::unique_ptr<PrivateDirectory> values_parent;  // null: inside the other
  std::string metadata;
  std::string values;
};
Result<StoreDirectories> create_store_directories(const std::string& metadata,
                                                  const std::string& values);

// InvalidArgument if the directory (empty: the working one) holds a store of EdgeCase.
Status check_no_store(const std::string& directory);
// InvalidArgument if both lead to one directory, through links too.
Status check_apart(const std::string& one, const std::string& other);
// OutOfSpace unless so many bytes are free where the directory (empty: the working one) lies.
Status check_room(const std::string& directory, std::uint64_t bytes);

// Bytes of a stopped store's tables on both drives once everything is in them, write-ahead log
// aside. Errors: the engine's.
Result<std::uint64_t> table_bytes(const StoreDirectories& directories);

}  // namespace edgecase::cli::bench
