#include "config/configuration.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/settings.h"
#include "wire/names.h"

namespace edgecase::config {
namespace {

std::optional<uid_t> service_user() {
  passwd entry{};
  passwd* found = nullptr;
  char texts[4096];
  if (getpwnam_r(kServiceUser, &entry, texts, sizeof texts, &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return entry.pw_uid;
}

bool everybody_may_write(const struct stat& facts) {
  return (facts.st_mode & S_IWOTH) != 0;
}

bool belongs_to(const struct stat& facts, const Owners& owners) {
  return facts.st_uid == 0 || facts.st_uid == owners.own || facts.st_uid == owners.service;
}

}  // namespace

Status check_file_rights(const std::string& name, const struct stat& facts, const Owners& owners) {
  // A terminal and /dev/null hold nothing that somebody could have changed.
  if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode)) return ok();
  if (everybody_may_write(facts)) {
    return invalid_argument(name + ":1:1: file: everybody on this machine may change it; to do: " +
                            "see what it says, then chmod o-w " + name);
  }
  if (!belongs_to(facts, owners)) {
    return invalid_argument(
        name + ":1:1: file: belongs to the user with the number " + std::to_string(facts.st_uid) +
        ", neither to root nor to the daemon's user; to do: chown root " + name);
  }
  return ok();
}

Status check_file_rights(const std::string& name, int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) {
    return invalid_argument(name + ":1:1: file: cannot be looked at (" + std::strerror(errno) +
                            "), give the path of a file");
  }
  Owners owners{.own = geteuid(), .service = {}};
  // Asking who the service's user is loads what the system keeps its users in: only where it
  // matters.
  if (!belongs_to(facts, owners)) owners.service = service_user();
  return check_file_rights(name, facts, owners);
}

namespace {

// Nothing: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return invalid_argument(path + ":1:1: file: cannot be read (" + std::strerror(errno) +
                            "), let the daemon's user read it");
  }
  if (Status status = check_file_rights(path, fd); !status.ok()) {
    close(fd);
    return status;
  }
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 && text.size() <= kFileSizeMaxBytes) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  close(fd);
  if (error != 0) {
    return invalid_argument(path + ":1:1: file: cannot be read (" + std::strerror(error) +
                            "), give the path of a file");
  }
  if (text.size() > kFileSizeMaxBytes) {
    return invalid_argument(path + ":1:1: file: is larger than 1 MiB, give a configuration file");
  }
  return std::optional<std::string>(std::move(text));
}

Status apply_text(const Setting& setting, std::string_view text, OriginKind kind, std::string where,
                  Configuration& configuration) {
  if (Status status = set_from_text(setting, text, configuration.settings); !status.ok()) {
    return invalid_argument(where + ": " + std::string(setting.key) + ": " + status.message());
  }
  configuration.origins[std::string(setting.key)] = {kind, std::move(where)};
  return ok();
}

// What keys and sections are called elsewhere; "mqtt.url" is prefix and word.
struct OtherKey {
  std::string_view other, key;
};
constexpr OtherKey kOtherKeys[] = {
    {"server", "http"},           {"web", "http"},
    {"broker", "mqtt"},           {"data", "storage"},
    {"remote", "forward"},        {"output", "forward"},
    {"target", "forward"},        {"storage.path", "values"},
    {"storage.dir", "values"},    {"storage.directory", "values"},
    {"storage.data", "values"},   {"storage.data-dir", "values"},
    {"http.address", "listen"},   {"http.bind", "listen"},
    {"http.host", "listen"},      {"http.port", "listen"},
    {"mqtt.url", "broker"},       {"mqtt.host", "broker"},
    {"mqtt.server", "broker"},    {"mqtt.address", "broker"},
    {"mqtt.port", "broker"},      {"mqtt.topic", "rule"},
    {"mqtt.topics", "rule"},      {"mqtt.subscribe", "rule"},
    {"forward.url", "to"},        {"forward.urls", "to"},
    {"forward.host", "to"},       {"forward.address", "to"},
    {"forward.target", "to"},     {"forward.endpoint", "to"},
    {"forward.server", "to"},     {"forward.interval", "every"},
    {"forward.series", "select"}, {"forward.devices", "select"},
    {"forward.filter", "select"}, {"forward.rate", "budget"},
};

