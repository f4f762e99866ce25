#include "command_options.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "config/configuration.h"
#include "config/settings.h"
#include "edgecase/machine.h"
#include "output.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

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
  // As a host it would be the number of an address: 0.0.33.202.
  if (address.at.host.find_first_not_of("0123456789") == std::string::npos)
    return wrong("is a port without a host; use HOST:PORT, as in localhost:8650");
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

namespace {

std::string value_name(const config::Setting& setting) {
  switch (setting.kind) {
    case config::SettingKind::Size: return "SIZE";
    case config::SettingKind::Number: return "NUMBER";
    case config::SettingKind::Flag: return "true|false";
    case config::SettingKind::Choice: return std::string(setting.choices);
    case config::SettingKind::Duration:
    case config::SettingKind::Keeping: return "DURATION";
    case config::SettingKind::File: return "FILE";
    case config::SettingKind::List: return "TEXT,..";
    default: return "TEXT";
  }
}

}  // namespace

void add_setting_options(CLI::App& command, SettingArguments& arguments) {
  command
      .add_option(
          "--config", arguments.file,
          "Configuration file; must exist when given. Else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  const config::Settings defaults;
  for (const config::Setting& setting : config::settings_table()) {
    std::string help(setting.help);
    const std::string value = config::value_text(setting, defaults);
    help += value.empty() ? " Default: none." : " Default: " + value + ".";
    command
        .add_option_function<std::string>(
            config::flag_name(setting),
            [&arguments, key = std::string(setting.key)](const std::string& text) {
              arguments.flags.emplace_back(key, text);
            },
            help)
        ->type_name(value_name(setting))
        ->group("Settings");
  }
}

void add_directory_options(CLI::App& command, SettingArguments& arguments) {
  command
      .add_option("--config", arguments.file,
                  "Where the directories are read from; else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  for (const char* name : {"metadata", "values"}) {
    const auto take = [&arguments, key = std::string("storage.") + name](const std::string& text) {
      arguments.flags.emplace_back(key, text);
    };
    command
        .add_option_function<std::string>(std::string("--") + name, take,
                                          "The " + std::string(name) + " directory of the store")
        ->type_name("DIR");
  }
  command
      .add_option_function<std::string>(
          "--key-file",
          [&arguments](const std::string& text) {
            arguments.flags.emplace_back("storage.encryption-key-file", text);
          },
          "The key of an encrypted store, a file of 32 bytes")
      ->type_name("FILE");
}

Result<Options> load_store_options(const SettingArguments& arguments) {
  EC_ASSIGN_OR_RETURN(config::Configuration configuration, load_settings(arguments));
  EC_TRY(config::resolve_credentials(std::getenv(config::kCredentialsVariable), configuration));
  Options options;
  options.metadata_directory = configuration.settings.storage.metadata;
  options.values_directory = configuration.settings.storage.values;
  EC_ASSIGN_OR_RETURN(options.encryption, config::load_master_keys(configuration));
  return options;
}

Result<config::Configuration> load_settings(const SettingArguments& arguments) {
  config::Sources sources;
  if (!arguments.file.empty()) {
    sources.file = arguments.file;
    sources.missing_file = config::MissingFile::IsError;
  }
  sources.environment = config::process_environment();
  sources.flags = arguments.flags;
  return config::load_configuration(sources);
}

namespace {

std::string start_of(const RangeArguments& range) {
  return range.since.empty() ? range.from : "-" + range.since;
}

void set_zone(Result<wire::TimeZone> found, const char* option, Zone& zone) {
  // tidy: allow throw: this is how the parser is told of wrong usage
  if (!found.ok()) throw CLI::ValidationError(option, found.status().message());
  zone = std::make_shared<const wire::TimeZone>(std::move(found).value());
}

Result<std::optional<std::int64_t>> optional_time(const std::string& text, std::int64_t now_ns,
                                                  const Zone& zone) {
  if (text.empty()) return std::optional<std::int64_t>();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns, wire::parse_time_ns(text, now_ns, zone.get()));
  return std::optional<std::int64_t>(time_ns);
}

// Members of the daemon's documents that hold times.
constexpr std::array<std::string_view, 16> kTimeMembers = {
    "asked", "ends", "expires",   "first",  "from",   "gone",  "invisible", "last",
    "made",  "next", "last_used", "newest", "oldest", "since", "time",      "to"};

}  // namespace

