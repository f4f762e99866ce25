#include "config/show.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "config/settings_file.h"
#include "config/settings_table.h"

namespace edgecase::config {
namespace {

Configuration defaults() {
  Sources sources;
  sources.file = "";
  return load_configuration(sources).value();
}

TEST_CASE("the example loads as the defaults") {
  Configuration configuration;
  const Status status = apply_file(example_text(), "example.toml", configuration);
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (const Setting& setting : settings_table()) {
    CHECK(value_text(setting, configuration.settings) == value_text(setting, Settings()));
    CHECK(configuration.origin_of(setting.key).kind == OriginKind::File);
  }
  REQUIRE(configuration.settings.mqtt.rules.size() == 1);
  CHECK(configuration.settings.mqtt.rules[0].topic == defaults().settings.mqtt.rules[0].topic);
}

TEST_CASE("what is shown says where it is from and loads as the same") {
  Configuration configuration;
  REQUIRE(apply_file("[storage]\nvalues = \"/mnt/s \\\"s\\u0001d\\\\\"\n[[mqtt.rule]]\ntopic = "
                     "\"a/{device}\"\nqos = 0\n[[influx.rule]]\nmeasurement = \"w_*\"\ndevice = "
                     "\"{a}-{b}\"\n[[influx.rule]]\ndevice = \"{c}\"\n",
                     "e.toml", configuration)
              .ok());
  const std::string text = effective_text(configuration);
  CHECK(text.find("values = \"/mnt/s \\\"s\\u0001d\\\\\"") != std::string::npos);
  CHECK(text.find("# e.toml:2:1\n") != std::string::npos);
  CHECK(text.starts_with("[storage]\nmetadata = \"/var/lib/edgecase\" "));
  CHECK(text.find("  # default\n") != std::string::npos);

  Configuration again;
  const Status status = apply_file(text, "again.toml", again);
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(again.settings.storage.values == configuration.settings.storage.values);
  REQUIRE(again.settings.mqtt.rules.size() == 1);
  CHECK(again.settings.mqtt.rules[0].qos == 0);
  REQUIRE(again.settings.influx.rules.size() == 2);
  CHECK(again.settings.influx.rules[0].measurement == "w_*");
  CHECK(again.settings.influx.rules[0].device == "{a}-{b}");
  CHECK(again.settings.influx.rules[1].measurement == "*");
  CHECK(text.find("# e.toml:9:1\n") != std::string::npos);
  const auto document = nlohmann::json::parse(effective_json(configuration));
  CHECK(document["influx_rules"][1]["device"] == "{c}");
  CHECK(document["influx_rules"][1]["where"] == "e.toml:9:1");
}

TEST_CASE("the JSON has every key with its source") {
  const auto document = nlohmann::json::parse(effective_json(defaults()));
  CHECK(document["settings"].size() == settings_table().size());
  CHECK(document["settings"][0]["key"] == "storage.metadata");
  CHECK(document["settings"][0]["value"] == "/var/lib/edgecase");
  CHECK(document["settings"][0]["source"] == "default");
  CHECK(document["settings"][0]["environment"] == "EDGECASE_STORAGE_METADATA");
  CHECK(document["settings"][0]["flag"] == "--storage.metadata");
  CHECK(document["rules"][0]["topic"] == kDefaultTopic);
}

}  // namespace
}  // namespace edgecase::config
