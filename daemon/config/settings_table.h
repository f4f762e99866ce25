// The one table of settings. It drives the file, the environment, the flags, `config show`,
// `config example` and the manual page: a setting that has a row here exists everywhere.
//
// The key `storage.values` is `[storage] values` in the file, EDGECASE_STORAGE_VALUES in the
// environment and --storage.values on the command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"

namespace edgecase::config {

enum class SettingKind : unsigned char {
  Text,
  File,      // a path, or credential:NAME (credentials.h)
  Choice,    // one of Setting::choices
  Duration,  // "15m", or "forever"
  Keeping,   // the same, and tiers: "7d then 1m:90d" (wire/keeping.h)
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

}  // namespace edgecase::config
