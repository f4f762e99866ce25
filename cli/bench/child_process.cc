#include "bench/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace edgecase::cli::bench {
namespace {

std::string error_text() {
  return std::generic_category().message(errno);
}

// Between fork() and exec() of a process that may have threads: only what is safe there.
[[noreturn]] void become(char* const* arguments, char** environment, const char* log_path) {
  // Until exec() does it, what the parent does at a signal would be done twice.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // Ctrl-C is ours to pass on
  const int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  environ = environment;
  execvp(arguments[0], arguments);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& arguments,
                                                          const std::string& log_path) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // What it says of the user's own daemon is not meant for a private one.
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("EDGECASE_")) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t id = fork();
  if (id == 0) become(pointers.data(), environment.data(), log_path.c_str());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (id < 0) return io_error("cannot start " + arguments[0] + ": " + error_text());
  return std::unique_ptr<ChildProcess>(new ChildProcess(id, log_path));
}

ChildProcess::~ChildProcess() {
  stop();
}

bool ChildProcess::running() {
  if (!ended_ && waitpid(id_, nullptr, WNOHANG) != 0) ended_ = true;
  return !ended_;
}

bool ChildProcess::wait_for_end(double seconds) {
  for (int waited_ms = 0; running(); ++waited_ms) {
    if (waited_ms >= static_cast<int>(seconds * 1000)) return false;
    sleep_ms(1);
  }
  return true;
}

void ChildProcess::stop() {
  if (!running()) return;
  ::kill(id_, SIGTERM);
  if (!wait_for_end(kStopSeconds)) kill();
}

void ChildProcess::kill() {
  if (!running()) return;
  ::kill(id_, SIGKILL);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
}

std::string ChildProcess::last_words() const {
  constexpr std::size_t kMaxBytes = 600;
  std::ifstream log(log_path_);
  std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
  if (text.size() > kMaxBytes) text.erase(0, text.size() - kMaxBytes);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "it said nothing" : text;
}

Result<std::uint16_t> free_port() {
  const int socket_number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_number < 0) return io_error("cannot open a socket: " + error_text());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      bind(socket_number, generic, size) == 0 && getsockname(socket_number, generic, &size) == 0;
  close(socket_number);
  if (!found) return io_error("cannot find a free port: " + error_text());
  return ntohs(address.sin_port);
}

void sleep_ms(int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

namespace {

volatile std::sig_atomic_t g_interrupted = 0;  // a handler can reach nothing else

extern "C" void note_interrupt(int) {
  g_interrupted = 1;
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // One that was ignored from the start (nohup) stays so.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a peer that closes is an error code
}

bool interrupted() {
  return g_interrupted != 0;
}

Status check_interrupt() {
  return interrupted() ? cancelled("stopped") : ok();
}

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
