#include "bench/processes.h"

#include <MQTTAsync.h>
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
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "bench/loads.h"
#include "edgecase/machine.h"
// tidy: allow include: HTTP over TLS is measured with what the daemon has itself
#include "tls/tls_ends.h"
// tidy: allow include: the same
#include "wire/contract.h"

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

namespace {

constexpr double kStartSeconds = 60;

// This one, or beside the bench with peers, which is no daemon, the one that is.
std::string daemon_executable() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return "edgecase";
  const std::string own(path, static_cast<std::size_t>(size));
  const std::size_t name = own.rfind('/') + 1;
  return own.substr(name) == "edgecase-bench-peers" ? own.substr(0, name) + "edgecase" : own;
}

std::string key_path(const std::string& socket) {
  return socket + ".key";
}

std::string key_setting(const std::string& socket) {
  return "encryption-key-file = \"" + key_path(socket) + "\"\n";
}

Status write_key(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t number = system_random().next();
    file.write(reinterpret_cast<const char*>(&number), sizeof number);
  }
  file.close();
  std::error_code error;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read, error);
  return file && !error ? ok() : io_error("cannot write " + path);
}

std::string certificate_path(const std::string& socket) {
  return socket + ".crt";
}

std::string certificate_key_path(const std::string& socket) {
  return socket + ".crt.key";
}

std::string http_settings(const std::string& socket, Transport transport) {
  std::string text = "[http]\nsocket = \"" + socket + "\"\nlisten = \"";
  if (transport != Transport::UnixSocket) text += "127.0.0.1:0";
  text += "\"\n";
  if (transport == Transport::Tls) {
    text += "tls-cert = \"" + certificate_path(socket) + "\"\n";
    text += "tls-key = \"" + certificate_key_path(socket) + "\"\n";
  }
  return text;
}

// Names, and what is said of devices, are parts of the memory limit: more devices need more of it.
constexpr std::uint64_t kMemoryShareMiB = 64;
constexpr std::uint64_t kDevicesPerShare = 110'000;

std::uint64_t memory_shares(std::uint64_t devices) {
  return std::max<std::uint64_t>(1, (devices + kDevicesPerShare - 1) / kDevicesPerShare);
}

std::string configuration(const StoreDirectories& directories, const std::string& socket,
                          const DaemonOptions& options) {
  std::string text;
  text += "[storage]\nmetadata = \"" + directories.metadata + "\"\n";
  text += "values = \"" + directories.values + "\"\n";
  const std::uint64_t shares = memory_shares(options.devices);
  if (shares > 1)
    text += "memory-limit = \"" + std::to_string(shares * kMemoryShareMiB) + "MiB\"\n";
  if (options.encrypted) text += key_setting(socket);
  if (!options.retention.empty())
    text += "retention = \"" + options.retention + "\"\nexpiry = \"exact\"\n";
  text += http_settings(socket, options.transport);
  if (!options.audit_mode.empty()) text += "[audit]\nmode = \"" + options.audit_mode + "\"\n";
  if (options.devices != 0) {
    const std::string most = std::to_string(std::max<std::uint64_t>(options.devices, 1000));
    text += "[limits]\ndevices = " + most + "\nseries = " + most + "\n";
  }
  text += "[mqtt]\nbroker = \"" + options.broker + "\"\n";
  if (options.listens_for_mqtt) text += "listen = \"127.0.0.1:0\"\n";
  text += "[[mqtt.rule]]\ntopic = \"sensors/{device}/{sensor}\"\n";
  return text;
}

}  // namespace

