// Processes that the bench starts: servers of a measurement, what they use and how they end; among
// them a private daemon and a private mosquitto. And what a feature costs: daemons with it and
// without it, in turns (DaemonComparison).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads.h"
#include "bench/raw_connection.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// A private server for a measurement: a process of ours that ends with us, whatever way we end.
class ChildProcess {
 public:
  // Runs `arguments` (the first is the program, looked for in PATH); what it prints goes to
  // `log_path`. An error only when nothing could be started; a program that is not there is seen
  // as a process that has ended.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& arguments,
                                                     const std::string& log_path);
  // Asks it to end, waits, and makes it end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  bool running();
  void stop();  // SIGTERM, then SIGKILL after kStopSeconds
  void kill();  // SIGKILL
  // The last lines it printed, for messages.
  std::string last_words() const;

  static constexpr int kStopSeconds = 20;

 private:
  ChildProcess(pid_t id, std::string log_path) : id_(id), log_path_(std::move(log_path)) {}
  bool wait_for_end(double seconds);

  pid_t id_;
  std::string log_path_;
  bool ended_ = false;
};

// A TCP port of the loopback interface that nobody had a moment ago.
Result<std::uint16_t> free_port();

// Calls `ready` until it is true, at most for `seconds`; Unavailable with the child's last words
// when it ends or the time does.
template <typename Ready>
Status wait_until_ready(ChildProcess& child, double seconds, const Ready& ready);

void sleep_ms(int milliseconds);

template <typename Ready>
Status wait_until_ready(ChildProcess& child, double seconds, const Ready& ready) {
  for (int waited_ms = 0; waited_ms < static_cast<int>(seconds * 1000); ++waited_ms) {
    if (ready()) return ok();
    if (!child.running()) break;
    sleep_ms(1);
  }
  return unavailable("the server did not start: " + child.last_words());
}

// Ctrl-C, asked for instead of suffered: a workload looks between two operations, returns, and its
// directories and processes are cleared away as at any other end.

// From now on SIGINT and SIGTERM only set the flag.
void watch_for_interrupt();
bool interrupted();
// Cancelled once interrupted.
Status check_interrupt();

// Reads from the kernel what a process uses: memory, and bytes it made the drives write.
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

// A way to the daemon beside its Unix socket: HTTP on a port of the system's choice, see
// tcp_endpoint().
enum class Transport : unsigned char { UnixSocket, Tcp, Tls };

struct DaemonOptions {
  std::string metadata_parent;  // as --metadata and --values
  std::string values_parent;
  std::string broker;             // "mqtt://127.0.0.1:PORT"; empty: none
  bool listens_for_mqtt = false;  // on a port of the system's choice, see mqtt_endpoint()
  std::string audit_mode = {};    // empty: the daemon's own
  bool encrypted = false;         // with a key of its own
  std::string retention = {};     // "90d", with exact expiry; empty: the daemon's own
  Transport transport = Transport::UnixSocket;
  // How many devices there will be, of a series each, with as much memory as they need; 0: as many
  // as usual.
  std::uint64_t devices = 0;
};

// A private EdgeCase daemon: this very executable as `serve`, on a store and a Unix socket of its
// own.
class DaemonProcess {
 public:
  // Makes the directories; start() makes the process.
  static Result<std::unique_ptr<DaemonProcess>> create(const DaemonOptions& options);

  // Returns when the daemon takes writes; how long that took is in start_ns().
  Status start();
  void stop() { child_.reset(); }
  void kill() {
    if (child_) child_->kill();
    child_.reset();
  }

  Endpoint endpoint() const { return {socket_path_, 0}; }
  // Where HTTP is spoken over TCP, by TLS if that was wanted.
  Result<Endpoint> tcp_endpoint() const;
  // Where MQTT publishers connect; asks the daemon.
  Result<Endpoint> mqtt_endpoint() const;
  pid_t id() const { return child_->id(); }
  std::int64_t start_ns() const { return start_ns_; }
  const StoreDirectories& directories() const { return directories_; }

 private:
  DaemonProcess() = default;

