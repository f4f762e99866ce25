// A certificate of this machine for itself, for a private daemon.
#pragma once

#include <string>

#include "edgecase/result.h"

namespace edgecase::cli::bench {

// For the name "localhost", on P-256, signed by itself; the key may be read by its owner alone.
Status write_own_certificate(const std::string& certificate_path, const std::string& key_path);

}  // namespace edgecase::cli::bench
