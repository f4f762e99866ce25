// One [[forward]] table: its keys, and what its texts mean. The file's reader, `config show`, the
// example and the manual page go by forward_keys(); daemon/forward/ works with a ForwardTarget.
// Nothing here has state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "wire/selector.h"

namespace edgecase::config {

// Targets at once. Each has a thread, and bounds in the engine (forward/cursor.h).
inline constexpr std::size_t kForwardTargetsMax = 8;

// The keys of one [[forward]] table, in the order of the example.
struct ForwardKey {
  using Member = std::variant<std::string ForwardSettings::*,
                              std::vector<std::string> ForwardSettings::*, bool ForwardSettings::*>;
  std::string_view name;
  Member member;
  std::string_view help;
  Support support = Support::Full;  // Refused: anything but the default is an error
  bool is_file = false;             // a path, or credential:NAME
};
std::span<const ForwardKey> forward_keys();
// The value as TOML.
std::string forward_toml(const ForwardKey& key, const ForwardSettings& settings);

enum class ForwardKind : unsigned char { Influx, EdgeCase };
enum class ForwardFrom : unsigned char { Now, Beginning, Time };

// "ns:device/sensor"; the namespace `*` is all of them.
struct ForwardSelection {
  std::string namespace_name;
  wire::Selector selector;
};

struct ForwardTarget {
  ForwardKind kind = ForwardKind::Influx;
  bool is_secure = false;
  std::string host;  // IPv6 without brackets
  std::uint16_t port = 0;
  std::string path;  // before the API's own: "" or "/insert/0/influx"
  std::vector<ForwardSelection> selections;
  ForwardFrom from = ForwardFrom::Now;
  std::int64_t from_ns = 0;                   // of Time: readings before it are not sent
  std::uint64_t budget_bytes_per_second = 0;  // of the link; 0: whatever it takes
  std::int64_t every_ns = 0;                  // windows; 0: readings as they are
  std::int64_t keep_ns = 0;                   // what waits is spared for so long; 0: not at all
};
// InvalidArgument, as "key: what is wrong, what would be right".
Result<ForwardTarget> parse_forward(const ForwardSettings& settings);

}  // namespace edgecase::config
