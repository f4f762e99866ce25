#include "connection.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "config/configuration.h"
#include "wire/names.h"

namespace edgecase::cli {
namespace {

constexpr const char* kNamespaceVariable = "EDGECASE_NAMESPACE";

std::string environment_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

// The socket of the configuration file at its usual place; the default when it cannot be read:
// whoever uses the command line need not be allowed to read the daemon's configuration.
std::string configured_socket() {
  config::Sources sources;
  const Result<config::Configuration> configuration = config::load_configuration(sources);
  return configuration.ok() ? configuration->settings.http.socket : config::HttpSettings().socket;
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionArguments& connection) {
  command.add_option(
      "--host", connection.host,
      "Daemon over TCP, http(s)://HOST:PORT, or unix:/PATH. Default: the Unix socket\n"
      "[env EDGECASE_HOST]");
  command.add_option("--socket", connection.socket,
                     "Daemon's Unix socket. Default: http.socket of the configuration\n"
                     "[env EDGECASE_HTTP_SOCKET]");
  command.add_option("--token", connection.token,
                     "Token to show. Default: none [env EDGECASE_TOKEN]");
  command.add_option(
      "--tls-ca", connection.tls_ca,
      "File of certificates to trust at https://. Default: those this machine trusts\n"
      "[env EDGECASE_TLS_CA]");
}

void add_purpose_option(CLI::App& command, std::string& purpose) {
  purpose = environment_text("EDGECASE_PURPOSE");
  command.add_option(
      "--purpose", purpose,
      "What for: devices with purposes are read for one of them only. Default: not said\n"
      "[env EDGECASE_PURPOSE]");
}

void add_namespace_options(CLI::App& command, NamespaceArguments& arguments, AllNamespaces all) {
  if (std::string name = environment_text(kNamespaceVariable); !name.empty()) {
    arguments.name = std::move(name);
  }
  CLI::Option* name = command.add_option("-n,--namespace", arguments.name,
                                         "Namespace of the devices [env EDGECASE_NAMESPACE]");
  name->capture_default_str();
  // An empty one would mean "default" to some commands: a variable that was never set.
  name->check([](const std::string& text) {
    const Status status = wire::check_name("namespace", text);
    return status.ok() ? std::string() : status.message();
  });
  if (all == AllNamespaces::Allowed) {
    command
        .add_flag("-A,--all-namespaces", arguments.all,
                  "All namespaces. Default: the one of --namespace")
        ->excludes(name);
  }
  // What is given is judged above; the environment's, where it counts, here.
  command.parse_complete_callback([name, &arguments] {
    if (name->count() > 0 || arguments.all) return;
    const Status status = wire::check_name("namespace", arguments.name);
    // tidy: allow throw: the parser's own way to be told of wrong usage
    if (!status.ok()) throw CLI::ValidationError(kNamespaceVariable, status.message());
  });
}

Result<DaemonAddress> parse_daemon_address(std::string_view text) {
  const auto wrong = [text](const std::string& what) {
    return invalid_argument("\"" + std::string(text) + "\" " + what);
  };
  DaemonAddress address;
  std::string_view rest = text;
  if (const std::size_t end = text.find("://"); end != std::string_view::npos) {
    const std::string_view scheme = text.substr(0, end);
    address.is_secure = wire::is_same_host(scheme, "https");
    if (!address.is_secure && !wire::is_same_host(scheme, "http")) {
      return wrong(
          "is no address of a daemon, use http://HOST:PORT, https://HOST:PORT or unix:/PATH");
    }
    rest.remove_prefix(end + 3);
  }
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  const std::size_t behind = rest.size() - end;
  rest = rest.substr(0, end);
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    return invalid_argument(
        "the address holds a user or a token, use --token or EDGECASE_TOKEN "
        "for it, and " +
        std::string(rest.substr(at + 1)) + " as the address");
  }
  if (text.substr(text.size() - behind).find_first_not_of('/') != std::string_view::npos) {
    return wrong("goes on behind the port: the daemon's paths begin at /, use " +
                 std::string(text.substr(0, text.size() - behind)));
  }
  auto authority = wire::parse_authority(rest);
  if (!authority.ok()) {
    return wrong(authority.status().message() + "; use HOST:PORT, as in localhost:8650");
  }
  address.at = *std::move(authority);
  constexpr std::uint16_t kHttp = 80, kHttps = 443;
  if (!address.at.port) address.at.port = address.is_secure ? kHttps : kHttp;
  return address;
}

namespace {

// A host that is a path names a socket: /run/..., unix:/run/..., unix:///run/...
ConnectionArguments with_socket_of_host(ConnectionArguments connection) {
  constexpr std::string_view kScheme = "unix:";
  std::string_view path = connection.host;
  if (wire::is_same_host(path.substr(0, kScheme.size()), kScheme)) {
    path.remove_prefix(kScheme.size());
    if (path.substr(0, 3) == "///") path.remove_prefix(2);
  }
  if (path.substr(0, 1) != "/" || path.substr(0, 2) == "//") return connection;
  connection.socket = path;
  connection.host.clear();
  return connection;
}

}  // namespace

ConnectionArguments resolve_connection(ConnectionArguments connection) {
  if (connection.token.empty()) connection.token = environment_text("EDGECASE_TOKEN");
  if (connection.tls_ca.empty()) connection.tls_ca = environment_text("EDGECASE_TLS_CA");
  if (!connection.host.empty()) return with_socket_of_host(std::move(connection));
  if (!connection.socket.empty()) return connection;
  connection.host = environment_text("EDGECASE_HOST");
  if (!connection.host.empty()) return with_socket_of_host(std::move(connection));
  connection.socket = environment_text("EDGECASE_HTTP_SOCKET");
  if (connection.socket.empty()) connection.socket = configured_socket();
  return connection;
}

}  // namespace edgecase::cli
