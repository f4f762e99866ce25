#include "config/file_rights.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace edgecase::config {
namespace {

std::optional<uid_t> service_user() {
  passwd entry{};
  passwd* found = nullptr;
  char texts[4096];
  if (getpwnam_r(kServiceUser, &entry, texts, sizeof texts, &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return entry.pw_uid;
}

bool everybody_may_write(const struct stat& facts) {
  return (facts.st_mode & S_IWOTH) != 0;
}

bool belongs_to(const struct stat& facts, const Owners& owners) {
  return facts.st_uid == 0 || facts.st_uid == owners.own || facts.st_uid == owners.service;
}

}  // namespace

Status check_file_rights(const std::string& name, const struct stat& facts, const Owners& owners) {
  // A terminal and /dev/null hold nothing that somebody could have changed.
  if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode)) return ok();
  if (everybody_may_write(facts)) {
    return invalid_argument(name + ":1:1: file: everybody on this machine may change it; to do: " +
                            "see what it says, then chmod o-w " + name);
  }
  if (!belongs_to(facts, owners)) {
    return invalid_argument(
        name + ":1:1: file: belongs to the user with the number " + std::to_string(facts.st_uid) +
        ", neither to root nor to the daemon's user; to do: chown root " + name);
  }
  return ok();
}

Status check_file_rights(const std::string& name, int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) {
    return invalid_argument(name + ":1:1: file: cannot be looked at (" + std::strerror(errno) +
                            "), give the path of a file");
  }
  Owners owners{.own = geteuid(), .service = {}};
  // Asking who the service's user is loads what the system keeps its users in: only where it
  // matters.
  if (!belongs_to(facts, owners)) owners.service = service_user();
  return check_file_rights(name, facts, owners);
}

}  // namespace edgecase::config
