// Finds the files that hold what is selected, and how many bytes of it each has.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "edgecase/engine.h"
#include "query/query_service.h"
#include "wire/selector.h"

namespace edgecase::query {

// More devices are looked up by namespace; then a file's locations are those of all of them.
inline constexpr std::size_t kLocatedDevicesMax = 1000;

struct Whereabouts {
  struct File {
    FileShare share;
    std::set<std::string> locations;  // as said of the devices whose bytes it holds
  };
  std::uint64_t devices = 0, series = 0, bytes = 0;
  std::uint64_t window_bytes = 0;  // of these: windows of tiers
  std::vector<File> files;         // those with the most bytes first
  LeftOut left_out;                // what is damaged, or of several selectors not there
  Reach reach;
};

// Finds where the part lies that the principal may read. Errors: NotAllowed; NotFound, when nothing
// matches; the engine's.
Result<Whereabouts> find_whereabouts(const QueryService& service,
                                     const catalog::DeviceIndex& devices,
                                     const auth::Principal& principal,
                                     const std::string& namespace_name,
                                     const wire::Selection& selection);

}  // namespace edgecase::query
