#include "app/listener_tls.h"
#include "app/serve.h"
#include "config/key_file.h"
#include "config/settings_table.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/topic_rule.h"

namespace edgecase::app {
namespace {

// "mqtt.username: is missing" with the place of the setting before it.
Status with_place(const config::Configuration& configuration, const Status& status) {
  const std::string_view message = status.message();
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return status;
  const std::string_view key = message.substr(0, colon);
  if (config::find_setting(key) == nullptr) return status;
  return configuration.error(key, message.substr(colon + 2));
}

}  // namespace

Status check_parts(const config::Configuration& configuration) {
  EC_TRY(check_certificates(configuration));
  EC_TRY(config::load_master_keys(configuration).status());
  std::size_t number = 0;
  for (const config::MqttRuleSettings& rule : configuration.settings.mqtt.rules) {
    const Result<mqtt::TopicRule> compiled = mqtt::compile_rule(rule, ++number);
    if (compiled.ok()) continue;
    const std::string where = rule.where.empty() ? "default" : rule.where;
    return invalid_argument(where + ": " + compiled.status().message());
  }
  const Status status = mqtt::check_mqtt_settings(configuration.settings.mqtt);
  return status.ok() ? ok() : with_place(configuration, status);
}

}  // namespace edgecase::app
