// Every setting of the daemon: as values (Settings), and the one table that
// drives the file, the environment, the flags, `config show`, `config example` and the manual page
// (settings_table.cc); and what the address of a [[forward]] means (forward_target.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "edgecase/status.h"
#include "wire/line_protocol.h"
#include "wire/selector.h"

namespace edgecase::config {

struct StorageSettings {
  std::string metadata = "/var/lib/edgecase";
  std::string values = "/var/lib/edgecase/values";
  std::uint64_t memory_limit_bytes = 64u << 20;
  std::uint64_t wal_limit_bytes = 256u << 20;
  std::uint64_t reserve_bytes = 48u << 20;     // on each drive, for erasing when it is full
  std::uint64_t keep_free_bytes = 128u << 20;  // on each drive, for others
  std::string retention = "forever";
  std::string expiry = "bounded";
  std::string on_full = "reject";
  std::string metadata_location, values_location;  // where the drives are; "": nobody says
  std::string locations;                           // where data may be, with commas; "": anywhere
  std::string scrub = "30d";                       // "forever": never
  std::string encryption_key_file;                 // "": nothing is encrypted at rest
  std::string encryption_previous_key_file;        // while the key is being changed
};

struct HttpSettings {
  std::string socket = "/run/edgecase/edgecase.sock";
  std::string listen = "localhost:8650";  // both loopbacks
  std::vector<std::string> names;         // of this board, beside its own
  std::vector<std::string> proxies;       // whose word of who asks is believed
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca, tls_client_crl;  // of clients' certificates; "": none is asked for
  bool allow_insecure = false;
  std::uint32_t threads = 4;                        // requests served side by side
  std::uint32_t readers = 80;                       // threads that read, at most
  std::uint32_t connections = 256;                  // open at once
  std::uint32_t connections_per_address = 256;      // of them, over TCP
  std::uint64_t head_limit_bytes = 16u << 10;       // request line and headers
  std::uint32_t headers = 100;                      // of one request
  std::uint64_t body_limit_bytes = 16u << 20;       // of one request, after decompression
  std::uint64_t in_flight_limit_bytes = 24u << 20;  // of all request bodies together
};

// One [[mqtt.rule]] table, as written; mqtt/topic_rule.h gives it meaning.
struct MqttRuleSettings {
  std::string topic;
  std::string preset;
  std::string payload = "auto";
  std::string sensor;  // fixed name or template, when the topic has none
  std::string device;  // JSON pointer ("/device_id") or fixed name
  std::string time;    // JSON pointer
  std::string time_format = "auto";
  std::string time_zone;       // of times without an offset
  std::string records;         // JSON pointer to an array whose elements are messages of their own
  std::string namespace_name;  // "": default, or {namespace} of the topic
  std::string retention, owner, purpose;  // of its readings and new devices
  int qos = 1;
  int line = 0;       // of the file, for messages; 0 when not from a file
  std::string where;  // "edgecase.toml:12:1"; empty when not from a file

  bool operator==(const MqttRuleSettings&) const = default;
};

struct MqttSettings {
  std::string broker = "mqtt://127.0.0.1:1883";  // "" turns the client off
  std::string username;
  std::string password_file;
  std::string tls_ca;
  std::string listen;             // where devices publish straight to the daemon; "" turns it off
  std::string tls_cert, tls_key;  // of `listen`
  std::string tls_client_ca, tls_client_crl;  // of clients of `listen`
  std::uint32_t connections = 256;            // of `listen`, open at once
  std::uint32_t connections_per_address = 256;
  std::uint64_t in_flight_limit_bytes = 4u << 20;  // of `listen`: packets not whole yet, together
  std::string subscriptions = "refuse";            // of clients of `listen`; or "grant"
  std::string client_id = "edgecase";  // persistent session: keep it stable, one daemon each
  std::vector<MqttRuleSettings> rules;
};

struct InfluxSettings {
  std::vector<wire::LineRule> rules;  // [[influx.rule]] tables
};

struct LimitSettings {
  std::uint32_t namespaces = 256;
  std::uint32_t devices = 20'000;
  std::uint32_t series = 100'000;
  std::uint32_t device_rate = 0;        // readings a second of one device; 0: any number
  std::uint32_t device_burst = 10'000;  // of them at once, after a pause
  std::uint32_t json_depth = 32;
  std::uint32_t json_keys = 64;                  // of one object, over HTTP
  std::uint32_t json_leaves = 1'024;             // values of one MQTT message
  std::uint32_t points_per_batch = 1'000'000;    // readings of one HTTP request
  std::uint64_t message_limit_bytes = 1u << 20;  // of one MQTT payload
  std::uint64_t rejected_messages = 10'000;      // kept in `_rejected`
  std::string time_ahead = "1d";   // how far ahead of the clock a time in an MQTT message may lie
  std::uint32_t line_errors = 20;  // bad lines named in one answer
  std::uint32_t query_statements = 64;  // of InfluxQL in one request
  // What one question may take; query::QueryLimits.
  std::uint64_t query_points = 200'000'000;
  std::uint64_t query_series = 100'000;
  std::uint64_t query_windows = 10'000'000;
  std::uint64_t sender_rate_bytes = 1u << 10;  // a second, of a body or packet on its way
};

// One [[forward]] table, as written; parse_forward() gives it meaning.
struct ForwardSettings {
  std::string name, to, database, bucket, org, namespace_name;
  std::vector<std::string> select = {"*/*"};
  std::string from = "now";
  std::string token_file, username, tls_ca, tls_cert, tls_key;
  std::string every;
  bool fresh_first = true;
  std::string budget, keep_until_sent;
  bool pseudonyms = false;
  bool retention = false;
  std::string location;
  std::string where;  // "edgecase.toml:12:1"

