// `edgecase backup DIR` and `edgecase restore DIR`.
//
// A backup is of one moment: every reading that was durable then, and every window of a tier where
// readings are gone, a file a series,
// DIR/NAMESPACE/DEVICE/SENSOR.ndjson.gz, and what is said beside them (namespaces, devices, rules
// of retention) in DIR/backup.json, which is written last: a directory without one is no backup.
// One that was broken off goes on with the same command, at the same moment while the daemon holds
// that, else anew.
//
// A restore looks through all files before it stores anything. Rules come first, since windows are
// taken where a rule has their tier; what is in the store already stays,
// and what has been erased or has expired there does not come back.
#pragma once

#include <string>

#include "connection.h"

namespace edgecase::cli {

struct BackupRequest {
  ConnectionArguments connection;
  std::string directory;
  std::string location = {};  // where the directory is, as the daemon has to know
};

// Both return the exit code.
int run_backup(const BackupRequest& request);
int run_restore(const BackupRequest& request);

}  // namespace edgecase::cli
