// Selectors: `device/sensor` with globs. `*` is any run of characters, `?` one (a UTF-8 character),
// within one name; `\` escapes the character after it. `kitchen` alone means `kitchen/*`; an
// unescaped `/` splits. CONTRACT section 2.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace edgecase::wire {

inline constexpr std::size_t kSelectorMaxBytes = 1024;

struct Selector {
  std::string device = "*";  // globs, escapes kept
  std::string sensor = "*";

  bool matches(std::string_view device_name, std::string_view sensor_name) const;
  // Without any unescaped `*` or `?`: names one series exactly.
  bool is_exact() const;
};

// InvalidArgument: empty, over kSelectorMaxBytes, not UTF-8, more than one unescaped `/`, an empty
// side, a `\` with nothing after it.
Result<Selector> parse_selector(std::string_view text);
bool glob_matches(std::string_view glob, std::string_view name);
// Whether there can be a name that both match.
bool globs_overlap(std::string_view one, std::string_view other);

// True without any unescaped `*` or `?`.
bool is_literal(std::string_view glob);
// The name that a literal glob stands for.
std::string unescape_name(std::string_view glob);
// The literal glob that stands for `name`: `*`, `?` and `\` get a `\` before them.
std::string escape_name(std::string_view name);

// An exact `device/sensor` where names may hold `\`-escaped characters: what `write` and `get`
// take. An unescaped `*` or `?` is refused, so that a forgotten quote never becomes a name.
struct SeriesName {
  std::string device;
  std::string sensor;
};
Result<SeriesName> parse_series_name(std::string_view text);

}  // namespace edgecase::wire
