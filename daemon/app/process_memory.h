// The process' own memory: kept small, and out of core dumps.
#pragma once

namespace edgecase::app {

// Tells the allocator to serve all threads from few arenas and to return what is free. Before
// threads start.
void keep_memory_small();
// Returns what is free now: what lies between what is in use, too. Takes milliseconds.
void give_free_memory_back();
// The same, and the pages of code and constants that were read so far: most were
// for starting, the libraries' own above all.
void give_memory_back();
// Keys and readings are not to be found in a core dump. To look for a fault, allow one for a daemon
// that runs: prlimit --core.
void dump_no_core();

}  // namespace edgecase::app
