// `edgecase import`: files of readings into the daemon, or only looked through.
//
// A reading that is there already is replaced by itself, so an import that was broken off is simply
// run again. While the daemon cannot take more (full, busy) the import waits for kPatienceMs.
#pragma once

#include <string>
#include <vector>

#include "connection.h"
#include "import/csv_decoder.h"

namespace edgecase::cli {

struct ImportRequest {
  ConnectionArguments connection;
  std::string default_namespace;
  std::vector<std::string> paths;  // files; of a directory, all below it that have a known ending
  std::string format;              // empty: by each name
  CsvForm csv = {};
  std::vector<std::string> manifests = {};  // beside those in directories
  // What a manifest of `export --owner` in one of the directories says of devices comes too.
  bool takes_manifests = true;
  bool dry_run = false;  // print what would come, a row a file, and send nothing
  // When the files were made, as the daemon said it; "@0": long ago, for all that is known.
  std::string as_of = "@0";
};

inline constexpr int kPatienceMs = 60'000;

// Returns the exit code: kExitPartly when some readings are stored and others were refused.
int run_import(const ImportRequest& request);

}  // namespace edgecase::cli
