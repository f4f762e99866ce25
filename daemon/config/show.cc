#include "config/show.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/forward_target.h"
#include "config/settings_table.h"

namespace edgecase::config {
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
    out += "#   " + padded(std::string(key.name), 12) + std::string(key.help) + "\n";
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