void add_zone_options(CLI::App& command, Zone& zone) {
  CLI::Option* by_name =
      command
          .add_option_function<std::string>(
              "--tz",
              [&zone](const std::string& name) {
                set_zone(wire::TimeZone::find(name), "--tz", zone);
              },
              "Whose clock times without an offset are, and tables show: Europe/Berlin, +02:00.\n"
              "Default: UTC, and a time of day without an offset is refused")
          ->type_name("ZONE");
  command
      .add_flag_callback(
          "--local",
          [&zone] { set_zone(wire::TimeZone::local(std::getenv("TZ")), "--local", zone); },
          "As --tz with this machine's own zone")
      ->excludes(by_name);
}

void add_range_options(CLI::App& command, RangeArguments& range) {
  CLI::Option* from = command.add_option(
      "--from", range.from,
      "First time: 2026-11-20T14:00:00Z, 2026-11-20, @1763647200, -15m, today, yesterday, now.\n"
      "Default: the beginning");
  command
      .add_option("--since", range.since,
                  "How far back: 15m, 6h, 7d, 1h30m; units ns us ms s m h d w y. Default: --from")
      ->excludes(from);
  command.add_option("--to", range.to,
                     "End, itself not included, written as --from. Default: no end");
  add_zone_options(command, range.zone);
}

Result<std::optional<std::int64_t>> begin_of(const RangeArguments& range, std::int64_t now_ns) {
  if (!range.since.empty()) EC_TRY(wire::parse_duration_ns(range.since).status());
  return optional_time(start_of(range), now_ns, range.zone);
}

Result<std::optional<std::int64_t>> end_of(const RangeArguments& range, std::int64_t now_ns) {
  return optional_time(range.to, now_ns, range.zone);
}

Status check_range(const RangeArguments& range) {
  const std::int64_t now_ns = system_clock().wall_ns();
  EC_ASSIGN_OR_RETURN(const auto from_ns, begin_of(range, now_ns));
  EC_ASSIGN_OR_RETURN(const auto to_ns, end_of(range, now_ns));
  if (from_ns && to_ns && *to_ns < *from_ns) {
    return invalid_argument("the range ends before it begins: " + start_of(range) + " to " +
                            range.to);
  }
  return ok();
}

void append_range(const RangeArguments& range, Parameters& parameters) {
  if (std::string start = start_of(range); !start.empty()) {
    parameters.emplace_back("from", sent_time(start, range.zone));
  }
  if (!range.to.empty()) parameters.emplace_back("to", sent_time(range.to, range.zone));
}

std::string sent_time(const std::string& text, const Zone& zone) {
  if (zone == nullptr || !wire::depends_on_zone(text)) return text;
  const Result<std::string> absolute = absolute_time(text, zone);
  return absolute.ok() ? *absolute : text;
}

Result<std::string> absolute_time(const std::string& text, const Zone& zone) {
  if (text.empty()) return std::string();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      wire::parse_time_ns(text, system_clock().wall_ns(), zone.get()));
  std::string absolute;
  wire::append_time(time_ns, absolute);
  return absolute;
}

void show_times_in(nlohmann::json& document, const Zone& zone) {
  if (zone == nullptr || !document.is_structured()) return;
  for (auto at = document.begin(); at != document.end(); ++at) {
    const bool is_time =
        document.is_object() && at->is_string() &&
        std::find(kTimeMembers.begin(), kTimeMembers.end(), at.key()) != kTimeMembers.end();
    if (!is_time) {
      show_times_in(*at, zone);
    } else if (const auto time = wire::parse_rfc3339_ns(at->get_ref<const std::string&>());
               time.ok()) {
      *at = short_time(*time, zone.get());
    }
  }
}

}  // namespace edgecase::cli
