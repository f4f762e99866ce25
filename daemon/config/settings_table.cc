#include "config/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::config {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;

// Shorthand of the rows: the member as a function.
#define EC_MEMBER(type, path) Member(+[](Settings& s) -> type& { return s.path; })

const std::array kTable = {
    Setting{"storage.metadata", SettingKind::Text, EC_MEMBER(std::string, storage.metadata),
            "Directory on the onboard drive: keys, filters, index, write-ahead log, catalog."},
    Setting{
        "storage.values", SettingKind::Text, EC_MEMBER(std::string, storage.values),
        "Directory for values, on the external SSD where there is one: `edgecase config storage "
        "--values DIR` judges it and tells how to set it up."},
    Setting{"storage.memory-limit", SettingKind::Size,
            EC_MEMBER(std::uint64_t, storage.memory_limit_bytes), "Memory of the whole process.",
            32 * kMiB, 64 * 1024 * kMiB},
    Setting{"storage.wal-limit", SettingKind::Size,
            EC_MEMBER(std::uint64_t, storage.wal_limit_bytes),
            "Write-ahead log on the onboard drive; when it is full, writes wait.", 16 * kMiB, kTiB},
    Setting{"storage.reserve", SettingKind::Size, EC_MEMBER(std::uint64_t, storage.reserve_bytes),
            "Space kept on each drive, so that a full one can still be erased from; 0 for none.", 0,
            1024 * kMiB},
    Setting{"storage.keep-free", SettingKind::Size,
            EC_MEMBER(std::uint64_t, storage.keep_free_bytes),
            "But with on-full evict-oldest: what writes leave free on each drive for others, or a "
            "sixteenth "
            "of a smaller one; 0 for nothing.",
            0, kTiB},
    Setting{
        "storage.retention", SettingKind::Keeping, EC_MEMBER(std::string, storage.retention),
        "How long readings of devices without a rule are kept; `7d then 1m:90d then 1h:forever` "
        "keeps windows of a minute, then of an hour, in their place."},
    Setting{"storage.expiry", SettingKind::Choice, EC_MEMBER(std::string, storage.expiry),
            "Expired bytes are gone within a stated bound, or within 1 s (exact).", 0, 0,
            "bounded|exact"},
    Setting{
        "storage.on-full", SettingKind::Choice, EC_MEMBER(std::string, storage.on_full),
        "When a drive is full writes are refused, the oldest readings of all devices go, or they "
        "become windows of their rule's tiers before their time.",
        0, 0, "reject|evict-oldest|thin-oldest"},
    Setting{"storage.metadata-location", SettingKind::Text,
            EC_MEMBER(std::string, storage.metadata_location),
            "Where the drive of storage.metadata is, as `where` and `report` tell it: de, site-7."},
    Setting{"storage.values-location", SettingKind::Text,
            EC_MEMBER(std::string, storage.values_location), "The same of storage.values."},
    Setting{"storage.locations", SettingKind::Text, EC_MEMBER(std::string, storage.locations),
            "Where data may be, with commas between: drives that are elsewhere are refused, and "
            "backups and exports to elsewhere; \"\" for anywhere."},
    Setting{"storage.scrub", SettingKind::Duration, EC_MEMBER(std::string, storage.scrub),
            "In idle time every file is read again about once in so long, and checked; forever: "
            "never."},
    Setting{"storage.encryption-key-file", SettingKind::File,
            EC_MEMBER(std::string, storage.encryption_key_file),
            "File of 32 bytes; set before the first start, everything at rest is encrypted."},
    Setting{"storage.encryption-previous-key-file", SettingKind::File,
            EC_MEMBER(std::string, storage.encryption_previous_key_file),
            "The key file before, to change it: the next start takes encryption-key-file."},

    Setting{"http.socket", SettingKind::Text, EC_MEMBER(std::string, http.socket),
            "Unix socket that the command line uses; \"\" turns it off."},
    Setting{
        "http.listen", SettingKind::Text, EC_MEMBER(std::string, http.listen),
        "TCP address, host:port, localhost for both loopbacks; port 0 takes a free one; \"\" turns "
        "TCP off."},
    Setting{
        "http.names", SettingKind::List, EC_MEMBER(std::vector<std::string>, http.names),
        "Names that browsers may use for this board, beside its own (also with .local, .lan and "
        "its domain)."},
    Setting{"http.proxies", SettingKind::List, EC_MEMBER(std::vector<std::string>, http.proxies),
            "Addresses or networks of reverse proxies whose Forwarded or X-Forwarded-For is "
            "believed."},
    Setting{"http.tls-cert", SettingKind::File, EC_MEMBER(std::string, http.tls_cert),
            "File of the certificate, and of those that signed it; with tls-key: HTTPS (TLS 1.2)."},
    Setting{"http.tls-key", SettingKind::File, EC_MEMBER(std::string, http.tls_key),
            "File of tls-cert's private key, without a password."},
    Setting{"http.tls-client-ca", SettingKind::File, EC_MEMBER(std::string, http.tls_client_ca),
            "File of certificates that sign those of clients: one that is shown stands for a token "
            "(token create --certificate NAME)."},
    Setting{"http.tls-client-crl", SettingKind::File, EC_MEMBER(std::string, http.tls_client_crl),
            "File of the list of clients' certificates that are revoked, by tls-client-ca."},
    Setting{"http.allow-insecure", SettingKind::Flag, EC_MEMBER(bool, http.allow_insecure),
            "Let other machines in without TLS, and without a token until the first one is made."},
    Setting{"http.threads", SettingKind::Number, EC_MEMBER(std::uint32_t, http.threads),
            "Requests that store or change something, served side by side.", 1, 64},
    Setting{"http.readers", SettingKind::Number, EC_MEMBER(std::uint32_t, http.readers),
            "Answers sent to slow readers at once; a thread each, while they last.", 2, 1'024},
    Setting{"http.connections", SettingKind::Number, EC_MEMBER(std::uint32_t, http.connections),
            "Connections open at once.", 4, 65'536},
    Setting{"http.connections-per-address", SettingKind::Number,
            EC_MEMBER(std::uint32_t, http.connections_per_address),
            "Of these, from one address over TCP.", 1, 65'536},
    Setting{"http.head-limit", SettingKind::Size, EC_MEMBER(std::uint64_t, http.head_limit_bytes),
            "One request's line and headers.", 1024, 256 * 1024},
    Setting{"http.headers", SettingKind::Number, EC_MEMBER(std::uint32_t, http.headers),
            "Headers of one request.", 8, 10'000},
    Setting{"http.body-limit", SettingKind::Size, EC_MEMBER(std::uint64_t, http.body_limit_bytes),
            "One request's body, after decompression.", 1024, 1024 * kMiB},
    Setting{"http.in-flight-limit", SettingKind::Size,
            EC_MEMBER(std::uint64_t, http.in_flight_limit_bytes),
            "All request bodies together; at least body-limit.", 1024, 16 * 1024 * kMiB},

    Setting{"mqtt.broker", SettingKind::Text, EC_MEMBER(std::string, mqtt.broker),
            "mqtt://host:port, or mqtts:// for TLS; \"\" turns the client off."},
    Setting{"mqtt.username", SettingKind::Text, EC_MEMBER(std::string, mqtt.username),
            "User at the broker."},
    Setting{"mqtt.password-file", SettingKind::File, EC_MEMBER(std::string, mqtt.password_file),
            "File whose first line is the password."},
    Setting{"mqtt.tls-ca", SettingKind::File, EC_MEMBER(std::string, mqtt.tls_ca),
            "File of certificates that the broker's must be signed by; \"\": those this machine "
            "trusts."},
    Setting{"mqtt.listen", SettingKind::Text, EC_MEMBER(std::string, mqtt.listen),
            "TCP address where devices and bridges publish straight to the daemon, host:port, "
            "localhost "
            "for both loopbacks; port 0 takes a free one; \"\" turns it off."},
    Setting{"mqtt.tls-cert", SettingKind::File, EC_MEMBER(std::string, mqtt.tls_cert),
            "File of the certificate, and of those that signed it; with tls-key: mqtt.listen "
            "speaks TLS 1.2, and a broker that asks is shown it."},
    Setting{"mqtt.tls-key", SettingKind::File, EC_MEMBER(std::string, mqtt.tls_key),
            "File of tls-cert's private key, without a password."},
    Setting{"mqtt.tls-client-ca", SettingKind::File, EC_MEMBER(std::string, mqtt.tls_client_ca),
            "As http.tls-client-ca, of clients of mqtt.listen."},
    Setting{"mqtt.tls-client-crl", SettingKind::File, EC_MEMBER(std::string, mqtt.tls_client_crl),
            "As http.tls-client-crl, of clients of mqtt.listen."},
    Setting{"mqtt.connections", SettingKind::Number, EC_MEMBER(std::uint32_t, mqtt.connections),
            "Connections to mqtt.listen open at once.", 4, 65'536},
    Setting{"mqtt.connections-per-address", SettingKind::Number,
            EC_MEMBER(std::uint32_t, mqtt.connections_per_address), "Of these, from one address.",
            1, 65'536},
    Setting{"mqtt.in-flight-limit", SettingKind::Size,
            EC_MEMBER(std::uint64_t, mqtt.in_flight_limit_bytes),
            "Packets at mqtt.listen that are not whole yet, all together.", 128 * 1024,
            16 * 1024 * kMiB},
    Setting{"mqtt.subscriptions", SettingKind::Choice, EC_MEMBER(std::string, mqtt.subscriptions),
            "What mqtt.listen answers to SUBSCRIBE: refuse; or grant, for libraries that close "
            "otherwise. Nothing is ever delivered.",
            0, 0, "refuse|grant"},
    Setting{"mqtt.client-id", SettingKind::Text, EC_MEMBER(std::string, mqtt.client_id),
            "Names the persistent session at the broker: one daemon each, keep it stable."},

    Setting{"limits.namespaces", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.namespaces),
            "Namespaces.", 1, 1000},
    Setting{"limits.devices", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.devices),
            "Devices, all namespaces together.", 1, 10'000'000},
    Setting{"limits.series", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.series),
            "Series, all devices together.", 1, 100'000'000},
    Setting{"limits.device-rate", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.device_rate),
            "Readings a second of one device, on the average; 0 for any number.", 0, 1'000'000},
    Setting{
        "limits.device-burst", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.device_burst),
        "Readings that a device may bring at once after a pause, over its rate.", 1, 100'000'000},
    Setting{"limits.json-depth", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.json_depth),
            "Levels of one JSON document.", 1, 256},
    Setting{"limits.json-keys", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.json_keys),
            "Keys of one JSON object, over HTTP.", 8, 100'000},
    Setting{"limits.points-per-batch", SettingKind::Number,
            EC_MEMBER(std::uint32_t, limits.points_per_batch), "Readings of one HTTP request.", 1,
            100'000'000},
    Setting{"limits.json-leaves", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.json_leaves),
            "Values of one MQTT message.", 1, 1'000'000},
    Setting{"limits.message-limit", SettingKind::Size,
            EC_MEMBER(std::uint64_t, limits.message_limit_bytes), "One MQTT message.", 64,
            16 * kMiB},
    Setting{"limits.rejected-messages", SettingKind::Number,
            EC_MEMBER(std::uint64_t, limits.rejected_messages),
            "Messages kept in the namespace _rejected; 0 keeps none.", 0, 100'000'000},
    Setting{"limits.time-ahead", SettingKind::Duration, EC_MEMBER(std::string, limits.time_ahead),
            "How far ahead of the clock the time in an MQTT message may lie; beyond it the time of "
            "arrival counts."},
    Setting{"limits.line-errors", SettingKind::Number, EC_MEMBER(std::uint32_t, limits.line_errors),
            "Bad lines named in one answer.", 1, 10'000},
    Setting{
        "limits.sender-rate", SettingKind::Size, EC_MEMBER(std::uint64_t, limits.sender_rate_bytes),
        "Bytes a second that a body over HTTP, or a packet at mqtt.listen, must come at after 10 "
        "s.",
        1, 16 * kMiB},
    Setting{"limits.query-statements", SettingKind::Number,
            EC_MEMBER(std::uint32_t, limits.query_statements),
            "Statements of InfluxQL in one request.", 1, 1'024},
    Setting{"limits.query-points", SettingKind::Number,
            EC_MEMBER(std::uint64_t, limits.query_points),
            "Readings that one statement of InfluxQL may read.", 1, 1'000'000'000'000},
    Setting{"limits.query-series", SettingKind::Number,
            EC_MEMBER(std::uint64_t, limits.query_series),
            "Series that one statement of InfluxQL may read.", 1, 100'000'000},
    Setting{"limits.query-windows", SettingKind::Number,
            EC_MEMBER(std::uint64_t, limits.query_windows),
            "Windows of time of one question, in InfluxQL and with every, all series together.", 1,
            1'000'000'000},

    Setting{"audit.mode", SettingKind::Choice, EC_MEMBER(std::string, audit.mode),
            "When the audit log is durable: batched (1 s) or strict (before the answer).", 0, 0,
            "off|batched|strict"},
    Setting{"audit.retention", SettingKind::Duration, EC_MEMBER(std::string, audit.retention),
            "How long records of the audit log are kept."},
    Setting{"audit.size-limit", SettingKind::Size, EC_MEMBER(std::uint64_t, audit.size_limit_bytes),
            "All records of the audit log; beyond it the oldest go.", kMiB, kTiB},
};

#undef EC_MEMBER

const std::array kRuleKeys = {
    RuleKey{"topic", &MqttRuleSettings::topic,
            "Template: {device}, {sensor}, {namespace} match one level, {device+} several."},
    RuleKey{"preset", &MqttRuleSettings::preset,
            "zigbee2mqtt, tasmota, shelly, esphome, homeassistant or ttn."},
    RuleKey{"payload", &MqttRuleSettings::payload, "auto, number, json, text or bytes."},
    RuleKey{"sensor", &MqttRuleSettings::sensor, "Sensor, when the topic names none."},
    RuleKey{"device", &MqttRuleSettings::device, "Device, or a JSON pointer to its name."},
    RuleKey{"time", &MqttRuleSettings::time,
            "JSON pointer to the reading's time; with records, inside each of them."},
    RuleKey{"time-format", &MqttRuleSettings::time_format, "rfc3339, unix, unix_ms, ..."},
    RuleKey{"time-zone", &MqttRuleSettings::time_zone,
            "Of times without an offset: UTC, +02:00, or as in Europe/Berlin."},
    RuleKey{
        "records", &MqttRuleSettings::records,
        "JSON pointer to an array of records with times of their own; \"/\": the message is it."},
    RuleKey{"namespace", &MqttRuleSettings::namespace_name, "Namespace of the readings."},
    RuleKey{"qos", nullptr, "0 or 1."},
    RuleKey{"retention", &MqttRuleSettings::retention,
            "How long its readings are kept, as storage.retention."},
    RuleKey{"owner", &MqttRuleSettings::owner, "Whose data it is; of devices that are new."},
    RuleKey{"purpose", &MqttRuleSettings::purpose,
            "What the data may be used for, as in \"heating,billing\"; of devices that are new."},
};

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

// "64MiB" where the number is a whole one of a unit, else bytes.
std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"GiB", "MiB", "KiB"};
  std::uint64_t unit = std::uint64_t{1} << 30;
  for (const std::string_view name : kUnits) {
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + std::string(name);
    unit >>= 10;
  }
  return std::to_string(bytes);
}

