#include "app/setting_changes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "config/settings_table.h"

namespace edgecase::app {
namespace {

bool same_rules(std::vector<config::MqttRuleSettings> one,
                std::vector<config::MqttRuleSettings> other) {
  // A rule may have moved to another line.
  for (auto* const rules : {&one, &other}) {
    for (config::MqttRuleSettings& rule : *rules) {
      rule.line = 0;
      rule.where.clear();
    }
  }
  return one == other;
}

bool same_line_rules(std::vector<wire::LineRule> one, std::vector<wire::LineRule> other) {
  for (auto* const rules : {&one, &other})
    for (wire::LineRule& rule : *rules) rule.line = 0;
  return one == other;
}

bool same_targets(std::vector<config::ForwardSettings> one,
                  std::vector<config::ForwardSettings> other) {
  for (auto* const targets : {&one, &other})
    for (config::ForwardSettings& target : *targets) target.where.clear();
  return one == other;
}

}  // namespace

SettingChanges changes_of(const config::Settings& before, const config::Settings& after) {
  SettingChanges changes;
  const auto add = [](std::string& keys, std::string_view key) {
    keys.append(keys.empty() ? "" : ", ").append(key);
  };
  // On or off is another matter than another one.
  const bool has_source = !before.mqtt.broker.empty() && !after.mqtt.broker.empty();
  const bool has_http_tls = !before.http.tls_cert.empty() && !after.http.tls_cert.empty();
  const bool has_mqtt_tls = !before.mqtt.tls_cert.empty() && !after.mqtt.tls_cert.empty();
  struct Live {
    std::string_view key;
    bool is_live;
    bool is_of_source;
  };
  const Live live[] = {{"mqtt.broker", has_source, true},
                       {"mqtt.username", true, true},
                       {"mqtt.password-file", true, true},
                       {"mqtt.tls-ca", true, true},
                       {"mqtt.client-id", true, true},
                       {"http.names", true, false},
                       {"http.proxies", true, false},
                       {"http.tls-cert", has_http_tls, false},
                       {"http.tls-key", has_http_tls, false},
                       {"mqtt.tls-cert", has_mqtt_tls, false},
                       {"mqtt.tls-key", has_mqtt_tls, false},
                       {"http.tls-client-ca", has_http_tls, false},
                       {"http.tls-client-crl", has_http_tls, false},
                       {"mqtt.tls-client-ca", has_mqtt_tls, false},
                       {"mqtt.tls-client-crl", has_mqtt_tls, false},
                       {"limits.query-points", true, false},
                       {"limits.query-series", true, false},
                       {"limits.query-windows", true, false}};
  for (const config::Setting& setting : config::settings_table()) {
    if (config::value_text(setting, before) == config::value_text(setting, after)) continue;
    const auto* const found = std::find_if(std::begin(live), std::end(live), [&](const Live& each) {
      return each.key == setting.key && each.is_live;
    });
    if (found == std::end(live)) {
      add(changes.at_restart, setting.key);
      continue;
    }
    add(changes.now, setting.key);
    changes.of_source = changes.of_source || found->is_of_source;
  }
  changes.of_rules = !same_rules(before.mqtt.rules, after.mqtt.rules);
  if (changes.of_rules) add(changes.now, "mqtt.rule");
  changes.of_source = changes.of_source || changes.of_rules;
  if (!same_targets(before.forward, after.forward)) add(changes.now, "forward");
  if (!same_line_rules(before.influx.rules, after.influx.rules)) add(changes.now, "influx.rule");
  return changes;
}

}  // namespace edgecase::app
