// Selectors: `device/sensor` with globs. `*` is any run of characters, `?` one (a UTF-8 character),
// within one name; `\` escapes the character after it. `kitchen` alone means `kitchen/*`; an
// unescaped `/` splits.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/status.h"
#include "wire/names.h"

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

// The selection of a command or a request: series by several selectors, and by what they are called
// where they came from. Made from the command line by the CLI, to check it,
// and from parameters by the daemon, which reads, erases and lists by it. Values without state.

// Selectors of one question, and conditions of each kind.
inline constexpr std::size_t kSelectorsMax = 100;

// What is asked of the identities of series: globs, as selectors have them. A series has one of the
// measurements, one of the fields and all of the tags; where none is named, any.
struct IdentityConditions {
  std::vector<std::string> measurements, fields;
  std::vector<std::pair<std::string, std::string>> tags;  // a key as it is, and a glob

  bool empty() const { return measurements.empty() && fields.empty() && tags.empty(); }
  bool hold_for(const Identity& identity) const;
  // The first of them, which is less work.
  bool allow_measurement(std::string_view measurement) const;
};

struct Selection {
  Selection() : selectors(1) {}
  Selection(Selector selector) : selectors{std::move(selector)} {}  // NOLINT: a selection of one

  // Any of them; one at least. What all of `identity` holds for, too, is meant.
  std::vector<Selector> selectors;
  IdentityConditions identity;

  bool matches(std::string_view device, std::string_view sensor) const;
  bool matches_device(std::string_view device) const;
  // All selectors name one series; one device.
  bool is_exact() const;
  bool names_devices() const;
  // The same within one device; without selectors where none matches it.
  Selection within(std::string_view device) const;
  // "kitchen/*", "kitchen/* and 2 more selectors with measurement cpu": for messages.
  std::string text() const;
};

// A selector that is left out of a question of several, and why.
struct LeftSelector {
  Selector selector;
  Status why;
};

// As they are written: `--measurement` and `--field` are globs, `--tag` is KEY=GLOB, where `\`
// before a `=` makes it a part of the key. Without a selector every series is meant.
// InvalidArgument names what is wrong.
struct SelectionTexts {
  std::vector<std::string> selectors, measurements, tags, fields;

  bool empty() const {
    return selectors.empty() && measurements.empty() && tags.empty() && fields.empty();
  }
};
Result<Selection> parse_selection(const SelectionTexts& texts);

// The request of a query, built from URL parameters by the daemon, from flags by the CLI.

enum class Aggregate : std::uint8_t {
  Mean,
  Min,
  Max,
  Sum,
  Count,
  First,
  Last,
  Stddev,
  P50,
  P95,
  P99,
  MinMax  // two readings at most of each window, as they are stored: of it the least and the
          // greatest
};
// Takes what the same thing is called elsewhere too ("avg", "median", "STDDEV").
Result<Aggregate> parse_aggregate(std::string_view name);
// What a mistyped name was probably meant to be; empty: none.
std::string_view nearest_aggregate(std::string_view name);
std::string_view aggregate_name(Aggregate aggregate);  // "mean"

struct QueryRequest {
  std::string namespace_name{"default"};  // empty: all namespaces
  Selection selection;
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();  // included
  std::optional<std::int64_t> to_ns;                                // not included; unset: no end
  std::int64_t every_ns = 0;           // > 0: windows, aligned to the epoch
  std::optional<Aggregate> aggregate;  // with every_ns; alone: one window over the range
  std::optional<std::uint64_t> limit;  // readings in all
  bool descending = false;
  std::string purpose;  // what the readings are read for; empty: not stated
  // An owner whose devices are all meant, whatever their purposes: what belongs to somebody is for
  // them to have. Empty: all devices.
  std::string owner;
  // Only devices that are there for this purpose, that have this objection, these labels.
  std::string of_purpose, of_objection;
  std::vector<std::pair<std::string, std::string>> of_labels;
  // Windows of tiers too, as they are kept, where readings have become them: those that begin in
  // the range. Of readings alone, without an aggregate.
  bool tiers = false;
  bool exports = false;  // what `edgecase export` asks for: another permission than reading
  // Windows that cannot be answered have rows without a value (Reading::lack), up to this time
  // where the range has no end. Unset: they have none, and where a drive is away there is no
  // answer.
  std::optional<std::int64_t> lacks_to_ns;
};

}  // namespace edgecase::wire