Status check_range(const Setting& setting, std::uint64_t value) {
  if (value >= setting.minimum && value <= setting.maximum) return ok();
  const bool size = setting.kind == SettingKind::Size;
  const auto text = [size](std::uint64_t v) { return size ? size_text(v) : std::to_string(v); };
  return invalid_argument(text(value) + " is out of range, use " + text(setting.minimum) + " to " +
                          text(setting.maximum));
}

// Stores a list: an array of the file, or what stands between the commas of one text.
Status store_list(const Setting& setting, std::string_view text, Settings& settings) {
  std::vector<std::string> list;
  while (!text.empty()) {
    std::string_view each = text.substr(0, text.find(','));
    text.remove_prefix(std::min(each.size() + 1, text.size()));
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (each.empty()) return invalid_argument("holds nothing between two commas");
    list.emplace_back(each);
  }
  std::get<std::vector<std::string>& (*)(Settings&)>(setting.member)(settings) = std::move(list);
  return ok();
}

Result<std::uint64_t> parse_whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return invalid_argument(quoted(text) + " is not a whole number, use digits alone, as in 100");
  }
  return value;
}

Status store_number(const Setting& setting, std::uint64_t value, Settings& settings) {
  EC_TRY(check_range(setting, value));
  if (const auto* wide = std::get_if<std::uint64_t& (*)(Settings&)>(&setting.member)) {
    (*wide)(settings) = value;
  } else {
    std::get<std::uint32_t& (*)(Settings&)>(setting.member)(settings) =
        static_cast<std::uint32_t>(value);
  }
  return ok();
}

