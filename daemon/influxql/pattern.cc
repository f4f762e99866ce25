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
  // It repeats what it is about, which may be all.
  constexpr std::size_t kNamedBytesMax = 100;
  std::string why = pattern.compiled_->error();
  if (why.size() > kNamedBytesMax) {
    std::size_t end = kNamedBytesMax;
    while (end > 0 && (static_cast<unsigned char>(why[end]) & 0xC0u) == 0x80u) --end;
    why.resize(end);
    why += "...";
  }
  return invalid_argument("error parsing regexp: " + why);
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace edgecase::influxql
