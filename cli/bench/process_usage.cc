#include "bench/process_usage.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

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
    if (word == "wchar:" && io >> value) usage.write_call_bytes = value;
  }
  // Behind the name in parentheses: user and system time are words 12 and 13, in clock ticks.
  std::ifstream stat(directory + "/stat");
  std::getline(stat, word);
  if (const std::size_t end = word.rfind(')'); end != std::string::npos) {
    std::istringstream rest(word.substr(end + 1));
    std::uint64_t ticks = 0;
    for (int i = 0; i < 13 && rest >> word; ++i) {
      if (i >= 11) ticks += std::stoull(word);
    }
    usage.cpu_ns = ticks * 1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
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
