#include "edgecase/machine.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgecase {
namespace {

// glibc's own default for a thread's stack; what is left of RLIMIT_AS has to hold one.
constexpr unsigned long long kStackBytes = 8ull << 20;
constexpr std::size_t kSmallFileBytes = 4096;

// Nothing: it is unlimited.
unsigned long long limit_value(int resource) {
  rlimit limit{};
  // glibc has a type of its own for the first argument, in C++ alone.
  if (::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

// The beginning of a small file of the kernel's; without memory of the heap.
std::size_t read_small(const char* path, std::array<char, kSmallFileBytes>& text) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const std::size_t size = got > 0 ? static_cast<std::size_t>(got) : 0;
  text[size] = '\0';
  return size;
}

unsigned long long address_space_bytes() {
  std::array<char, kSmallFileBytes> text{};
  if (read_small("/proc/self/statm", text) == 0) return 0;
  return std::strtoull(text.data(), nullptr, 10) *
         static_cast<unsigned long long>(::sysconf(_SC_PAGESIZE));
}

// What `pids.max` of this process' control group says, where as many are there; else 0.
unsigned long long full_pids_limit() {
  std::array<char, kSmallFileBytes> groups{}, text{};
  if (read_small("/proc/self/cgroup", groups) == 0) return 0;
  for (const char* line = groups.data(); line != nullptr && *line != '\0';) {
    const char* const end = std::strchr(line, '\n');
    const std::size_t size =
        end != nullptr ? static_cast<std::size_t>(end - line) : std::strlen(line);
    const std::string entry(line, size);
    line = end != nullptr ? end + 1 : nullptr;
    const bool is_unified = entry.starts_with("0::");
    const std::size_t pids = entry.find(":pids:");
    if (!is_unified && pids == std::string::npos) continue;
    const std::string group = entry.substr(is_unified ? 3 : pids + 6);
    const std::string folder = (is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids") + group;
    if (read_small((folder + "/pids.max").c_str(), text) == 0) continue;
    const unsigned long long most = std::strtoull(text.data(), nullptr, 10);  // "max": 0
    if (most == 0 || read_small((folder + "/pids.current").c_str(), text) == 0) continue;
    if (std::strtoull(text.data(), nullptr, 10) >= most) return most;
  }
  return 0;
}

}  // namespace

std::string limit_of_error(int error) {
  if (error == EFBIG) {
    const unsigned long long bytes = limit_value(RLIMIT_FSIZE);
    if (bytes == 0) return {};
    return " (the limit RLIMIT_FSIZE, ulimit -f, is " + std::to_string(bytes) + " bytes)";
  }
  if (error == EMFILE) {
    return " (the limit RLIMIT_NOFILE, ulimit -n, is " +
           std::to_string(limit_value(RLIMIT_NOFILE)) + " files)";
  }
  return {};
}

std::string limit_of_threads() {
  if (const unsigned long long pids = full_pids_limit(); pids != 0)
    return "the limit pids.max of the control group (TasksMax of a service) is " +
           std::to_string(pids);
  const unsigned long long space = limit_value(RLIMIT_AS);
  if (space != 0 && address_space_bytes() + kStackBytes > space)
    return "the limit RLIMIT_AS (ulimit -v) is " + std::to_string(space >> 10) + " KiB";
  const unsigned long long threads = limit_value(RLIMIT_NPROC);
  if (threads != 0) return "the limit RLIMIT_NPROC (ulimit -u) is " + std::to_string(threads);
  return "the system takes no more (kernel.threads-max, memory)";
}

std::size_t limit_of_memory(char* text, std::size_t size) {
  const unsigned long long space = limit_value(RLIMIT_AS), data = limit_value(RLIMIT_DATA);
  int written = 0;
  if (space != 0 && (data == 0 || space <= data)) {
    written = std::snprintf(text, size, "the limit RLIMIT_AS (ulimit -v) is %llu KiB", space >> 10);
  } else if (data != 0) {
    written =
        std::snprintf(text, size, "the limit RLIMIT_DATA (ulimit -d) is %llu KiB", data >> 10);
  } else {
    written = std::snprintf(text, size, "the system has no more");
  }
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

bool has_aes_instructions() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0;
#elif defined(__aarch64__)
  constexpr unsigned long kHwcapAes = 1ul << 3;  // HWCAP_AES of the kernel's aarch64 ABI
  return (getauxval(AT_HWCAP) & kHwcapAes) != 0;
#else
  return false;
#endif
}

}  // namespace edgecase
