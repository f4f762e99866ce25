// The manifest of `export --owner`, brought back by `edgecase import`. It holds what is said of a
// person's devices beside their readings: owner, purposes, objections, locations and labels before
// the readings come, how long each is kept after. What the store says itself stays: a conflict is
// told and counted.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon_client.h"
#include "edgecase/status.h"

namespace edgecase::cli {

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
