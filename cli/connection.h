// Options common to commands that talk to a daemon: its address, and the namespace.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "wire/authority.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

struct ConnectionArguments {
  std::string host;    // "https://127.0.0.1:8650"; "unix:/PATH" is the socket there
  std::string socket;  // path
  std::string token;
  std::string tls_ca;  // file; "": what this machine trusts
};

struct NamespaceArguments {
  std::string name = "default";
  bool all = false;

  // What the daemon's `ns` parameter takes.
  std::string parameter() const { return all ? std::string("*") : name; }
};

// --host, --socket, --token, --tls-ca.
void add_connection_options(CLI::App& command, ConnectionArguments& connection);

// --purpose (EDGECASE_PURPOSE): what readings are read for.
void add_purpose_option(CLI::App& command, std::string& purpose);

// Where --host says that the daemon is.
struct DaemonAddress {
  bool is_secure = false;  // https
  wire::Authority at;      // with a port

  std::string text() const { return (is_secure ? "https://" : "http://") + at.text(); }
};
// What curl takes: HOST or HOST:PORT, with http:// or https:// before it and a slash behind. What
// would be passed over without a word is refused: a path, a user. InvalidArgument says how it is
// spelt.
Result<DaemonAddress> parse_daemon_address(std::string_view text);

enum class AllNamespaces : unsigned char { Allowed, NotAllowed };
// -n/--namespace (EDGECASE_NAMESPACE), and -A where `all` allows it. A name that can be none is
// wrong usage, wherever it comes from. `arguments` lives as long as `command`, whose
// parse_complete_callback() is taken.
void add_namespace_options(CLI::App& command, NamespaceArguments& arguments, AllNamespaces all);

// Fills in what was not given. The daemon is named by --host, else --socket, else EDGECASE_HOST,
// else EDGECASE_HTTP_SOCKET, else http.socket of the configuration file, else its default. The one
// of `host` and `socket` that is not empty is used, `host` first.
ConnectionArguments resolve_connection(ConnectionArguments connection);

}  // namespace edgecase::cli