std::vector<std::string_view> keys_of(std::string_view prefix) {
  std::vector<std::string_view> known;
  const std::string_view section = prefix.substr(0, prefix.find('.'));
  if (prefix.empty()) known = {"influx", "forward"};
  if (prefix == "mqtt." || prefix == "influx.") known = {"rule"};
  if (prefix == "influx.rule.") known = {"measurement", "device"};
  for (const Setting& setting : settings_table()) {
    if (prefix.empty()) known.push_back(setting.section());
    if (prefix.size() == section.size() + 1 && setting.section() == section)
      known.push_back(setting.name());
  }
  if (prefix == "forward.") {
    for (const ForwardKey& key : forward_keys()) known.push_back(key.name);
  }
  if (prefix == "mqtt.rule.") {
    for (const RuleKey& key : rule_keys()) known.push_back(key.name);
  }
  return known;
}

// "metadata" is all of "metadata-dir" and "http-metadata" but a word.
bool is_with_a_word(std::string_view name, std::string_view key) {
  if (name.size() <= key.size() + 1) return false;
  return (name.starts_with(key) && name[key.size()] == '-') ||
         (name.ends_with(key) && name[name.size() - key.size() - 1] == '-');
}

// EDGECASE_STORAGE_VALEUS and EDGECASE_STROAGE_VALUES are mistakes; EDGECASE_HOST and others belong
// to the command line, or to whoever starts the daemon.
Status unknown_variable(std::string_view variable) {
  std::vector<std::string> names;
  bool in_a_section = false;
  for (const Setting& setting : settings_table()) {
    const std::string& name = names.emplace_back(environment_name(setting));
    const std::size_t section_bytes = setting.section().size() + 1;
    in_a_section |= variable.starts_with(
        std::string_view(name).substr(0, kEnvironmentPrefix.size() + section_bytes));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = wire::nearest_word(variable, known);
  if (near.empty() && !in_a_section) return ok();
  return invalid_argument(
      std::string(variable) + ": unknown key, " +
      (near.empty() ? "see `edgecase config show`" : "did you mean " + std::string(near) + "?"));
}

Status apply_environment(const NamedTexts& environment, Configuration& configuration) {
  for (const auto& [variable, text] : environment) {
    if (!variable.starts_with(kEnvironmentPrefix)) continue;
    const Setting* found = nullptr;
    for (const Setting& setting : settings_table()) {
      if (environment_name(setting) == variable) found = &setting;
    }
    if (found == nullptr) {
      EC_TRY(unknown_variable(variable));
    } else {
      EC_TRY(apply_text(*found, text, OriginKind::Environment, variable, configuration));
    }
  }
  return ok();
}

Status apply_flags(const NamedTexts& flags, Configuration& configuration) {
  for (const auto& [key, text] : flags) {
    const Setting* setting = find_setting(key);
    if (setting == nullptr) {
      const std::size_t dot = key.find('.') + 1;
      const std::string meant = meant_key(key.substr(0, dot), key.substr(dot));
      return invalid_argument(
          "--" + key + ": unknown key, " +
          (meant.empty() ? "see `edgecase config show`" : "did you mean --" + meant + "?"));
    }
    EC_TRY(apply_text(*setting, text, OriginKind::Flag, flag_name(*setting), configuration));
  }
  return ok();
}

}  // namespace

std::string meant_key(std::string_view prefix, std::string_view name) {
  std::string lowered;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    lowered += c == '_' ? '-' : is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const std::string full = std::string(prefix) + lowered;
  for (const OtherKey& each : kOtherKeys) {
    if (each.other == full) return std::string(prefix) + std::string(each.key);
  }
  const std::vector<std::string_view> known = keys_of(prefix);
  std::string_view meant = wire::nearest_word(lowered, known);
  if (meant.empty()) {
    for (const std::string_view key : known) {
      if (is_with_a_word(lowered, key) && key.size() > meant.size()) meant = key;
    }
  }
  return meant.empty() ? "" : std::string(prefix) + std::string(meant);
}

std::string rule_origin(std::size_t number, std::string_view key) {
  return "mqtt.rule." + std::to_string(number) + "." + std::string(key);
}

std::string forward_origin(std::size_t number, std::string_view key) {
  return "forward." + std::to_string(number) + "." + std::string(key);
}

