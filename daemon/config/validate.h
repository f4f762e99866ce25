// Validates what single values cannot tell: addresses, directories, and settings that must fit each
// other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/configuration.h"

namespace edgecase::config {

// "127.0.0.1:8650", "[::1]:8650", "localhost:8650" (both loopbacks).
struct ListenAddress {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen_address(std::string_view text);

// Whether data may be there. NotAllowed says where it may, by storage.locations; "": nobody said
// where.
Status check_location(const StorageSettings& storage, std::string_view location);

// An error of the [[forward]] table of that number, from 1, whose message begins with the key: with
// its place.
Status forward_error(const Configuration& configuration, std::size_t number, const Status& status);

// Looks at no drive: that is the daemon's, when it starts.
Status validate(Configuration& configuration);

}  // namespace edgecase::config
