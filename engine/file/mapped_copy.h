// Copies into a file that is mapped. Where the drive cannot give a page, since it is full or has
// failed, the kernel raises SIGBUS: that is the copy's failure here, and not the end of the
// process.
//
// The first copy installs a handler for SIGBUS; one that has nothing to do with a copy goes where
// it would have gone before. Thread-safe.
#pragma once

#include <cstddef>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// False: not all of it has reached the file. Then pages of the mapping are no longer the file's: it
// is to be unmapped.
[[nodiscard]] bool copy_to_mapped(ByteView bytes, char* to);

}  // namespace edgecase::engine
