// The command that a command line asks for, ready to run. Returns the exit code.
#pragma once

#include <functional>

namespace edgecase::cli {

using Action = std::function<int()>;

}  // namespace edgecase::cli
