// An option whose value was forgotten, so that the next option stands in its place. The parser
// would take that for the value: `--png -o p.png` would write a file called "-o". The application
// refuses such a line before anything is done. Numbers, and "-" for stdin and stdout, are values;
// so is what stands behind a "=", as in `--png=-o`. Decided by words and declared commands alone;
// one thread.
#pragma once

#include <string>

#include "typed_line.h"

namespace edgecase::cli {

struct ForgottenValue {
  std::string problem;  // empty: there is none
  TypedWords meant;     // empty: nothing is known that would be better
};
ForgottenValue forgotten_value(const Command& root, const TypedWords& words);

}  // namespace edgecase::cli