  std::unique_ptr<PrivateDirectory> run_directory_;  // socket, configuration, log: a short path
  StoreDirectories directories_;
  std::string socket_path_;
  std::string config_path_;
  std::string log_path_;
  std::uintmax_t log_start_ = 0;  // where what the process says begins
  bool has_tcp_ = false;
  std::shared_ptr<const tls::TlsClient> tls_;  // that trusts the daemon
  std::unique_ptr<ChildProcess> child_;
  std::int64_t start_ns_ = 0;
};

// A private mosquitto, and a paho subscriber that stores nothing: what the library and the broker
// alone can take. The broker's queues are unlimited, so that it drops nothing however slow a
// subscriber is; all else is as installed.

// Gone with its directory at the end of its scope.
class MosquittoProcess {
 public:
  // Unavailable when mosquitto is not installed.
  static Result<std::unique_ptr<MosquittoProcess>> start(const std::string& parent);

  std::uint16_t port() const { return port_; }
  Endpoint endpoint() const { return {"", port_}; }

 private:
  MosquittoProcess() = default;

  std::unique_ptr<PrivateDirectory> directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> child_;
};

// Counts on paho's threads.
class CountingSubscriber {
 public:
  // MQTT 3.1.1 with as many messages on their way as the broker likes, or MQTT 5 with as many as
  // the daemon asks for.
  enum class Window : unsigned char { Usual, Wide };
  static constexpr std::uint16_t kWideWindow = 1'024;

  // Subscribed to sensors/# when it returns.
  static Result<std::unique_ptr<CountingSubscriber>> connect(std::uint16_t port, int qos,
                                                             Window window = Window::Usual);
  ~CountingSubscriber();
  CountingSubscriber(const CountingSubscriber&) = delete;
  CountingSubscriber& operator=(const CountingSubscriber&) = delete;

  std::uint64_t messages() const { return messages_; }

 private:
  CountingSubscriber() = default;
  struct Callbacks;
  void begin_to_connect();

  void* client_ = nullptr;
  int qos_ = 0;
  Window window_ = Window::Usual;
  std::atomic<int> subscribed_{0};  // 1 yes, -1 refused
  std::atomic<std::uint64_t> messages_{0};
};

// What is sent, and what of it is counted.
struct DaemonLoad {
  std::string name;  // "ingest_16": begins the names of its figures
  const std::vector<std::string>* requests = nullptr;
  std::uint32_t clients = 1;
  double seconds = 0;             // at most; 0: until all is sent
  double amount_per_request = 1;  // of what the rate counts
};

// Daemons that differ in one thing, each under the same loads, taking turns: what else the machine
// does costs none of them more than the others.
class DaemonComparison {
 public:
  // The others are compared with the first one.
  explicit DaemonComparison(std::vector<std::string> variants);

  const std::vector<std::string>& variants() const { return variants_; }
  // Calls `turn` for each variant; another one comes first each time.
  Status take_turns(const std::function<Status(std::size_t variant)>& turn);
  // Sends the load to the variant's daemon, and remembers how fast that was.
  Result<LoadResult> measure(std::size_t variant, const DaemonProcess& daemon,
                             const Endpoint& endpoint, const DaemonLoad& load);

  // Medians of the rounds. The ratio is that of a round's rates: its loads were close in time.
  double rate(const std::string& load, std::size_t variant) const;
  double ratio(const std::string& load, std::size_t variant) const;
  // For each load: <load>_<variant>_per_second, _ratio, and of the daemon, a request: _cpu_us,
  // _syncs of its log, _waits of its threads.
  void add_figures(Report& report) const;

 private:
  struct Measured {
    std::vector<double> rates, cpu_us, syncs, waits;  // by round
  };
  const Measured& measured(const std::string& load, std::size_t variant) const;

  const std::vector<std::string> variants_;
  std::size_t first_ = 0;
  std::vector<std::string> loads_;  // in the order they came
  std::map<std::pair<std::string, std::size_t>, Measured> measured_;
};

}  // namespace edgecase::cli::bench
