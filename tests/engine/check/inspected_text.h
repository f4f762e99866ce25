#pragma once

#include <string>

namespace edgecase::test {

// Whether it is one of the lines, whole.
inline bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace edgecase::test
