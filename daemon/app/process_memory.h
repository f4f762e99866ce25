// The process' own memory: shared out, kept small, and out of core dumps.
#pragma once

#include <cstdint>

#include "config/settings.h"

namespace edgecase::app {

// How the memory of the whole process is shared out.
struct MemoryShares {
  std::uint64_t engine_bytes = 0;
  std::uint64_t catalog_bytes = 0;         // of these, the most that names may take
  std::uint64_t in_flight_bytes = 0;       // request bodies, connections' TLS
  std::uint64_t mqtt_in_flight_bytes = 0;  // the same of mqtt.listen: packets not whole yet, TLS
};
// Five eighths for the engine, which makes do with less of it as the catalog takes more, and up to
// three for what is in flight; what is neither (code, stacks, answers that are being sent) fits
// into what both leave unused. Where mqtt.listen is on, one of the three eighths is its own, half
// of it for packets, the rest for messages on their way to the drive; where it speaks TLS, half an
// eighth of the engine's is for that. The settings say what is allowed at most.
MemoryShares share_memory(const config::Settings& settings);

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
