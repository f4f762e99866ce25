// Options that many commands take: the daemon's address and the namespace; settings and --config,
// of those that work without a daemon; and times: --from, --since, --to, --tz, --local.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/configuration.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "wire/authority.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

// Parameters of a request to the daemon, unescaped.
using Parameters = std::vector<std::pair<std::string_view, std::string>>;

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

// --config FILE and flags for settings: what serve, `config show` and the offline commands take.
struct SettingArguments {
  std::string file;  // empty: the usual place, which need not exist
  config::NamedTexts flags;
};

// `arguments` must outlive the parse.
void add_setting_options(CLI::App& command, SettingArguments& arguments);
// --config, --metadata, --values and --key-file alone: what commands take that work on a store
// without a daemon.
void add_directory_options(CLI::App& command, SettingArguments& arguments);
// The store that the settings name, with the keys that open it: directories and encryption.
// InvalidArgument as load_settings(), and for a key file that cannot be used.
Result<Options> load_store_options(const SettingArguments& arguments);
// From the file, this process' environment, and the flags.
Result<config::Configuration> load_settings(const SettingArguments& arguments);

// Null: UTC for times that are shown, and none for those that are given.
using Zone = std::shared_ptr<const wire::TimeZone>;

// The half-open range of times of query, export, plot and erase. --tz and --local say whose clock
// times without an offset are and in which times are shown to people. Data (csv, ndjson, json,
// line) keep UTC.
struct RangeArguments {
  std::string from;
  std::string since;
  std::string to;
  Zone zone;
};

// `zone` lives as long as `command`. No such zone is wrong usage.
void add_zone_options(CLI::App& command, Zone& zone);
// With those of the zone.
void add_range_options(CLI::App& command, RangeArguments& range);
// InvalidArgument for what is no time, and for a range that ends before it begins.
Status check_range(const RangeArguments& range);
// As the daemon's parameters.
void append_range(const RangeArguments& range, Parameters& parameters);
// Where the range begins and ends; nullopt: it does not.
Result<std::optional<std::int64_t>> begin_of(const RangeArguments& range, std::int64_t now_ns);
Result<std::optional<std::int64_t>> end_of(const RangeArguments& range, std::int64_t now_ns);

// A time as the daemon takes it: what the zone decides is absolute. Relative times go as they are,
// the daemon's clock counts; so does what is no time, for the daemon to say so.
std::string sent_time(const std::string& text, const Zone& zone);
// Relative times mean something else whenever they are looked at: as they are now, "" as "".
Result<std::string> absolute_time(const std::string& text, const Zone& zone);

// Members of the document, and of all in it, that hold times ("first", "last", "time", ...) as the
// zone's clocks show them. Without a zone nothing changes.
void show_times_in(nlohmann::json& document, const Zone& zone);

// The VALUE of `edgecase write`: what kind of value the text is, and the request that stores it.

// How a table writes numbers and bools; `write` takes the plain form.
struct ValueSpelling {
  char decimal_mark = '.';
  bool any_case_of_bools = false;  // TRUE and True too
};

// "float", "int", "bool", "text", "bytes"; empty guesses: a number is a float, true and false are
// bools, everything else is text. What is a number: wire/NUMBERS.md; an int may be written `5.0`.
// nullopt: it says that there is no value (nothing, `nan`, `null`), which is a text only where the
// type says so. The value borrows `text`. InvalidArgument says what does not fit; it is that too
// where a number was and a text would be stored: `1e400`, `1,5`.
Result<std::optional<wire::Value>> parse_value(std::string_view text, std::string_view type,
                                               const ValueSpelling& spelling = {});

// By the name's ending: image/jpeg for x.jpg; application/octet-stream when it tells nothing.
std::string_view content_type_of_file(std::string_view path);

// {"namespace","device","sensor","time"?,"value","type"}: `value` is not bytes. `time` as given.
std::string reading_json(std::string_view namespace_name, std::string_view device,
                         std::string_view sensor, std::string_view time, const wire::Value& value);

}  // namespace edgecase::cli
