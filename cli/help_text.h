// The end of every help: an example, then the exit codes (CONTRACT section 1).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace edgecase::cli {

inline constexpr std::string_view kExitCodesText =
    "Exit codes: 0 ok, 1 failed, 2 wrong usage or configuration, 3 not found, 4 not allowed,\n"
    "            5 daemon not reachable, 6 partly done, 7 corruption found";

// For CLI::App::footer(). Each example is one command line.
inline std::string help_footer(std::initializer_list<std::string_view> examples) {
  std::string text = examples.size() == 1 ? "Example:\n" : "Examples:\n";
  for (const std::string_view example : examples) {
    text += "  ";
    text += example;
    text += '\n';
  }
  text += '\n';
  text += kExitCodesText;
  return text;
}

}  // namespace edgecase::cli
