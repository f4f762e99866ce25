// Zeros over files of the machine's file system, past the page cache (O_DIRECT) where that can be:
// they are copied nowhere, wait for no writeback, and put nothing out of memory that is read. Where
// a file system knows no such writes, and for what is less than a block, they go through the cache.
#pragma once

#include <span>

#include "edgecase/file_system.h"
#include "file/joint_sync.h"

namespace edgecase::engine {

// As FileSystem::overwrite(). Takes 256 KiB of memory for the length of the call.
void overwrite_posix(std::span<Overwriting> stretches, JointSync& syncs);

}  // namespace edgecase::engine