NamedTexts process_environment() {
  NamedTexts all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

Origin Configuration::origin_of(std::string_view key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? Origin() : found->second;
}

Status Configuration::error(std::string_view key, std::string_view what) const {
  const Origin origin = origin_of(key);
  const std::string where = origin.kind == OriginKind::Default ? "default" : origin.where;
  return invalid_argument(where + ": " + std::string(key) + ": " + std::string(what));
}

Result<Configuration> load_configuration(const Sources& sources) {
  Configuration configuration;
  if (!sources.file.empty()) {
    EC_ASSIGN_OR_RETURN(const std::optional<std::string> text, read_file(sources.file));
    if (text.has_value()) {
      configuration.file = sources.file;
      EC_TRY(apply_file(*text, sources.file, configuration));
    } else if (sources.missing_file == MissingFile::IsError) {
      return invalid_argument(sources.file +
                              ":1:1: file: does not exist, start one with `edgecase config "
                              "example`");
    }
  }
  EC_TRY(apply_environment(sources.environment, configuration));
  EC_TRY(apply_flags(sources.flags, configuration));

  // Without any rule the broker would be asked for nothing: the plain layout is the default.
  if (configuration.settings.mqtt.rules.empty()) {
    MqttRuleSettings rule;
    rule.topic = kDefaultTopic;
    configuration.settings.mqtt.rules.push_back(std::move(rule));
  }
  EC_TRY(validate(configuration));
  return configuration;
}

namespace {

constexpr std::size_t kCommentColumn = 44;

std::string_view source_name(OriginKind kind) {
  switch (kind) {
    case OriginKind::Default: return "default";
    case OriginKind::File: return "file";
    case OriginKind::Environment: return "environment";
    case OriginKind::Flag: return "flag";
  }
  return "default";
}

constexpr std::size_t kForwardKeyColumn = 17;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

void append_help(const Setting& setting, std::string& out) {
  out += "# " + std::string(setting.help);
  if (setting.kind == SettingKind::Choice) out += " One of " + std::string(setting.choices) + ".";
  if (setting.kind == SettingKind::Number) {
    out += " " + std::to_string(setting.minimum) + " to " + std::to_string(setting.maximum) + ".";
  }
  out += '\n';
  if (setting.support != Support::Full) {
    out += "# For now: " + std::string(setting.support_note) + ".\n";
  }
}

// The rule's keys that differ from an empty rule, `topic` always, as name and TOML value.
std::vector<std::pair<std::string, std::string>> rule_entries(const MqttRuleSettings& rule) {
  const MqttRuleSettings empty;
  std::vector<std::pair<std::string, std::string>> entries;
  for (const RuleKey& key : rule_keys()) {
    if (key.text == nullptr) {
      if (rule.qos != empty.qos) entries.emplace_back(key.name, std::to_string(rule.qos));
    } else if (rule.*key.text != empty.*key.text) {
      entries.emplace_back(key.name, quote_toml(rule.*key.text));
    }
  }
  return entries;
}

// The target's keys that differ from the defaults, as name and TOML value.
std::vector<std::pair<std::string, std::string>> forward_entries(const ForwardSettings& target) {
  const ForwardSettings defaults;
  std::vector<std::pair<std::string, std::string>> entries;
  for (const ForwardKey& key : forward_keys()) {
    std::string value = forward_toml(key, target);
    if (value != forward_toml(key, defaults)) entries.emplace_back(key.name, std::move(value));
  }
  return entries;
}

std::string forward_example() {
  std::string out =
      "\n# Where readings go on to: what is stored here is sent there once, whatever happens "
      "between.\n# `edgecase forward status` tells how far it is. A target for each table; its "
      "keys:\n";
  for (const ForwardKey& key : forward_keys()) {
    if (key.support == Support::Refused) continue;
    out += "#   " + padded(std::string(key.name), kForwardKeyColumn) + std::string(key.help) + "\n";
  }
  return out +
         "# [[forward]]\n# name = \"cloud\"\n# to = \"influx+https://metrics.example:8086\"\n"
         "# select = [\"*:*/*\"]\n";
}

}  // namespace

std::string example_text() {
  std::string out =
      "# EdgeCase. Every setting is shown with its default. The key values of [storage] is also\n"
      "# EDGECASE_STORAGE_VALUES in the environment and --storage.values on the command line:\n"
      "# flags > environment > file > default.\n"
      "# Where a file is meant, credential:NAME is one that systemd hands to the service alone: "
      "see\n"
      "# /usr/share/doc/edgecase/examples/credentials.conf.\n"
      "# Check a file with `edgecase config check FILE`.\n";
  const Settings defaults;
  std::string_view section;
  const auto append_rules = [&out] {
    out +=
        "\n# Which topics are read, and what becomes of a message: the first rule that matches is\n"
        "# used. Without any [[mqtt.rule]] this one stands. Its keys:\n";
    for (const RuleKey& key : rule_keys()) {
      out += "#   " + padded(std::string(key.name), 12) + std::string(key.help) + "\n";
    }
    out += "[[mqtt.rule]]\ntopic = " + quote_toml(kDefaultTopic) + "\n";
  };
  for (const Setting& setting : settings_table()) {
    if (setting.section() != section) {
      if (section == "mqtt") append_rules();
      section = setting.section();
      out += "\n[" + std::string(section) + "]\n";
    }
    append_help(setting, out);
    out += std::string(setting.name()) + " = " + toml_text(setting, defaults) + "\n";
  }
  return out +
         "\n# Which device a line of line protocol belongs to: the first rule that matches is "
         "used.\n"
         "# A line has the measurement, and every tag that `device` has in braces. Without a rule\n"
         "# it is the tag device, else host, else the measurement. `edgecase influx test` tries "
         "it.\n"
         "#   measurement " +
         std::string(kMeasurementHelp) + "\n#   device      " + std::string(kLineDeviceHelp) +
         "\n# [[influx.rule]]\n# measurement = \"weather_*\"\n# device = \"{station}\"\n" +
         forward_example();
}

std::string effective_text(const Configuration& configuration) {
  std::string out;
  std::string_view section;
  const auto append_rules = [&] {
    for (const MqttRuleSettings& rule : configuration.settings.mqtt.rules) {
      const std::string where = rule.where.empty() ? "default" : rule.where;
      out += "\n" + padded("[[mqtt.rule]]", kCommentColumn) + "  # " + where + "\n";
      for (const auto& [name, value] : rule_entries(rule)) out += name + " = " + value + "\n";
    }
  };
  for (const Setting& setting : settings_table()) {
    if (setting.section() != section) {
      if (section == "mqtt") append_rules();
      if (!section.empty()) out += '\n';
      section = setting.section();
      out += "[" + std::string(section) + "]\n";
    }
    const Origin origin = configuration.origin_of(setting.key);
    const std::string value = toml_text(setting, configuration.settings);
    out += padded(std::string(setting.name()) + " = " + value, kCommentColumn) + "  # " +
           (origin.kind == OriginKind::Default ? "default" : origin.where) + "\n";
  }
  std::size_t number = 0;
  for (const wire::LineRule& rule : configuration.settings.influx.rules) {
    const Origin origin = configuration.origin_of("influx.rule." + std::to_string(++number));
    out += "\n" + padded("[[influx.rule]]", kCommentColumn) + "  # " + origin.where +
           "\nmeasurement = " + quote_toml(rule.measurement) +
           "\ndevice = " + quote_toml(rule.device) + "\n";
  }
  for (const ForwardSettings& target : configuration.settings.forward) {
    out += "\n" + padded("[[forward]]", kCommentColumn) + "  # " + target.where + "\n";
    for (const auto& [name, value] : forward_entries(target)) out += name + " = " + value + "\n";
  }
  return out;
}

std::string effective_json(const Configuration& configuration) {
  nlohmann::ordered_json document;
  if (!configuration.file.empty()) document["file"] = configuration.file;
  document["settings"] = nlohmann::ordered_json::array();
  for (const Setting& setting : settings_table()) {
    const Origin origin = configuration.origin_of(setting.key);
    nlohmann::ordered_json row;
    row["key"] = setting.key;
    row["value"] = value_text(setting, configuration.settings);
    row["source"] = source_name(origin.kind);
    if (origin.kind != OriginKind::Default) row["where"] = origin.where;
    row["environment"] = environment_name(setting);
    row["flag"] = flag_name(setting);
    row["help"] = setting.help;
    document["settings"].push_back(std::move(row));
  }
  document["rules"] = nlohmann::ordered_json::array();
  const MqttRuleSettings empty;
  for (const MqttRuleSettings& rule : configuration.settings.mqtt.rules) {
    nlohmann::ordered_json row;
    for (const RuleKey& key : rule_keys()) {
      if (key.text == nullptr) {
        row[key.name] = rule.qos;
      } else if (key.name == "topic" || rule.*key.text != empty.*key.text) {
        row[key.name] = rule.*key.text;
      }
    }
    if (!rule.where.empty()) row["where"] = rule.where;
    document["rules"].push_back(std::move(row));
  }
  document["influx_rules"] = nlohmann::ordered_json::array();
  std::size_t number = 0;
  for (const wire::LineRule& rule : configuration.settings.influx.rules) {
    const Origin origin = configuration.origin_of("influx.rule." + std::to_string(++number));
    document["influx_rules"].push_back(
        {{"measurement", rule.measurement}, {"device", rule.device}, {"where", origin.where}});
  }
  document["forward"] = nlohmann::ordered_json::array();
  for (const ForwardSettings& target : configuration.settings.forward) {
    nlohmann::ordered_json row;
    for (const auto& [name, value] : forward_entries(target)) row[name] = value;
    row["where"] = target.where;
    document["forward"].push_back(std::move(row));
  }
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace edgecase::config
