#include <doctest/doctest.h>

#include "app/setup.h"

namespace edgecase::app {

TEST_CASE("setting changes: what holds at once, and what needs a restart") {
  config::Settings before;
  config::MqttRuleSettings rule;
  rule.topic = "a/{device}/{sensor}";
  rule.line = 3;
  rule.where = "e.toml:3:1";
  before.mqtt.rules.push_back(rule);
  CHECK(changes_of(before, before).now.empty());

  config::Settings after = before;
  after.mqtt.rules[0].line = 9;  // a comment above it
  after.mqtt.rules[0].where = "e.toml:9:1";
  SettingChanges changes = changes_of(before, after);
  CHECK(!changes.of_source);
  CHECK(changes.now.empty());

  after.mqtt.rules[0].retention = "1d";
  after.mqtt.username = "board";
  after.http.threads = 9;
  after.storage.values = "/elsewhere";
  changes = changes_of(before, after);
  CHECK(changes.of_rules);
  CHECK(changes.of_source);
  CHECK(changes.now == "mqtt.username, mqtt.rule");
  CHECK(changes.at_restart == "storage.values, http.threads");

  after = before;
  after.influx.rules.push_back({"a", "{b}", 12});
  changes = changes_of(before, after);
  CHECK(changes.now == "influx.rule");
  CHECK(!changes.of_source);
  config::Settings moved = after;
  moved.influx.rules[0].line = 13;
  CHECK(changes_of(after, moved).now.empty());

  after = before;
  after.limits.query_windows = 7;
  after.limits.query_statements = 7;
  changes = changes_of(before, after);
  CHECK(changes.now == "limits.query-windows");
  CHECK(changes.at_restart == "limits.query-statements");

  // From nothing to something, or back, is built at the start alone.
  after = before;
  after.mqtt.broker = "";
  after.http.tls_cert = "/c";
  changes = changes_of(before, after);
  CHECK(changes.at_restart == "http.tls-cert, mqtt.broker");
  CHECK(!changes.of_source);
  before.http.tls_cert = "/b";
  after.mqtt.broker = before.mqtt.broker;
  changes = changes_of(before, after);
  CHECK(changes.now == "http.tls-cert");
  CHECK(changes.at_restart.empty());
}

}  // namespace edgecase::app
