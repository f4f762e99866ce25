#include "app/remedy.h"

namespace edgecase::app {
namespace {

std::string_view remedy_of(StatusCode code) {
  switch (code) {
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
  const std::string_view remedy = remedy_of(failure.code());
  return failure.to_string() + (remedy.empty() ? "" : "; to do: " + std::string(remedy));
}

std::string drive_trouble(const Stats& stats) {
  const bool is_of_metadata = !stats.metadata.degraded.ok();
  const Status& failure = is_of_metadata ? stats.metadata.degraded : stats.values.degraded;
  if (failure.ok()) return {};
  return std::string(is_of_metadata ? "the metadata" : "the values") +
         " drive takes no writes: " + with_remedy(failure);
}

}  // namespace edgecase::app
