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
       // output: attribute, and attribute_and_json.
       {"zigbee2mqtt/lamp/brightness", "12", "lamp/brightness=12"},
       {"zigbee2mqtt/lamp/state", "ON", "lamp/state=\"ON\""},
       {"zigbee2mqtt/lamp/color-x", "0.4", "lamp/color-x=0.4"},
       {"zigbee2mqtt/lamp/contact", "true", "lamp/contact=true"},
       {"zigbee2mqtt/lamp/battery", "null", "ignored: no value in it"},
       {"zigbee2mqtt/floor/lamp/brightness", "12", "floor.lamp/brightness=12"},
       {"zigbee2mqtt/hall/group_1", R"({"state":"ON"})", "hall.group_1/state=\"ON\""},
       {"zigbee2mqtt/lamp", "12",
        "ignored: is no JSON object, which is all the preset stores here"},
       // A level that holds the sign that joins levels.
       {"zigbee2mqtt/1.OG/lamp", R"({"t":1})", "1.OG.lamp~0533b6451b6c/t=1"},
       {"zigbee2mqtt/1/OG.lamp", R"({"t":1})", "1.OG.lamp~dbbbf033af04/t=1"},
       {"zigbee2mqtt/1/OG/lamp", R"({"t":1})", "1.OG.lamp/t=1"},
       {"zigbee2mqtt/2.OG", R"({"t":1})", "2.OG/t=1"},
       {"zigbee2mqtt/floor/lamp/availability", R"({"state":"offline"})",
        "floor.lamp/availability=\"offline\""},
       {"zigbee2mqtt/bridge/logging", R"({"level":"info","message":"x"})", kLeftOut},
       {"zigbee2mqtt/bridge/response/device/rename", "{}", kLeftOut},
       {"zigbee2mqtt/bridge/event", R"({"type":"device_joined"})", kLeftOut},
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
                {"zigbee2mqtt/lamp/availability", "online", "lamp/availability=\"online\""},
                {"zigbee2mqtt/bridge/state", "online", kLeftOut},
                {"zigbee2mqtt/lamp/set", "ON", kLeftOut}},
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
       {"stat/plug/STATUS8", R"({"StatusSNS":{"Time":"2026-11-20T15:00:00Z"}})",
        "ignored: no value in it"},
       {"stat/plug/STATUS10",
        R"({"StatusSNS":{"Time":"2026-11-20T14:00:00Z","ENERGY":{"Power":12,"Factor":0.9}}})",
        "plug/ENERGY.Power=12 plug/ENERGY.Factor=0.9 @1795183200000000000"},
       {"stat/plug/STATUS11", R"({"StatusSTS":{"POWER1":"ON","Wifi":{"RSSI":74}}})",
        "plug/POWER1=\"ON\" plug/Wifi.RSSI=74"},
       {"stat/plug/STATUS5", R"({"StatusNET":{"Hostname":"x"}})", kLeftOut},
       {"tele/plug/SENSOR",
        R"({"DS18B20-1":{"Id":"A","Temperature":20.6},"DS18B20-2":{"Id":"B","Temperature":null}})",
        "plug/DS18B20-1.Id=\"A\" plug/DS18B20-1.Temperature=20.6 plug/DS18B20-2.Id=\"B\""},
       {"tele/plug/SENSOR", R"({"ENERGY":{"Power":[1,2.5]},"SHT3X":{"Humidity":nan,"DewPoint":4}})",
        "plug/ENERGY.Power.0=1 plug/ENERGY.Power.1=2.5 plug/SHT3X.DewPoint=4"},
       {"tele/zbbridge/SENSOR",
        R"({"ZbReceived":{"0x5ADF":{"Name":"Hall","Temperature":21.5,"Endpoint":1}}})",
        "zbbridge/ZbReceived.0x5ADF.Name=\"Hall\" zbbridge/ZbReceived.0x5ADF.Temperature=21.5 "
        "zbbridge/ZbReceived.0x5ADF.Endpoint=1"},
       // SetOption89, and SetOption118 beside it.
       {"tele/zbbridge/5ADF/SENSOR", R"({"ZbReceived":{"0x5ADF":{"Humidity":40}}})",
        "zbbridge.5ADF/ZbReceived.0x5ADF.Humidity=40"},
       {"tele/zbbridge/Hall/SENSOR", R"({"Device":"0x5ADF","Humidity":40})",
        "zbbridge.Hall/Device=\"0x5ADF\" zbbridge.Hall/Humidity=40"},
       {"tele/floor/plug/STATE", R"({"POWER":"ON"})", "floor.plug/POWER=\"ON\""},
       {"tele/rf/RESULT", R"({"RfReceived":{"Data":"0x7028D"}})", "rf/RfReceived.Data=\"0x7028D\""},
       {"tele/plug/INFO1", R"({"Info1":{"Module":"x"}})", kLeftOut},
       {"cmnd/plug/POWER", "ON", kLeftOut},
       {"tele/plug/SENSOR", R"({"Time":"later","A":1})",
        "plug/A=1 on arrival: time \"later\" is not RFC 3339, like 2026-11-20T14:00:00Z"}});
  CHECK(filters_of("tasmota") == std::vector<std::string>{"tele/+/#", "stat/+/#"});
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
        R"({"method":"NotifyEvent","params":{"ts":1.0,"events":[{"component":"input:0","id":0,)"
        R"("event":"single_push","ts":1795183200.25}]}})",
        "shellyplus1pm-c4/input:0.event=\"single_push\" @1795183200250000000"},
       {"shellyblugw-a1/events/rpc",
        R"({"method":"NotifyEvent","params":{"ts":1795183200.25,"events":[)"
        R"({"component":"script:1","id":1,"event":"shelly-blu","data":{"battery":100,)"
        R"("temperature":[21.5,4],"address":"3c:2e:f5"}},)"
        R"({"component":"script:1","id":1,"event":"shelly-blu","data":{"battery":80,)"
        R"("address":"3c:2e:f6"}}]}})",
        "shellyblugw-a1/3c:2e:f5.event=\"shelly-blu\" shellyblugw-a1/3c:2e:f5.battery=100 "
        "shellyblugw-a1/3c:2e:f5.temperature.0=21.5 shellyblugw-a1/3c:2e:f5.temperature.1=4 "
        "shellyblugw-a1/3c:2e:f6.event=\"shelly-blu\" shellyblugw-a1/3c:2e:f6.battery=80 "
        "@1795183200250000000"},
       {"shelly2pmg3-b1/events/rpc",
        R"({"method":"NotifyStatus","params":{"ts":1795183200,"bthomesensor:200":{"id":200,)"
        R"("value":21.5},"bthomesensor:201":{"id":201,"value":40}}})",
        "shelly2pmg3-b1/bthomesensor:200.value=21.5 shelly2pmg3-b1/bthomesensor:201.value=40 "
        "@1795183200000000000"},
       {"shellyplus1pm-c4/events/rpc", R"({"method":"Shelly.Reboot"})",
        "ignored: its /method is none the preset stores"},
       {"shellyplus1pm-c4/rpc", R"({"id":1})", kLeftOut},
       {"shellies/shellyem-1/emeter/0/voltage", "231.4", "shellyem-1/emeter.0.voltage=231.4"},
       {"shellies/shellybutton1-1/input_event/0", R"({"event":"S","event_cnt":3})",
        "shellybutton1-1/input_event.0.event=\"S\" shellybutton1-1/input_event.0.event_cnt=3"},
       {"shellies/shellyem-1/announce", R"({"id":"x"})", kLeftOut},
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
                {"porch/climate/hall/mode/state", "heat", "porch/climate.hall.mode=\"heat\""},
                {"porch/climate/hall/current_temperature/state", "20.5",
                 "porch/climate.hall.current_temperature=20.5"},
                {"porch/cover/blind/state", "open", "porch/cover.blind=\"open\""},
                {"porch/cover/blind/position/state", "75", "porch/cover.blind.position=75"},
                {"porch/fan/vent/state", "ON", "porch/fan.vent=\"ON\""},
                {"porch/fan/vent/speed_level/state", "3", "porch/fan.vent.speed_level=3"},
                {"porch/number/delay/state", "30", "porch/number.delay=30"},
                {"porch/select/mode/state", "eco", "porch/select.mode=\"eco\""},
                {"porch/text_sensor/ip/state", "10.0.0.7", "porch/text_sensor.ip=\"10.0.0.7\""},
                {"porch/lock/door/state", "LOCKED", "porch/lock.door=\"LOCKED\""},
                {"porch/switch/pump/state", "OFF", "porch/switch.pump=\"OFF\""},
                {"porch/sensor/status/state", "3", "porch/sensor.status=3"},
                {"porch/debug", "[D][sensor:094]: 'T': 7.4", kLeftOut},
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
       {"homeassistant/climate/hall/presets", R"({"eco":18,"away":null})",
        "climate.hall/presets.eco=18"},
       {"homeassistant/sensor/x/friendly_name", "\"21.5\"", "sensor.x/friendly_name=\"21.5\""},
       {"homeassistant/sensor/node_1/x/config", "{}", kLeftOut},
       {"homeassistant/device/node_1/config", "{}", kLeftOut},
       {"homeassistant/status", "online", kLeftOut},
       {"homeassistant/sensor/x/config", "{}", kLeftOut}});
}

