#include "bench/drive_checks.h"

#include <filesystem>
#include <system_error>

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

std::string named(const std::string& directory) {
  return directory.empty() ? "." : directory;
}

}  // namespace

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

}  // namespace edgecase::cli::bench
