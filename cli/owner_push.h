// `edgecase export --owner O --to-host URL`: everything of a person, and what is said of their
// devices, straight into the EdgeCase of another controller, by way of no file that has a name.
#pragma once

#include <string>

#include "connection.h"

namespace edgecase::cli {

struct OwnerPush {
  ConnectionArguments from, to;
  std::string owner;
  std::string location;  // of the other controller's store
};

// Returns the exit code, as an import of what `export --owner` writes would.
int push_owner(const OwnerPush& request);

}  // namespace edgecase::cli
