// The process' own memory: kept small.
#pragma once

namespace edgecase::app {

// Tells the allocator to serve all threads from few arenas and to return what is free. Before
// threads start.
void keep_memory_small();
// Returns what is free now, and the pages of code and constants that were read so far: most were
// for starting, the libraries' own above all.
void give_memory_back();

}  // namespace edgecase::app
