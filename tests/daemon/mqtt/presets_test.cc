#include "mqtt/presets.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "daemon/mqtt/decoded_text.h"

using namespace edgecase;
using test::decoded_text;

namespace {

struct Message {
  const char* topic;
  const char* payload;
  const char* want;
};

void check_preset(const char* preset, const std::vector<Message>& cases, const char* topic = "") {
  config::MqttRuleSettings rule;
  rule.preset = preset;
  rule.topic = topic;
  const auto compiled = mqtt::compile_rules({rule});
  REQUIRE(compiled.ok());
  for (const Message& c : cases) {
    CAPTURE(c.topic);
    CAPTURE(c.payload);
    CHECK(decoded_text(*compiled, c.topic, c.payload) == c.want);
  }
}

std::vector<std::string> filters_of(const char* preset, const char* topic = "") {
  config::MqttRuleSettings rule;
  rule.preset = preset;
  rule.topic = topic;
  const auto compiled = mqtt::compile_rules({rule});
  REQUIRE(compiled.ok());
  std::vector<std::string> filters;
  for (const auto& each : mqtt::subscriptions_of(*compiled)) filters.push_back(each.filter);
  return filters;
}

const char* const kLeftOut = "ignored: the preset leaves this topic out";

}  // namespace

TEST_CASE("preset zigbee2mqtt") {
  check_preset(
      "zigbee2mqtt",
      {{"zigbee2mqtt/kitchen", R"({"battery":91,"temperature":21.37,"linkquality":120})",
        "kitchen/battery=91 kitchen/temperature=21.37 kitchen/linkquality=120"},
       {"zigbee2mqtt/kitchen", R"({"contact":true,"last_seen":"2026-11-20T14:00:00.125Z"})",
        "kitchen/contact=true @1795183200125000000"},
       {"zigbee2mqtt/kitchen", R"({"contact":true,"last_seen":"2026-11-20T15:00:00+01:00"})",
        "kitchen/contact=true @1795183200000000000"},
       {"zigbee2mqtt/kitchen", R"({"contact":true,"last_seen":1795183200125})",
        "kitchen/contact=true @1795183200125000000"},
       {"zigbee2mqtt/kitchen", R"({"contact":true,"last_seen":null})", "kitchen/contact=true"},
       {"zigbee2mqtt/0x00158d0001a2b3c4", R"({"action":"single","device":{"model":"X"}})",
        "0x00158d0001a2b3c4/action=\"single\""},
       {"zigbee2mqtt/floor/lamp", R"({"state":"ON","color":{"x":0.4,"y":0.5}})",
        "floor.lamp/state=\"ON\" floor.lamp/color.x=0.4 floor.lamp/color.y=0.5"},
       {"zigbee2mqtt/floor/lamp/availability", "online", "floor.lamp/availability=\"online\""},
       {"zigbee2mqtt/lamp/availability", R"({"state":"offline"})", "lamp/availability=\"offline\""},
       {"zigbee2mqtt/bridge/state", R"({"state":"online"})", kLeftOut},
       {"zigbee2mqtt/bridge/devices", "[]", kLeftOut},
       {"zigbee2mqtt/lamp/set", R"({"state":"ON"})", kLeftOut},
       {"zigbee2mqtt/lamp/set/state", "ON", kLeftOut},
       {"zigbee2mqtt/lamp/get", R"({"state":""})", kLeftOut},
       {"zigbee2mqtt/lamp/brightness", "12",
        "ignored: is no JSON object, which is all the preset stores here"},
       {"zigbee2mqtt/lamp", "", "ignored: empty payload"},
       {"zigbee2mqtt/lamp", "{\"state\":", "rejected: not JSON: wrong at byte 10"}});
  CHECK(filters_of("zigbee2mqtt") == std::vector<std::string>{"zigbee2mqtt/+/#"});
}