std::uint64_t load_number(const Setting& setting, Settings& settings) {
  if (const auto* wide = std::get_if<std::uint64_t& (*)(Settings&)>(&setting.member)) {
    return (*wide)(settings);
  }
  return std::get<std::uint32_t& (*)(Settings&)>(setting.member)(settings);
}

bool is_choice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return true;
    choices = bar == std::string_view::npos ? "" : choices.substr(bar + 1);
  }
  return false;
}

}  // namespace

std::span<const Setting> settings_table() {
  return kTable;
}

std::span<const RuleKey> rule_keys() {
  return kRuleKeys;
}

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : kTable) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::string environment_name(const Setting& setting) {
  std::string name(kEnvironmentPrefix);
  for (const char c : setting.key) {
    const bool letter = c >= 'a' && c <= 'z';
    name += letter ? static_cast<char>(c - 'a' + 'A') : '_';
  }
  return name;
}

std::string flag_name(const Setting& setting) {
  return "--" + std::string(setting.key);
}

Status set_from_text(const Setting& setting, std::string_view text, Settings& settings) {
  const auto& as_text = std::get_if<std::string& (*)(Settings&)>(&setting.member);
  switch (setting.kind) {
    case SettingKind::Text:
    case SettingKind::File:
      if (text.find('\0') != std::string_view::npos || text.find('\n') != std::string_view::npos) {
        return invalid_argument("holds a line break or a zero byte, use plain text");
      }
      (*as_text)(settings) = text;
      return ok();
    case SettingKind::Choice:
      if (!is_choice(setting.choices, text)) {
        return invalid_argument(quoted(text) + " is unknown, use one of " +
                                std::string(setting.choices));
      }
      (*as_text)(settings) = text;
      return ok();
    case SettingKind::Duration:
      if (const auto duration = wire::parse_duration_ns(text);
          text != "forever" && (!duration.ok() || *duration == 0)) {
        return invalid_argument(quoted(text) + " is not a duration, use 30d, 12h, 90m or forever");
      }
      (*as_text)(settings) = text;
      return ok();
    case SettingKind::Keeping:
      EC_TRY(wire::parse_keeping(text).status());
      (*as_text)(settings) = text;
      return ok();
    case SettingKind::Size: {
      const Result<std::uint64_t> bytes = wire::parse_size_bytes(text);
      if (!bytes.ok()) {
        return invalid_argument(quoted(text) + " is not a size, use bytes or a unit, as in 64MiB");
      }
      return store_number(setting, *bytes, settings);
    }
    case SettingKind::Number: {
      EC_ASSIGN_OR_RETURN(const std::uint64_t value, parse_whole(text));
      return store_number(setting, value, settings);
    }
    case SettingKind::Flag:
      if (text != "true" && text != "false") {
        return invalid_argument(quoted(text) + " is neither true nor false");
      }
      std::get<bool& (*)(Settings&)>(setting.member)(settings) = text == "true";
      return ok();
    case SettingKind::List:
      if (text.find('\0') != std::string_view::npos || text.find('\n') != std::string_view::npos) {
        return invalid_argument("holds a line break or a zero byte, use plain text");
      }
      return store_list(setting, text, settings);
  }
  return ok();
}

