#include "bench/private_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "bench/drive_checks.h"

namespace edgecase::cli::bench {

Result<std::unique_ptr<PrivateDirectory>> PrivateDirectory::create(const std::string& parent) {
  EC_TRY(check_no_store(parent));
  std::error_code error;
  const auto base = std::filesystem::absolute(parent.empty() ? "." : parent, error);
  std::string path = (base / "edgecase-bench-XXXXXX").lexically_normal().string();
  if (error || mkdtemp(path.data()) == nullptr) {
    if (!error) error = std::error_code(errno, std::generic_category());
    return io_error("cannot create a directory in " + base.string() + ": " + error.message());
  }
  return std::unique_ptr<PrivateDirectory>(new PrivateDirectory(std::move(path)));
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint64_t occupied_bytes(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(path, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    struct stat state {};
    if (::lstat(at->path().c_str(), &state) == 0 && S_ISREG(state.st_mode)) {
      bytes += static_cast<std::uint64_t>(state.st_blocks) * 512;
    }
  }
  return bytes;
}

Result<StoreDirectories> create_store_directories(const std::string& metadata,
                                                  const std::string& values) {
  StoreDirectories directories;
  EC_ASSIGN_OR_RETURN(directories.metadata_parent, PrivateDirectory::create(metadata));
  directories.metadata = directories.metadata_parent->path() + "/metadata";
  directories.values = directories.metadata_parent->path() + "/values";
  if (!values.empty()) {
    EC_ASSIGN_OR_RETURN(directories.values_parent, PrivateDirectory::create(values));
    directories.values = directories.values_parent->path() + "/values";
  }
  std::error_code error;
  std::filesystem::create_directory(directories.metadata, error);
  if (!error) std::filesystem::create_directory(directories.values, error);
  if (error) return io_error("cannot create " + directories.metadata + ": " + error.message());
  return directories;
}

}  // namespace edgecase::cli::bench
