#include "support/mosquitto_broker.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "net/channel.h"
#include "support/loopback.h"

namespace edgecase::test {
namespace {

// A port that was free a moment ago: mosquitto cannot be asked to choose one itself.
std::uint16_t free_port() {
  return net::tcp_port_of(net::listen_on_tcp(net::loopback_host(), 0).value());
}

std::string find_program(const std::string& name) {
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  path += ":/usr/sbin:/usr/local/sbin";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = path.substr(begin, end - begin) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return {};
}

pid_t spawn(const std::vector<std::string>& arguments, int input, int output) {
  const std::string program = find_program(arguments[0]);
  std::vector<char*> argv;
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

bool eventually(const std::function<bool()>& condition, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    ::poll(nullptr, 0, 3);
  }
  return true;
}

pid_t start_process(const std::vector<std::string>& arguments, const std::string& log_path) {
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t process = spawn(arguments, input, output);
  ::close(input);
  ::close(output);
  return process;
}

int run_process(const std::vector<std::string>& arguments, const std::string& input) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const int output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t process = spawn(arguments, ends[0], output);
  ::close(ends[0]);
  ::close(output);
  for (std::size_t written = 0; written < input.size();) {
    const ssize_t count = ::write(ends[1], input.data() + written, input.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  ::close(ends[1]);
  return wait_for(process);
}

bool MosquittoBroker::is_installed() {
  return !find_program("mosquitto").empty() && !find_program("mosquitto_pub").empty();
}

MosquittoBroker::MosquittoBroker(std::string extra) : extra_(std::move(extra)) {
  ::signal(SIGPIPE, SIG_IGN);  // a publisher that ends early must not end the test
}

MosquittoBroker::~MosquittoBroker() {
  kill();
}

std::string MosquittoBroker::url() const {
  return "mqtt://" + loopback_authority(port_);
}

std::string MosquittoBroker::log() const {
  std::ifstream file(directory_.path() + "/log", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool MosquittoBroker::takes_connections() const {
  return static_cast<bool>(try_loopback(port_));
}

bool MosquittoBroker::start() {
  constexpr int kPortsTried = 5;
  const bool keep_port = port_ != 0;
  for (int i = 0; i < kPortsTried; ++i) {
    if (!keep_port) port_ = free_port();
    const std::string configuration = directory_.path() + "/mosquitto.conf";
    std::ofstream(configuration, std::ios::trunc)
        << "listener " << port_ << " " << net::loopback_host() << "\nallow_anonymous true\n"
        << "persistence true\npersistence_location " << directory_.path() << "/\n"
        << "max_queued_messages 0\n"
        << (::geteuid() == 0 ? "user root\n" : "") << extra_ << "\n";
    process_ = start_process({"mosquitto", "-c", configuration}, directory_.path() + "/log");
    bool ended = false;
    const bool ready = eventually([this, &ended] {
      ended = ::waitpid(process_, nullptr, WNOHANG) != 0;
      return ended || takes_connections();
    });
    if (ready && !ended) return true;
    if (ended) process_ = -1;
    kill();
  }
  return false;
}

void MosquittoBroker::stop() {
  if (process_ <= 0) return;
  // One that has only just opened its port forgets a signal that comes before its loop begins.
  const bool ended = eventually([this] {
    ::kill(process_, SIGTERM);
    return ::waitpid(process_, nullptr, WNOHANG) == process_;
  });
  if (!ended) return kill();
  process_ = -1;
}

void MosquittoBroker::pause() {
  ::kill(process_, SIGSTOP);
}

void MosquittoBroker::go_on() {
  ::kill(process_, SIGCONT);
}

void MosquittoBroker::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  wait_for(process_);
  process_ = -1;
}

std::vector<std::string> MosquittoBroker::publisher(const std::string& topic, int qos) const {
  return {"mosquitto_pub",
          "-h",
          net::loopback_host(),
          "-p",
          std::to_string(port_),
          "-q",
          std::to_string(qos),
          "-t",
          topic};
}

bool MosquittoBroker::publish(const std::string& topic, const std::vector<std::string>& payloads,
                              int qos) {
  std::string lines;
  for (const std::string& payload : payloads) lines += payload + "\n";
  auto arguments = publisher(topic, qos);
  arguments.push_back("-l");
  return run_process(arguments, lines) == 0;
}

bool MosquittoBroker::publish_one(const std::string& topic, const std::string& payload, bool retain,
                                  int qos) {
  auto arguments = publisher(topic, qos);
  arguments.push_back(payload.empty() ? "-n" : "-s");
  if (retain) arguments.push_back("-r");
  return run_process(arguments, payload) == 0;
}

}  // namespace edgecase::test
