// Copies into a file that is mapped, or out of it. Where the drive cannot give a page, since it is
// full, away or has failed, the kernel raises SIGBUS: that is the copy's failure here, and not the
// end of the process.
//
// The first copy installs a handler for SIGBUS; one that has nothing to do with a copy goes where
// it would have gone before. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// False: not all of it has reached the file. Then pages of the mapping are no longer the file's: it
// is to be unmapped.
[[nodiscard]] bool copy_to_mapped(ByteView bytes, char* to);

// False: not all that was copied is the file's. `is_gone` belongs to the mapping: it is set before
// a page of it is no longer the file's, and makes each later copy fail, on every thread.
[[nodiscard]] bool copy_from_mapped(const char* from, std::size_t size, char* to,
                                    std::atomic<bool>& is_gone);

}  // namespace edgecase::engine
