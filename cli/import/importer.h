// `edgecase import`: files of readings into the daemon, or only looked through (importer.cc), and
// the manifest that an export of a person left beside them (manifest.cc).
//
// A reading that is there already is replaced by itself, so an import that was broken off is simply
// run again. While the daemon cannot take more (full, busy) the import waits for kPatienceMs.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/status.h"
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

// The manifest of `export --owner`, brought back by `edgecase import`. It holds what is said of a
// person's devices beside their readings: owner, purposes, objections, locations and labels before
// the readings come, how long each is kept after. What the store says itself stays: a conflict is
// told and counted.

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr std::size_t kManifestMaxBytes = 64u << 20;

class Manifest {
 public:
  // Nothing where the file is none that `export --owner` wrote. Errors: of reading it.
  static Result<std::optional<Manifest>> read(const std::string& path);

  const std::string& path() const { return path_; }
  std::string summary() const;  // "2 devices of alice"

  // Makes namespaces, and says of the devices what nobody says of them yet.
  Status describe(DaemonClient& client);
  // Sets the rules that the imported series need to be kept as long as they were.
  Status keep(DaemonClient& client);
  std::size_t conflicts() const { return conflicts_; }

 private:
  using Json = nlohmann::json;
  using Name = std::pair<std::string, std::string>;  // namespace, device

  Status describe(DaemonClient& client, const Json& device);
  Status keep(DaemonClient& client, const Json& device, const Json& found);
  Status set_rule(DaemonClient& client, const std::string& namespace_name,
                  const std::string& selector, const std::string& keep);
  Json merged(const Json& device, const Json& known);
  void conflict(const std::string& message);

  std::string path_;
  Json document_;
  std::set<Name> of_others_;  // devices that the store says are somebody else's
  std::size_t conflicts_ = 0;
};

}  // namespace edgecase::cli
