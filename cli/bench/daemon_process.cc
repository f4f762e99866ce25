#include "bench/daemon_process.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "edgecase/random.h"
// tidy: allow include: HTTP over TLS is measured with what the daemon has itself
#include "tls/tls_setup.h"
// tidy: allow include: the same
#include "tls/tls_ends.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
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

}  // namespace edgecase::cli::bench
