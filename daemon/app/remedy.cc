#include "app/remedy.h"

#include <sys/stat.h>
#include <unistd.h>

#include "edgecase/process_limits.h"

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

}  // namespace edgecase::app
