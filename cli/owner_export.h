// `edgecase export --owner O -o DIR/`: everything of one person, to be read by people and taken in
// elsewhere: readings.ndjson and readings.csv with the same readings, and manifest.json with
// purposes, objections, retention and recipients, written last.
#pragma once

#include <string>

#include "connection.h"

namespace edgecase::cli {

struct OwnerExport {
  const ConnectionArguments& connection;
  const std::string& owner;
  std::string directory;
};

// The exit code.
int export_owner(const OwnerExport& request);

// `--to-host URL`: the same, and what is said of their devices, straight into the EdgeCase of
// another controller, by way of no file that has a name.
struct OwnerPush {
  ConnectionArguments from, to;
  std::string owner;
  std::string location;  // of the other controller's store
};

// Returns the exit code, as an import of what `export --owner` writes would.
int push_owner(const OwnerPush& request);

}  // namespace edgecase::cli