TEST_CASE("preset zigbee2mqtt on a topic of one's own") {
  CHECK(filters_of("zigbee2mqtt", "zigbee2mqtt/{device}") ==
        std::vector<std::string>{"zigbee2mqtt/+"});
  check_preset("zigbee2mqtt",
               {{"zigbee2mqtt/lamp", R"({"state":"ON","last_seen":1795183200125})",
                 "lamp/state=\"ON\" @1795183200125000000"},
                {"zigbee2mqtt/lamp/set", "ON", "rejected: no rule takes this topic"}},
               "zigbee2mqtt/{device}");
  check_preset("zigbee2mqtt",
               {{"home/z/lamp", R"({"state":"ON"})", "lamp/state=\"ON\""},
                {"home/z/lamp/availability", "offline", "lamp/availability=\"offline\""},
                {"home/z/bridge/info", "{}", kLeftOut},
                {"home/z/lamp/set", "{}", kLeftOut}},
               "home/z/{device+}");
}

TEST_CASE("preset tasmota") {
  check_preset(
      "tasmota",
      {{"tele/plug/SENSOR",
        R"({"Time":"2026-11-20T15:00:00","DS18B20":{"Id":"01131B",)"
        R"("Temperature":20.6},"TempUnit":"C"})",
        "plug/DS18B20.Id=\"01131B\" plug/DS18B20.Temperature=20.6"},
       {"tele/plug/SENSOR", R"({"Time":"2026-11-20T15:00:00+01:00","ENERGY":{"Power":12}})",
        "plug/ENERGY.Power=12 @1795183200000000000"},
       {"tele/plug/STATE",
        R"({"Time":"2026-11-20T15:00:00","UptimeSec":60,"POWER":"ON","Wifi":{"RSSI":74}})",
        "plug/UptimeSec=60 plug/POWER=\"ON\" plug/Wifi.RSSI=74"},
       {"tele/plug/LWT", "Online", "plug/LWT=\"Online\""},
       {"stat/plug/POWER", "OFF", "plug/POWER=\"OFF\""},
       {"stat/plug/POWER2", "ON", "plug/POWER2=\"ON\""},
       {"stat/plug/RESULT", R"({"POWER":"OFF"})", kLeftOut},
       {"stat/plug/STATUS8", R"({"StatusSNS":{}})", kLeftOut},
       {"tele/plug/SENSOR", R"({"Time":"later","A":1})",
        "plug/A=1 on arrival: time \"later\" is not RFC 3339"}});
  CHECK(filters_of("tasmota") ==
        std::vector<std::string>{"tele/+/SENSOR", "tele/+/STATE", "tele/+/LWT", "stat/+/+"});
  check_preset(
      "tasmota",
      {{"home/plug/tele/SENSOR", R"({"Time":"2026-11-20T15:00:00","A":{"B":1}})", "plug/A.B=1"},
       {"home/plug/tele/LWT", "Offline", "plug/LWT=\"Offline\""}},
      "home/{device}/tele/{sensor}");
}

TEST_CASE("preset shelly, both generations") {
  check_preset(
      "shelly",
      {{"shellies/shelly1pm-A1/relay/0", "on", "shelly1pm-A1/relay.0=\"on\""},
       {"shellies/shelly1pm-A1/relay/0/power", "45.21", "shelly1pm-A1/relay.0.power=45.21"},
       {"shellies/shellyht-B2/sensor/temperature", "21.62", "shellyht-B2/sensor.temperature=21.62"},
       {"shellies/shelly1pm-A1/online", "true", "shelly1pm-A1/online=true"},
       {"shellies/shelly1pm-A1/relay/0/command", "on", kLeftOut},
       {"shellies/shelly1pm-A1/info", R"({"wifi_sta":{}})", kLeftOut},
       {"shellies/announce", "{}", kLeftOut},
       {"shellyplus1pm-c4/events/rpc",
        R"({"src":"shellyplus1pm-c4","dst":"x","method":"NotifyStatus","params":)"
        R"({"ts":1795183200.25,"switch:0":{"id":0,"output":true,"apower":12.5,)"
        R"("temperature":{"tC":40.1}}}})",
        "shellyplus1pm-c4/switch:0.output=true shellyplus1pm-c4/switch:0.apower=12.5 "
        "shellyplus1pm-c4/switch:0.temperature.tC=40.1 @1795183200250000000"},
       {"shellyplus1pm-c4/events/rpc",
        R"({"method":"NotifyEvent","params":{"ts":1.0,"events":[{"event":"btn_down"}]}})",
        "ignored: its /method is none the preset stores"},
       {"shellyplus1pm-c4/status/switch:0", R"({"id":0,"output":false,"voltage":230.1})",
        "shellyplus1pm-c4/switch:0.output=false shellyplus1pm-c4/switch:0.voltage=230.1"},
       {"shellyplus1pm-c4/online", "false", "shellyplus1pm-c4/online=false"}});
  check_preset("shelly",
               {{"home/s1/events/rpc", R"({"method":"NotifyFullStatus","params":{"a":{"b":1}}})",
                 "s1/a.b=1"}},
               "home/{device}/events/rpc");
  check_preset("shelly", {{"home/s1/relay/0", "off", "s1/relay.0=\"off\""}},
               "home/{device}/{sensor+}");
}

