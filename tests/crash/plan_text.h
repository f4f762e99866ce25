// Steps of a plan as text: a line each, its name and its arguments up to the last that is not 0.
// Lines that begin with # say something to people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace edgecase::test {

// `text` is what comes before them.
template <typename Step>
std::string append_steps(std::string text, const std::vector<Step>& steps,
                         std::span<const std::string_view> names) {
  for (const Step& step : steps) {
    text += names[static_cast<std::size_t>(step.kind)];
    std::size_t count = step.arguments.size();
    while (count > 0 && step.arguments[count - 1] == 0) --count;
    for (std::size_t i = 0; i < count; ++i) text += " " + std::to_string(step.arguments[i]);
    text += "\n";
  }
  return text;
}

// `take_head` takes what is behind the word `head`, which a plan has. False: it is no plan's text.
template <typename Step, typename TakeHead>
bool take_steps(std::string_view text, std::string_view head, const TakeHead& take_head,
                std::span<const std::string_view> names, std::vector<Step>& steps) {
  bool has_head = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == head) {
      if (!take_head(words)) return false;
      has_head = true;
      continue;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return false;
    Step step;
    step.kind = static_cast<decltype(step.kind)>(found - names.begin());
    for (auto& argument : step.arguments) {
      if (!(words >> argument)) break;
    }
    if (!words.eof()) return false;
    steps.push_back(step);
  }
  return has_head;
}

}  // namespace edgecase::test
