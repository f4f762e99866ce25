// A certificate that a machine makes itself, for connections within it.
#pragma once

#include <string>

#include "edgecase/status.h"

namespace edgecase::tls {

// For the name "localhost", on P-256, signed by itself; the key may be read by its owner alone.
Status write_own_certificate(const std::string& certificate_path, const std::string& key_path);

}  // namespace edgecase::tls
