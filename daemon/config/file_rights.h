// Checks that a configuration file can be believed: who may have written it. Internal to config/.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "edgecase/result.h"

namespace edgecase::config {

// The user whom the package runs the daemon as.
inline constexpr char kServiceUser[] = "edgecase";

struct Owners {
  uid_t own = 0;                 // of this process
  std::optional<uid_t> service;  // of kServiceUser, where there is one
};

// A regular file, or a pipe with a name, that everybody may write, or that belongs to somebody
// other than root and `owners`, is refused. Its group may write it: whoever is in a group has been
// put there. `name` is for the message.
Status check_file_rights(const std::string& name, const struct stat& facts, const Owners& owners);

// The same for an open file, with the owners of this process and machine.
Status check_file_rights(const std::string& name, int descriptor);

}  // namespace edgecase::config
