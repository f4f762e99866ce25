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

}  // namespace edgecase::cli