  bool operator==(const ForwardSettings&) const = default;
};

struct AuditSettings {
  std::string mode = "batched";
  std::string retention = "180d";
  std::uint64_t size_limit_bytes = 1u << 30;
};

struct Settings {
  StorageSettings storage;
  HttpSettings http;
  MqttSettings mqtt;
  InfluxSettings influx;
  LimitSettings limits;
  AuditSettings audit;
  std::vector<ForwardSettings> forward;
};

// The table of settings: one that has a row there exists everywhere.
//
// The key `storage.values` is `[storage] values` in the file, EDGECASE_STORAGE_VALUES in the
// environment and --storage.values on the command line.

enum class SettingKind : unsigned char {
  Text,
  File,      // a path, or credential:NAME (credentials.cc)
  Choice,    // one of Setting::choices
  Duration,  // "15m", or "forever"
  Keeping,   // the same, and tiers: "7d then 1m:90d" (wire/tiers.h)
  Size,      // bytes: "64MiB", or a whole number
  Number,
  Flag,  // true or false
  List,  // of texts; as one text with commas between
};

// How far this version honours a setting.
enum class Support : unsigned char {
  Full,
  Refused,  // unsafe to ignore: anything but the default is an error
};

// The member of Settings that holds the value.
using Member = std::variant<std::string& (*)(Settings&), std::uint64_t& (*)(Settings&),
                            std::uint32_t& (*)(Settings&), bool& (*)(Settings&),
                            std::vector<std::string>& (*)(Settings&)>;

struct Setting {
  std::string_view key;
  SettingKind kind;
  Member member;
  std::string_view help;  // one sentence, unit included
  std::uint64_t minimum = 0;
  std::uint64_t maximum = 0;      // of Size and Number
  std::string_view choices = {};  // "reject|evict-oldest"
  Support support = Support::Full;
  std::string_view support_note = {};  // why, in words that follow the key

  std::string_view section() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
};

// In the order of the sample file; settings of one section follow each other.
std::span<const Setting> settings_table();
const Setting* find_setting(std::string_view key);  // null: no such key
// The key that a wrong one was probably meant to be: a near one, one with a word more or less, or
// what other programs call it. `prefix` is empty for a section, else "storage.", "mqtt.rule.",
// "forward."; so is the answer's begin. "": none is near.
std::string meant_key(std::string_view prefix, std::string_view name);

inline constexpr std::string_view kEnvironmentPrefix = "EDGECASE_";
std::string environment_name(const Setting& setting);  // "EDGECASE_STORAGE_VALUES"
std::string flag_name(const Setting& setting);         // "--storage.values"

// Sets from text as the environment and flags have it. InvalidArgument says what is wrong and what
// would be right, without the key.
Status set_from_text(const Setting& setting, std::string_view text, Settings& settings);
// The value as text that set_from_text takes back.
std::string value_text(const Setting& setting, const Settings& settings);
// The same as TOML: quoted where TOML wants quotes.
std::string toml_text(const Setting& setting, const Settings& settings);
std::string quote_toml(std::string_view text);

// The keys of one [[mqtt.rule]] table; `qos` is the only number.
struct RuleKey {
  std::string_view name;
  std::string MqttRuleSettings::*text;  // null for qos
  std::string_view help;
};
std::span<const RuleKey> rule_keys();

// The keys of one [[influx.rule]] table.
inline constexpr std::string_view kMeasurementHelp =
    "name of measurements, with * and ?; otherwise all";
inline constexpr std::string_view kLineDeviceHelp =
    "the device's name, with keys of tags in braces";

// One [[forward]] table: its keys, and what its texts mean. The file's reader, `config show`, the
// example and the manual page go by forward_keys(); daemon/forward/ works with a ForwardTarget.
// Nothing here has state.

// Targets at once. Each has a thread, and bounds in the engine (forward/cursor.h).
inline constexpr std::size_t kForwardTargetsMax = 8;

// The keys of one [[forward]] table, in the order of the example.
struct ForwardKey {
  using Member = std::variant<std::string ForwardSettings::*,
                              std::vector<std::string> ForwardSettings::*, bool ForwardSettings::*>;
  std::string_view name;
  Member member;
  std::string_view help;
  Support support = Support::Full;  // Refused: anything but the default is an error
  bool is_file = false;             // a path, or credential:NAME
};
std::span<const ForwardKey> forward_keys();
// The value as TOML.
std::string forward_toml(const ForwardKey& key, const ForwardSettings& settings);

enum class ForwardKind : unsigned char { Influx, EdgeCase };
enum class ForwardFrom : unsigned char { Now, Beginning, Time };

// "ns:device/sensor"; the namespace `*` is all of them.
struct ForwardSelection {
  std::string namespace_name;
  wire::Selector selector;
};

struct ForwardTarget {
  ForwardKind kind = ForwardKind::Influx;
  bool is_secure = false;
  std::string host;  // IPv6 without brackets
  std::uint16_t port = 0;
  std::string path;  // before the API's own: "" or "/insert/0/influx"
  std::vector<ForwardSelection> selections;
  ForwardFrom from = ForwardFrom::Now;
  std::int64_t from_ns = 0;                   // of Time: readings before it are not sent
  std::uint64_t budget_bytes_per_second = 0;  // of the link; 0: whatever it takes
  std::int64_t every_ns = 0;                  // windows; 0: readings as they are
  std::int64_t keep_ns = 0;                   // what waits is spared for so long; 0: not at all
};
// InvalidArgument, as "key: what is wrong, what would be right".
Result<ForwardTarget> parse_forward(const ForwardSettings& settings);

}  // namespace edgecase::config
