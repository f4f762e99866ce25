#include "wire/line_rules.h"

#include <algorithm>
#include <utility>

#include "wire/names.h"
#include "wire/selector.h"

namespace edgecase::wire {
namespace {

constexpr std::size_t kTemplateMaxBytes = 1'024;

const LineTag* find_tag(std::span<const LineTag> tags, std::string_view key) {
  const auto found = std::lower_bound(
      tags.begin(), tags.end(), key,
      [](const LineTag& each, std::string_view wanted) { return each.key < wanted; });
  return found != tags.end() && found->key == key ? &*found : nullptr;
}

}  // namespace

Result<CompiledLineRule> CompiledLineRule::compile(const LineRule& rule) {
  // One side of a selector has the same form.
  if (const auto glob = parse_selector(rule.measurement + "/*");
      rule.measurement.find('/') != std::string::npos || !glob.ok()) {
    return invalid_argument("measurement: \"" + rule.measurement +
                            "\" is no name with * and ?, write \"weather_*\"");
  }
  const std::string_view text = rule.device;
  if (text.empty()) return invalid_argument("device: is missing, write device = \"{station}\"");
  if (text.size() > kTemplateMaxBytes || !is_valid_utf8(text)) {
    return invalid_argument("device: is not UTF-8 of at most " + std::to_string(kTemplateMaxBytes) +
                            " bytes");
  }
  CompiledLineRule compiled;
  compiled.written_ = rule;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_tag = text[at] == '{';
    const std::size_t begin = at + (is_tag ? 1 : 0);
    const std::size_t end = std::min(text.find_first_of("{}", begin), text.size());
    if (is_tag && (end == begin || end == text.size() || text[end] != '}')) {
      return invalid_argument("device: \"" + rule.device +
                              "\": behind { stands the key of a tag, and then }");
    }
    if (!is_tag && end < text.size() && text[end] == '}') {
      return invalid_argument("device: \"" + rule.device + "\": there is a } without its {");
    }
    compiled.parts_.push_back({std::string(text.substr(begin, end - begin)), is_tag});
    at = end + (is_tag ? 1 : 0);
  }
  return compiled;
}

bool CompiledLineRule::matches(std::string_view measurement, std::span<const LineTag> tags) const {
  return glob_matches(written_.measurement, measurement) &&
         std::all_of(parts_.begin(), parts_.end(), [tags](const Part& part) {
           return !part.is_tag || find_tag(tags, part.text) != nullptr;
         });
}

std::uint64_t CompiledLineRule::name(std::span<const LineTag> tags, std::string& device) const {
  std::uint64_t used = 0;
  device.clear();
  for (const Part& part : parts_) {
    const LineTag* const tag = part.is_tag ? find_tag(tags, part.text) : nullptr;
    device += tag == nullptr ? std::string_view(part.text) : tag->value;
    if (tag != nullptr) used |= std::uint64_t{1} << (tag - tags.data());
  }
  return used;
}

Result<LineRules> LineRules::compile(std::span<const LineRule> rules) {
  LineRules compiled;
  for (const LineRule& rule : rules) {
    auto one = CompiledLineRule::compile(rule);
    if (!one.ok()) {
      std::string where = "influx.rule " + std::to_string(compiled.rules_.size() + 1);
      if (rule.line > 0) where += " (line " + std::to_string(rule.line) + ")";
      return invalid_argument(where + ": " + one.status().message());
    }
    compiled.rules_.push_back(std::move(one).value());
  }
  return compiled;
}

const CompiledLineRule* LineRules::find(std::string_view measurement,
                                        std::span<const LineTag> tags) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const CompiledLineRule& rule) {
    return rule.matches(measurement, tags);
  });
  return found == rules_.end() ? nullptr : &*found;
}

}  // namespace edgecase::wire
