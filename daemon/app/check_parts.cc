#include "app/forward_setup.h"
#include "app/listeners.h"
#include "app/serve.h"
#include "config/key_file.h"
#include "config/settings_table.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/topic_rule.h"

namespace edgecase::app {
namespace {

// tidy: allow-file message-text: the key in front of a setting's error finds its place in the file

// "mqtt.username: is missing" with the place of the setting before it.
Status with_place(const config::Configuration& configuration, const Status& status) {
  const std::string_view message = status.message();
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return status;
  const std::string_view key = message.substr(0, colon);
  if (config::find_setting(key) == nullptr) return status;
  return configuration.error(key, message.substr(colon + 2));
}

// "mqtt.rule 2 (line 14): topic: …" as "e.toml:15:9: mqtt.rule.topic: …"; of no key in particular,
// the rule's own place.
Status with_rule_place(const config::Configuration& configuration, std::size_t number,
                       const Status& status) {
  std::string_view what = status.message();
  what.remove_prefix(what.find(": ") + 2);
  const std::string_view key = what.substr(0, what.find(": "));
  const config::Origin origin = configuration.origin_of(config::rule_origin(number, key));
  if (origin.kind == config::OriginKind::File) {
    return invalid_argument(origin.where + ": mqtt.rule." + std::string(what));
  }
  const std::string& where = configuration.settings.mqtt.rules[number - 1].where;
  return invalid_argument((where.empty() ? "default" : where) +
                          ": mqtt.rule: " + std::string(what));
}

}  // namespace

Status check_parts(const config::Configuration& configuration) {
  EC_TRY(check_certificates(configuration));
  EC_TRY(check_forwarding(configuration));
  EC_TRY(config::load_master_keys(configuration).status());
  std::size_t number = 0;
  for (const config::MqttRuleSettings& rule : configuration.settings.mqtt.rules) {
    const Result<mqtt::TopicRule> compiled = mqtt::compile_rule(rule, ++number);
    if (!compiled.ok()) return with_rule_place(configuration, number, compiled.status());
  }
  const Status status = mqtt::check_mqtt_settings(configuration.settings.mqtt);
  return status.ok() ? ok() : with_place(configuration, status);
}

}  // namespace edgecase::app
