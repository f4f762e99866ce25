// A file that is read whole.
#pragma once

#include <string>

#include "edgecase/result.h"

namespace edgecase::cli {

// Errors name the file: NotFound, NotAllowed, IoError.
Result<std::string> read_small_file(const std::string& path);

}  // namespace edgecase::cli
