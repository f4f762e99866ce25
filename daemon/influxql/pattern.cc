#include "influxql/pattern.h"

#include <re2/re2.h>

namespace edgecase::influxql {

Result<Pattern> Pattern::compile(const std::string& text) {
  constexpr std::int64_t kMemoryMax = 1 << 20;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryMax);
  Pattern pattern;
  pattern.compiled_ = std::make_shared<const re2::RE2>(text, options);
  if (pattern.compiled_->ok()) return pattern;
  return invalid_argument("error parsing regexp: " + pattern.compiled_->error());
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace edgecase::influxql
