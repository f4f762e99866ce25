#include "mqtt/payload_decoder.h"

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
const char* const kNoScalar =
    "ignored: is a JSON object or array, and the preset stores single values here";

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
       // Parts of a device of its own, as Home Assistant's extension repeats them; a device's
       // legacy action; nothing, as `null` is published by attribute.
       {"zigbee2mqtt/0xa4c1/left", R"({"state":"ON"})", "0xa4c1.left/state=\"ON\""},
       {"zigbee2mqtt/button/action", "single", "button/action=\"single\""},
       {"zigbee2mqtt/lamp/color", "255,0,7", "lamp/color=\"255,0,7\""},
       {"zigbee2mqtt/lamp/color_temp", "", "ignored: empty payload"},
       {"zigbee2mqtt/smart vent", R"({"state":"OPEN","update":{"state":"idle","progress":null}})",
        "smart vent/state=\"OPEN\" smart vent/update.state=\"idle\""},
       {"zigbee2mqtt/lamp", R"({"last_seen":1795183200125,"state":null})",
        "ignored: no value in it"},
       {"zigbee2mqtt/bridge/health", R"({"os":{"load_average":[0.1]}})", kLeftOut},
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
       {"stat/plug/RESULT", R"({"POWER":"OFF"})", "ignored: no value in it"},
       {"stat/plug/STATUS8", R"({"StatusSNS":{"Time":"2026-11-20T15:00:00Z"}})",
        "ignored: no value in it"},
       {"stat/plug/STATUS10",
        R"({"StatusSNS":{"Time":"2026-11-20T14:00:00Z","ENERGY":{"Power":12,"Factor":0.9}}})",
        "plug/ENERGY.Power=12 plug/ENERGY.Factor=0.9 @1795183200000000000"},
       {"stat/plug/STATUS11", R"({"StatusSTS":{"POWER1":"ON","Wifi":{"RSSI":74}}})",
        "plug/POWER1=\"ON\" plug/Wifi.RSSI=74"},
       {"stat/plug/STATUS5", R"({"StatusNET":{"Hostname":"x"}})", kNoScalar},
       {"stat/plug/STATUS2", R"({"StatusFWR":)", kNoScalar},
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
       {"tele/plug/INFO1", R"({"Info1":{"Module":"x"}})", kNoScalar},
       {"tele/plug/UPTIME", R"({"Time":"2026-11-20T15:00:00","Uptime":"0T01:00:00"})", kNoScalar},
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

