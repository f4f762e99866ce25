// A private EdgeCase daemon: this very executable as `serve`, on a store and a Unix socket of its
// own.
#pragma once

#include <memory>
#include <string>

#include "bench/child_process.h"
#include "bench/directories.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

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

}  // namespace edgecase::cli::bench
