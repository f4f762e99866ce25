#include "file/mapped_copy.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace edgecase::engine {
namespace {

// The copy under way on this thread.
struct Copy {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
  std::atomic<bool> failed;
  std::atomic<std::atomic<bool>*> is_gone;  // of the mapping; null: nobody asks
};
thread_local Copy under_way;

std::uintptr_t page_bytes = 0;
struct sigaction action_before {};

// Memory takes the page's place, and the copy goes on into that.
bool replace_page(std::uintptr_t address) {
  if (address < under_way.begin.load(std::memory_order_relaxed) ||
      address >= under_way.end.load(std::memory_order_relaxed))
    return false;
  if (std::atomic<bool>* const is_gone = under_way.is_gone.load(std::memory_order_relaxed))
    is_gone->store(true, std::memory_order_seq_cst);
  const std::uintptr_t page = address / page_bytes * page_bytes;
  const long made = ::syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (made != static_cast<long>(page)) return false;
  under_way.failed.store(true, std::memory_order_relaxed);
  return true;
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool is_sent = info->si_code <= 0;
  if (is_sent || !replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    ::sigaction(SIGBUS, &action_before, nullptr);
    if (is_sent) static_cast<void>(::raise(signal));  // else what caused it is tried again
  }
  errno = error;
}

bool install() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &action_before) == 0;
}

// `mapped` is whichever of the two lies in the mapping.
bool copy_guarded(const char* from, std::size_t size, char* to, const char* mapped,
                  std::atomic<bool>* is_gone) {
  static const bool is_installed = install();
  if (!is_installed) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  under_way.failed.store(false, std::memory_order_relaxed);
  under_way.is_gone.store(is_gone, std::memory_order_relaxed);
  under_way.begin.store(begin, std::memory_order_relaxed);
  under_way.end.store(begin + size, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  under_way.end.store(begin, std::memory_order_relaxed);
  return !under_way.failed.load(std::memory_order_relaxed);
}

}  // namespace

bool copy_to_mapped(ByteView bytes, char* to) {
  return copy_guarded(bytes.data(), bytes.size(), to, to, nullptr);
}

bool copy_from_mapped(const char* from, std::size_t size, char* to, std::atomic<bool>& is_gone) {
  if (!copy_guarded(from, size, to, from, &is_gone)) return false;
  // Another thread's failure may have put other memory under this copy; it says so first.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !is_gone.load(std::memory_order_relaxed);
}

}  // namespace edgecase::engine