TEST_CASE("preset esphome") {
  check_preset("esphome",
               {{"porch/sensor/outdoor_temp/state", "7.4", "porch/outdoor_temp=7.4"},
                {"porch/sensor/outdoor_temp/state", "nan", "ignored: no value in it"},
                {"porch/binary_sensor/motion/state", "ON", "porch/binary_sensor.motion=\"ON\""},
                {"porch/light/lamp/state", R"({"state":"ON","brightness":200})",
                 "porch/light.lamp.state=\"ON\" porch/light.lamp.brightness=200"},
                {"porch/status", "online", "porch/status=\"online\""},
                {"porch/light/lamp/command", "{}", "rejected: no rule takes this topic"}});
}

TEST_CASE("preset homeassistant") {
  check_preset(
      "homeassistant",
      {{"homeassistant/sensor/kitchen_temp/state", "21.4", "sensor.kitchen_temp/state=21.4"},
       {"homeassistant/light/desk/state", "on", "light.desk/state=\"on\""},
       {"homeassistant/light/desk/brightness", "215", "light.desk/brightness=215"},
       {"homeassistant/light/desk/friendly_name", "\"Desk\"", "light.desk/friendly_name=\"Desk\""},
       {"homeassistant/light/desk/rgb_color", "[255, 120, 0]",
        "light.desk/rgb_color.0=255 light.desk/rgb_color.1=120 light.desk/rgb_color.2=0"},
       {"homeassistant/light/desk/icon", "null", "ignored: no value in it"},
       {"homeassistant/light/desk/last_changed", "\"2026-11-20T14:00:00+00:00\"", kLeftOut},
       {"homeassistant/sensor/x/config", "{}", kLeftOut}});
}

TEST_CASE("preset ttn") {
  check_preset(
      "ttn",
      {{"v3/farm@ttn/devices/soil-1/up",
        R"({"end_device_ids":{"device_id":"soil-1"},"received_at":"2026-11-20T14:00:01.5Z",)"
        R"("uplink_message":{"f_port":2,"f_cnt":17,"frm_payload":"AQI=",)"
        R"("decoded_payload":{"moisture":41.5,"probe":{"t":9}},)"
        R"("rx_metadata":[{"gateway_ids":{"gateway_id":"g"},"rssi":-97,"snr":7.5}],)"
        R"("settings":{"data_rate":{"lora":{"spreading_factor":7}}},)"
        R"("received_at":"2026-11-20T14:00:00.25Z"}})",
        "soil-1/moisture=41.5 soil-1/probe.t=9 soil-1/rssi=-97 soil-1/snr=7.5 soil-1/f_port=2 "
        "soil-1/f_cnt=17 soil-1/spreading_factor=7 @1795183200250000000"},
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"received_at":"2026-11-20T14:00:00Z","uplink_message":{"frm_payload":"AQI="}})",
        "soil-1/frm_payload=\"AQI=\" @1795183200000000000"},
       {"v3/farm@ttn/devices/soil-1/join", "{}", "rejected: no rule takes this topic"}});
}

TEST_CASE("presets: every name is one, and its own keys still apply") {
  for (const auto name : mqtt::preset_names()) {
    CAPTURE(name);
    CHECK(mqtt::preset_routes(name, "").ok());
  }
  config::MqttRuleSettings rule;
  rule.preset = "esphome";
  rule.namespace_name = "home";
  CHECK(decoded_text(rule, "porch/sensor/t/state", "7.4") == "home:porch/t=7.4");
}