Result<std::unique_ptr<DaemonProcess>> DaemonProcess::create(const DaemonOptions& options) {
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess());
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).string();
  EC_ASSIGN_OR_RETURN(daemon->run_directory_, PrivateDirectory::create(temporary));
  EC_ASSIGN_OR_RETURN(daemon->directories_,
                      create_store_directories(options.metadata_parent, options.values_parent));
  daemon->socket_path_ = daemon->run_directory_->path() + "/socket";
  daemon->config_path_ = daemon->run_directory_->path() + "/edgecase.toml";
  daemon->log_path_ = daemon->run_directory_->path() + "/log";
  const std::string& socket = daemon->socket_path_;
  daemon->has_tcp_ = options.transport != Transport::UnixSocket;
  if (options.encrypted) EC_TRY(write_key(key_path(socket)));
  if (options.transport == Transport::Tls) {
    EC_TRY(tls::write_own_certificate(certificate_path(socket), certificate_key_path(socket)));
    EC_ASSIGN_OR_RETURN(daemon->tls_, tls::TlsClient::load(certificate_path(socket), {}));
  }
  std::ofstream file(daemon->config_path_);
  file << configuration(daemon->directories_, daemon->socket_path_, options);
  file.close();
  if (!file) return io_error("cannot write " + daemon->config_path_);
  return daemon;
}

Status DaemonProcess::start() {
  std::error_code error;
  log_start_ = std::filesystem::file_size(log_path_, error);
  if (error) log_start_ = 0;
  const auto begun = std::chrono::steady_clock::now();
  EC_ASSIGN_OR_RETURN(
      child_,
      ChildProcess::start({daemon_executable(), "serve", "--config", config_path_}, log_path_));
  EC_TRY(wait_until_ready(*child_, kStartSeconds, [this] {
    HttpClient client(endpoint());
    return client.get(wire::routes::kReadyz).ok() && (!has_tcp_ || tcp_endpoint().ok());
  }));
  start_ns_ = (std::chrono::steady_clock::now() - begun).count();
  return ok();
}

// The log says it.
Result<Endpoint> DaemonProcess::tcp_endpoint() const {
  std::ifstream file(log_path_);
  file.seekg(static_cast<std::streamoff>(log_start_));
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kAddress = "127.0.0.1:";
  const std::size_t line = log.find("listening on ");
  const std::size_t at = line == std::string::npos ? line : log.find(kAddress, line);
  Endpoint found;
  found.tls = tls_;
  if (at != std::string::npos) {
    const char* const port = log.data() + at + kAddress.size();
    std::from_chars(port, log.data() + log.size(), found.port);
  }
  if (found.port == 0) return unavailable("the daemon takes no TCP connections");
  return found;
}

Result<Endpoint> DaemonProcess::mqtt_endpoint() const {
  HttpClient client(endpoint());
  EC_ASSIGN_OR_RETURN(const std::string status, client.get(wire::routes::kStatus));
  constexpr std::string_view kAddress = "\"address\":\"127.0.0.1:";
  const std::size_t at = status.find(kAddress);
  Endpoint found;
  if (at != std::string::npos) {
    const char* const port = status.data() + at + kAddress.size();
    std::from_chars(port, status.data() + status.size(), found.port);
  }
  if (found.port == 0) return unavailable("the daemon takes no MQTT connections");
  return found;
}

namespace {

constexpr double kMosquittoStartSeconds = 20;

// Debian puts it where a user's PATH does not lead.
std::string find_mosquitto() {
  constexpr const char* kUsual = "/usr/sbin/mosquitto";
  return access(kUsual, X_OK) == 0 ? kUsual : "mosquitto";
}

constexpr int kConnectTimeoutMs = 10'000;
constexpr const char* kFilter = "sensors/#";

}  // namespace

Result<std::unique_ptr<MosquittoProcess>> MosquittoProcess::start(const std::string& parent) {
  std::unique_ptr<MosquittoProcess> broker(new MosquittoProcess());
  EC_ASSIGN_OR_RETURN(broker->directory_, PrivateDirectory::create(parent));
  EC_ASSIGN_OR_RETURN(broker->port_, free_port());
  const std::string config_path = broker->directory_->path() + "/mosquitto.conf";
  std::ofstream file(config_path);
  file << "listener " << broker->port_ << " 127.0.0.1\nallow_anonymous true\n"
       << "persistence false\nmax_queued_messages 0\nlog_dest stdout\nlog_type error\n";
  // Started by root it would change to a user who cannot read the private directory.
  if (geteuid() == 0) file << "user root\n";
  file.close();
  if (!file) return io_error("cannot write " + config_path);
  EC_ASSIGN_OR_RETURN(broker->child_, ChildProcess::start({find_mosquitto(), "-c", config_path},
                                                          broker->directory_->path() + "/log"));
  EC_TRY(wait_until_ready(*broker->child_, kMosquittoStartSeconds, [&broker] {
    return MqttPublisher::connect(broker->endpoint(), "edgecase-bench-probe").ok();
  }));
  return broker;
}

