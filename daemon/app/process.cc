#include "app/process.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>  // defines __GLIBC__ where it is so
#include <cstring>

#include "tls/tls_ends.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace edgecase::app {
namespace {

// For dl_iterate_phdr(). Only what cannot be written and therefore is as in the file: such a page
// comes back from there when it is touched.
int forget_pages(dl_phdr_info* object, std::size_t, void* page_bytes) {
  const std::uintptr_t page = *static_cast<const std::uintptr_t*>(page_bytes);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    // Whole pages of this segment alone.
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t end = (begin + segment.p_filesz) / page * page;
    if (first >= end) continue;
    // What cannot be let go of, the kernel's own page among it, stays.
    static_cast<void>(madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED));
  }
  return 0;
}

}  // namespace

MemoryShares share_memory(const config::Settings& settings) {
  const std::uint64_t eighth = settings.storage.memory_limit_bytes / 8;
  const bool listens = !settings.mqtt.listen.empty();
  const std::uint64_t mqtt_tls_bytes =
      listens && !settings.mqtt.tls_cert.empty()
          ? std::min(settings.mqtt.connections * tls::kTlsChannelBytes, eighth / 2)
          : 0;
  const std::uint64_t engine_bytes = eighth * 5 - mqtt_tls_bytes;
  return {
      .engine_bytes = engine_bytes,
      .catalog_bytes = eighth * 2,
      .in_flight_bytes = std::min(settings.http.in_flight_limit_bytes, eighth * (listens ? 2 : 3)),
      .mqtt_in_flight_bytes =
          std::min(settings.mqtt.in_flight_limit_bytes, eighth / 2) + mqtt_tls_bytes};
}

void keep_memory_small() {
#ifdef __GLIBC__
  // Up to eight arenas a core are the default, each of which keeps what it once needed. What
  // requests take and give back in turn is kept for the next one: asking the kernel each time cost
  // a quarter of the processor time of ingest, in page faults.
  constexpr int kArenas = 2;
  constexpr int kReturnFromBytes = 4 << 20;
  mallopt(M_ARENA_MAX, kArenas);
  mallopt(M_TRIM_THRESHOLD, kReturnFromBytes);
  mallopt(M_MMAP_THRESHOLD, kReturnFromBytes);
#endif
}

void give_free_memory_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void give_memory_back() {
  give_free_memory_back();
  auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  dl_iterate_phdr(forget_pages, &page_bytes);
}

void dump_no_core() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  // One byte is less than any dump, as none is; but where dumps are piped to a program, the kernel
  // heeds one alone. A process that may not be dumped (PR_SET_DUMPABLE) could not be looked at by
  // its own user either: `bench` does.
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1);
  static_cast<void>(setrlimit(RLIMIT_CORE, &limit));
}

namespace {

std::int64_t whole_number(const char* text) {
  std::int64_t value = 0;
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end && value > 0 ? value : 0;
}

}  // namespace

Notifier Notifier::from_environment() {
  const char* socket_path = std::getenv("NOTIFY_SOCKET");
  std::int64_t microseconds = whole_number(std::getenv("WATCHDOG_USEC"));
  // The variables may have been meant for our parent.
  const std::int64_t pid = whole_number(std::getenv("WATCHDOG_PID"));
  if (pid != 0 && pid != getpid()) microseconds = 0;
  return {socket_path == nullptr ? "" : socket_path, microseconds * 1000 / 2};
}

void Notifier::send(std::string_view message) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path_.size());
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  // Nobody to tell when systemd does not listen.
  [[maybe_unused]] const ssize_t sent = sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
                                               reinterpret_cast<const sockaddr*>(&storage), size);
  close(fd);
}

}  // namespace edgecase::app
