#include "app/directories.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace edgecase::app {
namespace {

Status prepare(const config::Configuration& configuration, std::string_view key,
               const std::string& path, struct stat& found) {
  if (mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {
      return configuration.error(key, path +
                                          " cannot be made, its parent does not exist; make it, "
                                          "or mount the drive that holds it");
    }
    // A read-only parent is none of our business when the directory is there.
    const int error = errno;
    if (stat(path.c_str(), &found) != 0) {
      return configuration.error(key, path + " cannot be made: " + std::strerror(error) +
                                          ", use a directory that the daemon may write");
    }
  }
  if (stat(path.c_str(), &found) != 0) {
    return configuration.error(key, path + " cannot be reached: " + std::strerror(errno) +
                                        ", use a directory that the daemon may write");
  }
  if (!S_ISDIR(found.st_mode)) {
    return configuration.error(key, path + " is no directory, use one");
  }
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return configuration.error(key, path + " cannot be written: " + std::strerror(errno) +
                                        ", use a directory that the daemon may write");
  }
  return ok();
}

}  // namespace

Status prepare_directories(const config::Configuration& configuration) {
  const config::StorageSettings& storage = configuration.settings.storage;
  struct stat metadata {};
  struct stat values {};
  EC_TRY(prepare(configuration, "storage.metadata", storage.metadata, metadata));
  // The drive of a store that is there already may come later; what it is mounted on stays empty.
  struct stat current {};
  if (stat((storage.metadata + "/CURRENT").c_str(), &current) != 0) {
    EC_TRY(prepare(configuration, "storage.values", storage.values, values));
  } else if (stat(storage.values.c_str(), &values) != 0) {
    return ok();
  }
  if (metadata.st_dev == values.st_dev && metadata.st_ino == values.st_ino) {
    return configuration.error("storage.values", storage.values + " and " + storage.metadata +
                                                     " are the same directory, use two");
  }
  return ok();
}

}  // namespace edgecase::app
