// Reads from the kernel what a process uses: memory, and bytes it made the drives write.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace edgecase::cli::bench {

struct ProcessUsage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t resident_anonymous_bytes = 0;  // without mapped files
  std::uint64_t peak_resident_bytes = 0;
  std::uint64_t written_bytes = 0;     // pages made dirty and written back, not system calls
  std::uint64_t write_call_bytes = 0;  // handed to write() and its like
  std::uint64_t cpu_ns = 0;            // user and system; of threads that are there
  std::uint64_t waits = 0;             // how often its threads have given up the processor to wait
};

// Zeros where the kernel does not tell.
ProcessUsage usage_of(pid_t process);
ProcessUsage own_usage();
// Processor time of the calling thread, user and system.
std::uint64_t thread_cpu_ns();
// The peak counts from here on.
void reset_own_peak();

}  // namespace edgecase::cli::bench