struct CountingSubscriber::Callbacks {
  static int arrived(void* context, char* topic, int, MQTTAsync_message* message) {
    static_cast<CountingSubscriber*>(context)->messages_.fetch_add(1, std::memory_order_relaxed);
    MQTTAsync_freeMessage(&message);
    MQTTAsync_free(topic);
    return 1;
  }
  template <typename Success>
  static void subscribed(void* context, Success*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = 1;
  }
  template <typename Failure>
  static void failed(void* context, Failure*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = -1;
  }
  template <typename Success>
  static void connected(void* context, Success*) {
    auto* self = static_cast<CountingSubscriber*>(context);
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    if (self->window_ == Window::Wide) {
      options.onSuccess5 = subscribed<MQTTAsync_successData5>;
      options.onFailure5 = failed<MQTTAsync_failureData5>;
    } else {
      options.onSuccess = subscribed<MQTTAsync_successData>;
      options.onFailure = failed<MQTTAsync_failureData>;
    }
    options.context = context;
    if (MQTTAsync_subscribe(self->client_, kFilter, self->qos_, &options) != MQTTASYNC_SUCCESS) {
      self->subscribed_ = -1;
    }
  }
};

Result<std::unique_ptr<CountingSubscriber>> CountingSubscriber::connect(std::uint16_t port, int qos,
                                                                        Window window) {
  std::unique_ptr<CountingSubscriber> self(new CountingSubscriber());
  self->qos_ = qos;
  self->window_ = window;
  const std::string address = "tcp://127.0.0.1:" + std::to_string(port);
  MQTTAsync_createOptions creation = MQTTAsync_createOptions_initializer;
  creation.MQTTVersion = window == Window::Wide ? MQTTVERSION_5 : MQTTVERSION_3_1_1;
  if (MQTTAsync_createWithOptions(&self->client_, address.c_str(), "edgecase-bench-counter",
                                  MQTTCLIENT_PERSISTENCE_NONE, nullptr,
                                  &creation) != MQTTASYNC_SUCCESS ||
      MQTTAsync_setCallbacks(self->client_, self.get(), nullptr, Callbacks::arrived, nullptr) !=
          MQTTASYNC_SUCCESS) {
    return io_error("cannot create an MQTT client");
  }
  self->begin_to_connect();
  for (int waited_ms = 0; self->subscribed_ == 0 && waited_ms < kConnectTimeoutMs; ++waited_ms) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  if (self->subscribed_ != 1) return unavailable("cannot subscribe at the broker");
  return self;
}

void CountingSubscriber::begin_to_connect() {
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  const MQTTAsync_connectOptions of_five = MQTTAsync_connectOptions_initializer5;
  MQTTProperties properties = MQTTProperties_initializer;
  if (window_ == Window::Wide) {
    options = of_five;
    MQTTProperty maximum;
    maximum.identifier = MQTTPROPERTY_CODE_RECEIVE_MAXIMUM;
    maximum.value.integer2 = kWideWindow;
    MQTTProperties_add(&properties, &maximum);
    options.connectProperties = &properties;
    options.onSuccess5 = Callbacks::connected<MQTTAsync_successData5>;
    options.onFailure5 = Callbacks::failed<MQTTAsync_failureData5>;
  } else {
    options.cleansession = 1;
    options.onSuccess = Callbacks::connected<MQTTAsync_successData>;
    options.onFailure = Callbacks::failed<MQTTAsync_failureData>;
  }
  options.context = this;
  if (MQTTAsync_connect(client_, &options) != MQTTASYNC_SUCCESS) subscribed_ = -1;
  MQTTProperties_free(&properties);
}

CountingSubscriber::~CountingSubscriber() {
  if (client_ != nullptr) MQTTAsync_destroy(&client_);
}

}  // namespace edgecase::cli::bench
