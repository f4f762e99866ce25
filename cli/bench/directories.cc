#include "bench/directories.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "edgecase/engine.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

std::string named(const std::string& directory) {
  return directory.empty() ? "." : directory;
}

}  // namespace

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

Status check_no_store(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::exists(named(directory) + "/IDENTITY", error)) {
    return invalid_argument(named(directory) + " holds a store: name a directory beside it");
  }
  if (error) return io_error(named(directory) + ": " + error.message());
  return ok();
}

Status check_apart(const std::string& one, const std::string& other) {
  std::error_code error;
  for (const std::string& each : {named(one), named(other)}) {
    if (!std::filesystem::is_directory(each, error)) return io_error(each + " is no directory");
  }
  const bool same = std::filesystem::equivalent(named(one), named(other), error);
  if (error) return io_error(named(one) + ", " + named(other) + ": " + error.message());
  if (same) return invalid_argument(named(one) + " and " + named(other) + " are one directory");
  return ok();
}

Status check_room(const std::string& directory, std::uint64_t bytes) {
  std::error_code error;
  const auto space = std::filesystem::space(named(directory), error);
  if (error) return io_error(named(directory) + ": " + error.message());
  if (space.available >= bytes) return ok();
  return out_of_space(named(directory) + " has " + std::to_string(space.available / kMiB) +
                      " MiB free, and this takes up to " + std::to_string(bytes / kMiB) +
                      " MiB: another directory, or fewer (--num)");
}

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