std::string value_text(const Setting& setting, const Settings& settings) {
  Settings copy = settings;  // members are reached through a mutable reference only
  switch (setting.kind) {
    case SettingKind::Size: return size_text(load_number(setting, copy));
    case SettingKind::Number: return std::to_string(load_number(setting, copy));
    case SettingKind::Flag:
      return std::get<bool& (*)(Settings&)>(setting.member)(copy) ? "true" : "false";
    case SettingKind::List: {
      std::string text;
      for (const std::string& each :
           std::get<std::vector<std::string>& (*)(Settings&)>(setting.member)(copy)) {
        text += (text.empty() ? "" : ",") + each;
      }
      return text;
    }
    default: return std::get<std::string& (*)(Settings&)>(setting.member)(copy);
  }
}

std::string quote_toml(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_text(const Setting& setting, const Settings& settings) {
  const std::string text = value_text(setting, settings);
  if (setting.kind == SettingKind::List) {
    std::string list;
    Settings copy = settings;
    for (const std::string& each :
         std::get<std::vector<std::string>& (*)(Settings&)>(setting.member)(copy)) {
      list += (list.empty() ? "" : ", ") + quote_toml(each);
    }
    return "[" + list + "]";
  }
  const bool bare = setting.kind == SettingKind::Number || setting.kind == SettingKind::Flag;
  return bare ? text : quote_toml(text);
}

}  // namespace edgecase::config
