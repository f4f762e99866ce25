// Rules that say which device a line of line protocol belongs to, by its measurement and its tags:
// [[influx.rule]] of the configuration. Compiled once; LineNames asks for each new tag set.
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::wire {

// As it is written.
struct LineRule {
  std::string measurement = "*";  // a glob, as in selectors
  std::string device;             // a name, with keys of tags in braces: "{building}-{room}"
  int line = 0;                   // of the configuration file; 0: not from a file

  bool operator==(const LineRule&) const = default;
};

// Without escapes.
struct LineTag {
  std::string_view key;
  std::string_view value;
};

class CompiledLineRule {
 public:
  // InvalidArgument: "device: …", "measurement: …".
  static Result<CompiledLineRule> compile(const LineRule& rule);

  const LineRule& written() const { return written_; }
  // A line matches that has every tag of `device`. `tags` are ordered by key, 64 at most.
  bool matches(std::string_view measurement, std::span<const LineTag> tags) const;
  // For a line that matches: the device's name as the rule makes it, and a bit for each tag in it.
  std::uint64_t name(std::span<const LineTag> tags, std::string& device) const;
  // Whether the device's name is the value of one tag, and nothing else.
  bool is_one_tag() const { return parts_.size() == 1 && parts_.front().is_tag; }

 private:
  struct Part {
    std::string text;  // of a tag: its key
    bool is_tag = false;
  };

  LineRule written_;
  std::vector<Part> parts_;
};

class LineRules {
 public:
  LineRules() = default;
  // InvalidArgument: "influx.rule 2 (line 14): device: …".
  static Result<LineRules> compile(std::span<const LineRule> rules);

  // The first that matches; null: none.
  const CompiledLineRule* find(std::string_view measurement, std::span<const LineTag> tags) const;
  // Rules count from 1.
  std::size_t number_of(const CompiledLineRule& rule) const {
    return static_cast<std::size_t>(&rule - rules_.data()) + 1;
  }
  std::span<const CompiledLineRule> all() const { return rules_; }

 private:
  std::vector<CompiledLineRule> rules_;
};

}  // namespace edgecase::wire
