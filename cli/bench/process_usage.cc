#include "bench/process_usage.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace edgecase::cli::bench {

ProcessUsage usage_of(pid_t process) {
  const std::string directory = "/proc/" + std::to_string(process);
  ProcessUsage usage;
  std::string word;
  std::uint64_t value = 0;
  for (std::ifstream status(directory + "/status"); status >> word;) {
    if (word == "VmRSS:" && status >> value) usage.resident_bytes = value * 1024;
    if (word == "RssAnon:" && status >> value) usage.resident_anonymous_bytes = value * 1024;
    if (word == "VmHWM:" && status >> value) usage.peak_resident_bytes = value * 1024;
  }
  for (std::ifstream io(directory + "/io"); io >> word;) {
    if (word == "write_bytes:" && io >> value) usage.written_bytes = value;
    // Dirty pages of files that went before the kernel wrote them. Stands behind the one above.
    if (word == "cancelled_write_bytes:" && io >> value)
      usage.written_bytes -= std::min(usage.written_bytes, value);
    if (word == "wchar:" && io >> value) usage.write_call_bytes = value;
  }
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(directory + "/task", error)) {
    // Time on the processor, in ns; exact, where /proc/PID/stat counts clock ticks.
    if (std::ifstream(thread.path() / "schedstat") >> value) usage.cpu_ns += value;
    for (std::ifstream status(thread.path() / "status"); status >> word;) {
      if (word == "voluntary_ctxt_switches:" && status >> value) usage.waits += value;
    }
  }
  return usage;
}

ProcessUsage own_usage() {
  return usage_of(getpid());
}

std::uint64_t thread_cpu_ns() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void reset_own_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace edgecase::cli::bench