TEST_CASE("preset tasmota: what happens, and what its own rules publish") {
  check_preset(
      "tasmota",
      {{"stat/plug/RESULT", R"({"Button1":{"Action":"DOUBLE"}})", "plug/Button1.Action=\"DOUBLE\""},
       {"stat/plug/RESULT", R"({"Switch12":{"Action":"ON"}})", "plug/Switch12.Action=\"ON\""},
       {"stat/plug/RESULT", R"({"Button32":{"Action":"HOLD"}})", "plug/Button32.Action=\"HOLD\""},
       {"stat/blind/RESULT", R"({"Shutter1":{"Position":47,"Direction":1,"Target":100}})",
        "blind/Shutter1.Position=47 blind/Shutter1.Direction=1 blind/Shutter1.Target=100"},
       {"stat/plug/RESULT", R"({"Time":"2026-11-20T14:00:00Z","MCP230XX_INT":{"D0":1,"MS":301}})",
        "plug/MCP230XX_INT.D0=1 plug/MCP230XX_INT.MS=301 @1795183200000000000"},
       {"stat/plug/RESULT", R"({"Rule1":"ON","Free":322})", "ignored: no value in it"},
       {"stat/plug/RESULT", R"({"MqttPassword":"secret"})", "ignored: no value in it"},
       {"stat/plug/BUTTON2", R"({"ACTION":"SINGLE"})", "plug/BUTTON2.ACTION=\"SINGLE\""},
       {"stat/plug/BUTTON2T", R"({"TRIG":"HOLD"})", "plug/BUTTON2T.TRIG=\"HOLD\""},
       {"stat/plug/SWITCH1", "ON", "plug/SWITCH1=\"ON\""},
       {"stat/hall/PCF8574_INP", R"({"Time":"2026-11-20T15:00:00+01:00","PCF8574-1_INP":{"D1":1}})",
        "hall/PCF8574-1_INP.D1=1 @1795183200000000000"},
       {"stat/plug/STATE", R"({"Time":"2026-11-20T15:00:00","UptimeSec":60,"POWER1":"ON"})",
        "plug/UptimeSec=60 plug/POWER1=\"ON\""},
       // Single values.
       {"tele/plug/POWER_LOW", "ON", "plug/POWER_LOW=\"ON\""},
       {"stat/hall/DOOR", "OFF", "hall/DOOR=\"OFF\""},
       {"stat/pump/DPTYPE1ID1", "1", "pump/DPTYPE1ID1=1"},
       {"stat/blind/SHUTTER1", "50", "blind/SHUTTER1=50"},
       {"stat/plug/LOGGING", "12:00:00 MQT: x", kLeftOut},
       {"stat/plug/COMMAND", R"({"Dimmer":50})", kNoScalar},
       {"stat/plug/LIST", "[1,2]", kNoScalar},
       // Devices behind it, each under a name of its own; SetOption89, 112, 118, 119 and 120.
       {"tele/zbbridge/5ADF/ZbReceived", R"({"0x5ADF":{"Dimmer":254,"Endpoint":1}})",
        "zbbridge.5ADF/0x5ADF.Dimmer=254 zbbridge.5ADF/0x5ADF.Endpoint=1"},
       {"tele/zbbridge/Hall/ZbReceived", R"({"Device":"0x5ADF","Temperature":21.5})",
        "zbbridge.Hall/Device=\"0x5ADF\" zbbridge.Hall/Temperature=21.5"},
       {"tele/zbbridge/5ADF_1/SENSOR", R"({"ZbReceived":{"0x5ADF":{"Power":1}}})",
        "zbbridge.5ADF_1/ZbReceived.0x5ADF.Power=1"},
       {"tele/zbbridge/SENSOR",
        R"({"ZbReceived":{"Vibration":{"Device":"0x128F","AqaraAngles":[-78,1,11]}}})",
        "zbbridge/ZbReceived.Vibration.Device=\"0x128F\" "
        "zbbridge/ZbReceived.Vibration.AqaraAngles.0=-78 "
        "zbbridge/ZbReceived.Vibration.AqaraAngles.1=1 "
        "zbbridge/ZbReceived.Vibration.AqaraAngles.2=11"},
       {"tele/lora/SENSOR", R"({"LwReceived":{"0x4AD6":{"Node":1,"RSSI":-50.0,"DoorOpen":1}}})",
        "lora/LwReceived.0x4AD6.Node=1 lora/LwReceived.0x4AD6.RSSI=-50 "
        "lora/LwReceived.0x4AD6.DoorOpen=1"},
       {"tele/lora/SENSOR/A84041", R"({"LwReceived":{"0x4AD6":{"DoorOpen":0}}})",
        "lora/A84041.LwReceived.0x4AD6.DoorOpen=0"},
       {"tele/lora/A84041/LwReceived", R"({"0x4AD6":{"DoorOpen":1}})",
        "lora.A84041/0x4AD6.DoorOpen=1"},
       {"stat/plug/9/MtrReceived", R"({"Ep":9,"Name":"Light0","Power":1})",
        "plug.9/Ep=9 plug.9/Name=\"Light0\" plug.9/Power=1"},
       {"tele/tasmota_ble/Kitchen", R"({"Time":"2026-11-20T14:00:00Z","Temperature":20.5})",
        "tasmota_ble.Kitchen/Temperature=20.5 @1795183200000000000"},
       {"tele/Kitchen/SENSOR", R"({"Temperature":20.5})", "Kitchen/Temperature=20.5"},
       {"stat/EQ3/Bath", R"({"cmd":"state","temp":21.5})",
        "EQ3.Bath/cmd=\"state\" EQ3.Bath/temp=21.5"},
       // Several sensors of a kind, and one that gives a text where others give numbers.
       {"tele/hall/SENSOR",
        R"({"LYWSD03-52680f":{"Temperature":21.1},"LYWSD03-a2fd09":{"Temperature":21.4}})",
        "hall/LYWSD03-52680f.Temperature=21.1 hall/LYWSD03-a2fd09.Temperature=21.4"},
       {"tele/nfc/SENSOR", R"({"PN532":{"UID":"94D8FC5F","DATA":""}})",
        "nfc/PN532.UID=\"94D8FC5F\" nfc/PN532.DATA=\"\""},
       {"tele/plug/ENERGY", R"({"Time":"2026-11-20T15:00:00","Total":0.64,"Power":0})",
        "plug/ENERGY.Total=0.64 plug/ENERGY.Power=0"},
       {"tele/meter/SSERIALRECEIVED", R"({"SSerialReceived":{"DeviceID":"TM182","Temp":25.3}})",
        "meter/SSerialReceived.DeviceID=\"TM182\" meter/SSerialReceived.Temp=25.3"},
       {"tele/meter/RESULT", R"({"SerialReceived":"1-0:1.7.0(00.498*kW)\r"})",
        "meter/SerialReceived=\"1-0:1.7.0(00.498*kW)\\r\""}});
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
       {"shellies/shellymotion-1/status", R"({"motion":true,"lux":120,"bat":90})",
        "shellymotion-1/status.motion=true shellymotion-1/status.lux=120 "
        "shellymotion-1/status.bat=90"},
       {"shellies/shellyrgbw2-1/color/0/status", R"({"ison":false,"red":0})",
        "shellyrgbw2-1/color.0.status.ison=false shellyrgbw2-1/color.0.status.red=0"},
       {"shellies/shellyht-B2/sensor/act_reasons", R"(["sensor"])",
        "shellyht-B2/sensor.act_reasons.0=\"sensor\""},
       {"shellies/shelly1-A1/ext_temperature/1", "19.5", "shelly1-A1/ext_temperature.1=19.5"},
       {"shellies/shelly1-A1/overpower_value", "0", "shelly1-A1/overpower_value=0"},
       {"shellies/shelly25-1/roller/0/pos", "-1", "shelly25-1/roller.0.pos=-1"},
       {"shelly1g3-b1/events/rpc",
        R"({"method":"NotifyEvent","params":{"ts":1795183200,"events":[)"
        R"({"component":"bthomedevice:200","id":200,"event":"single_push","idx":0},)"
        R"({"component":"bthomedevice:200","id":200,"event":"double_push","idx":1}]}})",
        "shelly1g3-b1/bthomedevice:200.event=\"single_push\" shelly1g3-b1/bthomedevice:200.idx=0 "
        "shelly1g3-b1/bthomedevice:200.event~2=\"double_push\" "
        "shelly1g3-b1/bthomedevice:200.idx~2=1 @1795183200000000000"},
       {"shellypro3em-1/status/em:0", R"({"id":0,"a_voltage":230.1,"errors":["phase_sequence"]})",
        "shellypro3em-1/em:0.a_voltage=230.1 shellypro3em-1/em:0.errors.0=\"phase_sequence\""},
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
  check_preset(
      "esphome",
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
       {"porch/fan/vent/direction/state", "reverse", "porch/fan.vent.direction=\"reverse\""},
       {"porch/fan/vent/oscillation/state", "oscillate_off",
        "porch/fan.vent.oscillation=\"oscillate_off\""},
       {"porch/climate/hall/target_temperature_low/state", "18.0",
        "porch/climate.hall.target_temperature_low=18"},
       {"porch/climate/hall/action/state", "idle", "porch/climate.hall.action=\"idle\""},
       {"porch/climate/hall/current_humidity/state", "41",
        "porch/climate.hall.current_humidity=41"},
       {"porch/cover/blind/tilt/state", "20", "porch/cover.blind.tilt=20"},
       {"porch/valve/main/state", "open", "porch/valve.main=\"open\""},
       {"porch/valve/main/position/state", "100", "porch/valve.main.position=100"},
       {"porch/alarm_control_panel/house/state", "ARMED_AWAY",
        "porch/alarm_control_panel.house=\"ARMED_AWAY\""},
       {"porch/event/bell/state", R"({"event_type":"double_press"})",
        "porch/event.bell.event_type=\"double_press\""},
       {"porch/update/firmware/state",
        R"({"installed_version":"1.0","latest_version":"1.1","title":"T"})",
        "porch/update.firmware.installed_version=\"1.0\" "
        "porch/update.firmware.latest_version=\"1.1\" porch/update.firmware.title=\"T\""},
       {"porch/date/start/state", R"({"year":2026,"month":11,"day":20})",
        "porch/date.start.year=2026 porch/date.start.month=11 porch/date.start.day=20"},
       {"porch/time/wake/state", R"({"hour":6,"minute":30,"second":0})",
        "porch/time.wake.hour=6 porch/time.wake.minute=30 porch/time.wake.second=0"},
       {"porch/light/lamp/state",
        R"({"color_mode":"rgb","state":"ON","color":{"r":255,"g":0,"b":7}})",
        "porch/light.lamp.color_mode=\"rgb\" porch/light.lamp.state=\"ON\" "
        "porch/light.lamp.color.r=255 porch/light.lamp.color.g=0 porch/light.lamp.color.b=7"},
       {"porch/text/note/state", "hello", "porch/text.note=\"hello\""},
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
       {"homeassistant/sensor/x/state", "unavailable", "sensor.x/state=\"unavailable\""},
       {"homeassistant/binary_sensor/door/state", "off", "binary_sensor.door/state=\"off\""},
       {"homeassistant/light/desk/supported_color_modes", R"(["hs","xy"])",
        "light.desk/supported_color_modes.0=\"hs\" light.desk/supported_color_modes.1=\"xy\""},
       {"homeassistant/light/desk/assumed_state", "true", "light.desk/assumed_state=true"},
       {"homeassistant/device_automation/node_1/press/config", "{}", kLeftOut},
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
       // Every kind of decoded payload: none, nothing in it, a list, one value, lists of objects.
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"uplink_message":{"decoded_payload":null,"frm_payload":"AQI=","f_port":1}})",
        "soil-1/f_port=1 soil-1/frm_payload=\"AQI=\""},
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"uplink_message":{"decoded_payload":{},"frm_payload":"AQI="}})",
        "soil-1/frm_payload=\"AQI=\""},
       {"v3/farm@ttn/devices/soil-1/up", R"({"uplink_message":{"decoded_payload":[4,5.5]}})",
        "soil-1/0=4 soil-1/1=5.5"},
       {"v3/farm@ttn/devices/soil-1/up", R"({"uplink_message":{"decoded_payload":7}})",
        "soil-1/value=7"},
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"uplink_message":{"decoded_payload":{"door":"open","ok":true,)"
        R"("channels":[{"id":1,"t":20.5},{"id":2,"t":21}]},"decoded_payload_warnings":["low"],)"
        R"("last_battery_percentage":{"f_cnt":3,"value":98.4}}})",
        "soil-1/door=\"open\" soil-1/ok=true soil-1/channels.0.id=1 soil-1/channels.0.t=20.5 "
        "soil-1/channels.1.id=2 soil-1/channels.1.t=21 soil-1/last_battery_percentage=98.4"},
       {"v3/farm@ttn/devices/soil-1/up",
        R"({"received_at":"2026-11-20T14:00:00Z","simulated":true,)"
        R"("uplink_message":{"f_cnt":1,"decoded_payload":{"t":NaN,"h":40}}})",
        "soil-1/h=40 soil-1/f_cnt=1 @1795183200000000000"},
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
