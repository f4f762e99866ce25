#include "forgotten_value.h"

#include <algorithm>

#include "other_names.h"

namespace edgecase::cli {
namespace {

// "-o", "--output", "--"; no number, and not "-", which stands for stdin or stdout.
bool has_dash_of_option(std::string_view word) {
  if (word.size() < 2 || word.front() != '-') return false;
  const char c = word[1];
  return c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

ForgottenValue forgotten_value(const Command& root, const TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (!given.value || !has_dash_of_option(words[*given.value])) continue;
    const std::string& name = words[given.at];
    const std::string& word = words[*given.value];
    const std::vector<std::string>& names = given.option->names;
    const auto long_name = std::find_if(
        names.begin(), names.end(), [](const std::string& each) { return each.starts_with("--"); });
    const std::string joined = (long_name == names.end() ? name : *long_name + "=") + word;
    ForgottenValue forgotten;
    forgotten.problem = name + " needs a value, and " + for_shell(word) +
                        " looks like an option; if it is the value, write " + for_shell(joined);
    // An option that is not of this command was put before the value: "--png -o p.png".
    if (line.takes(word) || !nearest_option(*line.command, word).empty()) return forgotten;
    forgotten.meant = words;
    const auto place = forgotten.meant.begin() + static_cast<std::ptrdiff_t>(*given.value);
    const bool has_value = *given.value + 1 < words.size() && !is_option(words[*given.value + 1]);
    if (!has_value) forgotten.meant[given.at] = joined;
    forgotten.meant.erase(place);
    return forgotten;
  }
  return {};
}

}  // namespace edgecase::cli
