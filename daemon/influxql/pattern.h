// A regular expression of InfluxQL: found anywhere in a text, in linear time and bounded memory.
// Immutable once made; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace re2 {
class RE2;
}

namespace edgecase::influxql {

class Pattern {
 public:
  // InvalidArgument: it is none, or one that needs more memory than a pattern may take.
  static Result<Pattern> compile(const std::string& text);
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace edgecase::influxql
