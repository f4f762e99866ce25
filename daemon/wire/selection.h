// The selection of a command or a request: series by several selectors, and by what they are called
// where they came from (CONTRACT section 2). Made from the command line by the CLI, to check it,
// and from parameters by the daemon, which reads, erases and lists by it. Values without state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/result.h"
#include "wire/identity.h"
#include "wire/selector.h"

namespace edgecase::wire {

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

}  // namespace edgecase::wire
