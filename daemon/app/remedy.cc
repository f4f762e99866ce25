#include "app/remedy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "edgecase/machine.h"

namespace edgecase::app {
namespace {

// What helps where a file of the store cannot be opened: most often it was made by root, with the
// service stopped.
std::string remedy_of_rights(const Status& failure) {
  std::string owner = "another user";
  struct stat found = {};
  const std::string path(failure.file());
  if (!path.empty() && ::stat(path.c_str(), &found) == 0)
    owner = "uid " + std::to_string(found.st_uid);
  return "the daemon runs as uid " + std::to_string(::geteuid()) + ", and the file is " + owner +
         "'s: chown -R both directories of the store to the daemon's user (edgecase)";
}

std::string remedy_of(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::NotAllowed:
      return failure.system_error() != 0 ? remedy_of_rights(failure) : std::string();
    case StatusCode::OutOfSpace: return "free space on that drive";
    case StatusCode::Unavailable: return "mount it, or correct storage.values";
    case StatusCode::AlreadyExists:
      return "stop what has it, or set another http.socket, http.listen or mqtt.listen";
    case StatusCode::Locked: return "stop the other daemon, or use another storage.metadata";
    case StatusCode::Unsupported:
      return "install the version of EdgeCase that wrote the store, or a later one";
    case StatusCode::Corruption: return "see what edgecase check says with the service stopped";
    case StatusCode::IoError: return "see to the drive, or to the rights of the daemon's user";
    default: return "";
  }
}

}  // namespace

std::string with_remedy(const Status& failure) {
  const std::string remedy = limit_of_error(failure.system_error()).empty()
                                 ? remedy_of(failure)
                                 : "raise that limit (LimitFSIZE=, LimitNOFILE= of the service)";
  return failure.to_string() + (remedy.empty() ? "" : "; to do: " + remedy);
}

std::string drive_trouble(const Stats& stats) {
  const bool is_of_metadata = !stats.metadata.degraded.ok();
  const Status& failure = is_of_metadata ? stats.metadata.degraded : stats.values.degraded;
  if (failure.ok()) return {};
  return std::string(is_of_metadata ? "the metadata" : "the values") +
         " drive takes no writes: " + with_remedy(failure);
}

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