TEST_CASE("preset ttn") {
  check_preset(
      "ttn",
      {{"v3/farm@ttn/devices/soil-1/join", R"({"join_accept":{"session_key_id":"x"}})", kLeftOut},
       {"v3/farm@ttn/devices/soil-1/down/ack", R"({"downlink_ack":{"f_cnt":1}})", kLeftOut},
       {"v3/farm@ttn/devices/soil-1/service/data", "{}", kLeftOut},
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"received_at":"2026-11-20T14:00:00Z","uplink_message":{"f_port":2,"decoded_payload":)"
        R"({"t":[21.5,22],"rssi":3,"d":{"e":null}},)"
        R"("normalized_payload":[{"air":{"temperature":9}}],)"
        R"("rx_metadata":[{"rssi":-97}]}})",
        "soil-1/t.0=21.5 soil-1/t.1=22 soil-1/rssi=3 soil-1/normalized.0.air.temperature=9 "
        "soil-1/rssi~2=-97 soil-1/f_port=2 @1795183200000000000"},
       {"v3/farm@ttn/devices/soil-1/up/normalized",
        R"({"received_at":"2026-11-20T14:00:00Z","uplink_normalized":{"f_port":2,)"
        R"("normalized_payload":{"air":{"temperature":9}}}})",
        "soil-1/normalized.air.temperature=9 @1795183200000000000"},
       {"v3/farm@ttn/devices/soil-1/location/solved",
        R"({"received_at":"2026-11-20T14:00:00Z","location_solved":{"location":{"latitude":52.5,)"
        R"("source":"SOURCE_GPS"}}})",
        "soil-1/location.latitude=52.5 soil-1/location.source=\"SOURCE_GPS\" "
        "@1795183200000000000"},
       {"v3/farm@ttn/devices/soil-1/up",
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
       {"v3/farm@ttn/devices/soil-1/join", "{}", kLeftOut}});
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
