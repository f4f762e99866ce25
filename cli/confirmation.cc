#include "confirmation.h"

#include <cstdio>

#include "output.h"

namespace edgecase::cli {

bool confirmed(const std::string& what, bool yes, const std::string& word) {
  if (yes) return true;
  if (!is_terminal(stdin)) {
    print_error("edgecase: %s; nothing was done: --yes says that it is meant\n", what.c_str());
    return false;
  }
  print_error("%s. Type %s: ", printable(what).c_str(), printable(word).c_str());
  std::string typed;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    if (typed.size() <= word.size()) typed += static_cast<char>(c);
  }
  if (typed == word) return true;
  print_error("edgecase: nothing was done\n");
  return false;
}

}  // namespace edgecase::cli
