// The executable: its own parts of C++'s runtime; the first steps of a process, before it does
// anything else, as daemon and as command alike; then the command line.

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "application.h"
#include "edgecase/machine.h"
#include "target_file.h"
#include "wire/contract.h"

// Memory that C++ gives back is wiped first: values and names that were erased, tokens, and keys
// are not to be found in what the allocator keeps for later. It costs a write of what was written
// before anyway, mostly in the processor's cache.
//
// The portable program (EDGECASE_SMALL) does without the 0.16 MB that libc++ has to spell out the
// type of an exception that nobody caught, in the last words of a process. The words then have the
// type as the compiler writes it (`c++filt -t` reads it).

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define EDGECASE_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EDGECASE_SANITIZED
#endif

// A sanitizer has allocators of its own, and fills what is given back itself.
#ifndef EDGECASE_SANITIZED

namespace {

// Behind what was asked for nobody has written.
void give_back(void* memory, std::size_t size) {
  std::memset(memory, 0, size);
  asm volatile("" : : "r"(memory) : "memory");  // or the compiler would leave that out
  std::free(memory);
}
void give_back(void* memory) {
  if (memory != nullptr) give_back(memory, malloc_usable_size(memory));
}

}  // namespace

void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t size) noexcept {
  if (memory != nullptr) give_back(memory, size);
}
void operator delete[](void* memory, std::size_t size) noexcept {
  if (memory != nullptr) give_back(memory, size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

#endif

#ifdef EDGECASE_SMALL

extern "C" char* __cxa_demangle(const char* name, char* buffer, std::size_t* size, int* status);

extern "C" char* __cxa_demangle(const char*, char*, std::size_t*, int* status) {
  constexpr int kNotAName = -2;
  if (status != nullptr) *status = kNotAName;
  return nullptr;
}

#endif

namespace edgecase::cli {
namespace {

constexpr std::size_t kLineMaxBytes = 512;
// A thread's stack is as large as RLIMIT_STACK says, where that is set.
constexpr std::size_t kThreadStackBytes = 1u << 20;
constexpr rlim_t kStackBytes = 8u << 20;       // wanted for the first thread
constexpr rlim_t kStackMinBytes = 512u << 10;  // less is of no use
// Libraries, a terminal, a file and its directory, a connection.
constexpr rlim_t kFilesMin = 16;

// Callable from a signal handler.
[[noreturn]] void end_with(const char* line, std::size_t size) {
  remove_unfinished();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, size);
  _exit(wire::kExitFailed);
}

[[noreturn]] void end_with_line(const std::string& line) {
  const std::string whole = "edgecase: " + line + "\n";
  end_with(whole.data(), whole.size());
}

// No memory is left, so it takes none.
void on_no_memory() {
  static std::array<char, kLineMaxBytes> line{};
  constexpr char kBefore[] = "edgecase: no memory is left: ";
  std::memcpy(line.data(), kBefore, sizeof kBefore - 1);
  std::size_t size = sizeof kBefore - 1;
  size += limit_of_memory(line.data() + size, line.size() - size - 1);
  line[size++] = '\n';
  end_with(line.data(), size);
}

// What nobody caught. A thread that cannot be started is a limit; all else is a mistake of ours.
[[noreturn]] void on_terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again)
        end_with_line("no thread can be started: " + limit_of_threads());
      std::fprintf(stderr, "edgecase: unexpected: %s\n", error.what());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "edgecase: unexpected: %s\n", error.what());
    } catch (...) {
      std::fputs("edgecase: unexpected error\n", stderr);
    }
  }
  remove_unfinished();
  std::abort();
}

// RLIMIT_CPU, or RLIMIT_RTTIME of what runs in real time. The daemon stops in order instead.
extern "C" void on_no_time(int) {
  constexpr char kLine[] =
      "edgecase: no processor time is left: the limit RLIMIT_CPU (ulimit -t) or RLIMIT_RTTIME is "
      "reached\n";
  end_with(kLine, sizeof kLine - 1);
}

bool refuse(const std::string& line) {
  std::fprintf(stderr, "edgecase: %s\n", line.c_str());
  return false;
}

// As far as the hard limit lets it; answers what it is then.
rlim_t raise_limit(decltype(RLIMIT_STACK) resource, rlim_t wanted) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= wanted) return wanted;
  const rlimit raised{limit.rlim_max < wanted ? limit.rlim_max : wanted, limit.rlim_max};
  return setrlimit(resource, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

bool prepare_stacks() {
  const rlim_t stack = raise_limit(RLIMIT_STACK, kStackBytes);
  if (stack < kStackMinBytes) {
    return refuse("the limit RLIMIT_STACK (ulimit -s) is " + std::to_string(stack >> 10) +
                  " KiB, at least " + std::to_string(kStackMinBytes >> 10) + " are needed");
  }
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return true;
  if (pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < kThreadStackBytes &&
      pthread_attr_setstacksize(&attributes, kThreadStackBytes) == 0) {
    pthread_setattr_default_np(&attributes);
  }
  pthread_attr_destroy(&attributes);
  return true;
}

// Descriptors 0, 1 and 2 lead to /dev/null where whoever started the process closed them. A file of
// the store would get one of these numbers otherwise, and messages would be written into it.
// Reading from such an input and writing to such an output fail as they did before.
void open_standard_descriptors() {
  for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; ++wanted) {
    if (fcntl(wanted, F_GETFD) >= 0) continue;
    // The lowest number that is free is the one that is missing. The other way round, so that what
    // a command prints into nothing is an error (EBADF) and no success.
    const int mode = wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) >= 0) continue;
    // A root without /dev: a descriptor that can be neither read nor written holds the place.
    if (open("/", O_PATH) < 0) _exit(1);  // there is nobody to tell
  }
}

// A limit of the process (setrlimit, control group) that is reached ends it with one line that
// names the limit, and exit code 1, or is an error as others are: a file that may not grow is no
// signal any more, and no thread, no memory, no processor time left are said. False: with these
// limits it is of no use to begin, which is said already.
bool prepare_for_limits() {
  std::signal(SIGXFSZ, SIG_IGN);  // then it is EFBIG
  struct sigaction action {};
  if (sigaction(SIGXCPU, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
    action = {};
    action.sa_handler = on_no_time;
    sigaction(SIGXCPU, &action, nullptr);
  }
  std::set_new_handler(on_no_memory);
  std::set_terminate(on_terminate);
  const rlim_t files = raise_limit(RLIMIT_NOFILE, kFilesMin);
  if (files < kFilesMin) {
    return refuse("the limit RLIMIT_NOFILE (ulimit -n) is " + std::to_string(files) +
                  ", at least " + std::to_string(kFilesMin) + " are needed");
  }
  return prepare_stacks();
}

}  // namespace
}  // namespace edgecase::cli

namespace {

// Before any static object is made: one of them may open a file.
[[gnu::constructor(101)]] void before_everything() {
  edgecase::cli::open_standard_descriptors();
}

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace edgecase::cli;
  if (!prepare_for_limits()) return 1;
  return run_application(kAllCommands, argument_count, arguments);
}
