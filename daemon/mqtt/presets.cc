#include "mqtt/topic_rule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace edgecase::mqtt {
namespace {

// One row of a preset. `device` and `sensor` are name templates; empty: what the topic gives.
struct Row {
  const char* topic;
  RouteAction action = RouteAction::Store;
  const char* device = "";
  const char* sensor = "";
  PayloadPlan payload = {};
  bool subscribe = true;
  bool fallback = false;      // of topics that any other rule may have meant
  const char* identity = "";  // a name template: what tells devices apart
};

struct Preset {
  std::string_view name;
  std::string base;  // literal start of its topics that a rule's own topic may replace; or ""
  std::vector<Row> rows;
  std::size_t main_row = 0;    // whose payload plan a rule's own topic gets
  std::size_t sensor_row = 0;  // the same, when that topic has a {sensor}
  std::vector<std::string> silent_sensors;
};

Row ignored(const char* topic) {
  return {topic, RouteAction::Ignore, "", "", {}, false, false};
}

Row ignored_if_nobody_takes_it(const char* topic) {
  return {topic, RouteAction::Ignore, "", "", {}, false, true};
}

// JSON state per device or group, friendly names may have several levels; `last_seen` is RFC 3339
// or milliseconds since 1970, as configured there. With `output: attribute` each attribute has a
// topic of its own, a level below the device's; what is there is never an object. Rows below
// `bridge` and the command topics only sort out.
Preset zigbee2mqtt() {
  PayloadPlan state;
  state.times = {"/last_seen"};
  state.drops = {"/device"};  // what the device is, not what it measures
  state.scalar_is_attribute = true;
  PayloadPlan availability;  // {"state":"online"} or the word alone
  availability.picks = {{"/state", "", false}};
  availability.root = "/nothing";
  Row main{"zigbee2mqtt/{device+}", RouteAction::Store, "", "", state, true};
  return {"zigbee2mqtt",
          "zigbee2mqtt",
          {ignored("zigbee2mqtt/bridge/#"), ignored("zigbee2mqtt/{device+}/set"),
           ignored("zigbee2mqtt/{device+}/set/+"), ignored("zigbee2mqtt/{device+}/get"),
           ignored("zigbee2mqtt/{device+}/get/+"),
           Row{"zigbee2mqtt/{device+}/availability", RouteAction::Store, "", "availability",
               availability, false},
           main},
          6,
          6,
          {}};
}

// Parts of RESULT below stat/ that happened: all others repeat a command, or what stands elsewhere.
std::vector<JsonBranch> tasmota_events() {
  // As many as the firmware has at most.
  constexpr int kKeys = 32;
  constexpr int kShutters = 16;
  std::vector<JsonBranch> events;
  const auto add = [&events](const std::string& name) { events.push_back({"/" + name, name}); };
  for (int i = 1; i <= kKeys; ++i) {
    add("Button" + std::to_string(i));
    add("Switch" + std::to_string(i));
  }
  for (int i = 1; i <= kShutters; ++i) add("Shutter" + std::to_string(i));
  for (const char* name : {"MCP230XX_INT", "IrReceived", "RfReceived", "TuyaReceived"}) add(name);
  return events;
}

// `Time` is the device's local time, without an offset unless SetOption52 is on: then it counts,
// or where the rule's time-zone says whose clock it is; else the time of arrival does. A topic may
// have several levels: its own, or those of a Zigbee, LoRaWAN or Matter device behind the bridge
// (SetOption89, and 118: then `ZbReceived` stands in the topic).
Preset tasmota() {
  PayloadPlan report;
  report.times = {"/Time"};
  report.local_time_is_unknown = true;
  report.drop_names = {"TempUnit", "PressureUnit", "SpeedUnit"};
  PayloadPlan sensors = report;  // the answers to STATUS 8 or 10, and 11, under the same names
  sensors.root = "/StatusSNS";
  sensors.times = {"/StatusSNS/Time"};
  PayloadPlan state = report;
  state.root = "/StatusSTS";
  state.times = {"/StatusSTS/Time"};
  PayloadPlan events = report;
  events.root = "/nothing";
  events.branches = tasmota_events();
  PayloadPlan word;
  word.kind = PayloadKind::Text;
  PayloadPlan value;  // which rules of the device publish, or the firmware: `POWER_LOW`, `DOOR`
  value.only_scalar = true;
  const auto store = [](const char* topic, const char* sensor, const PayloadPlan& plan) {
    return Row{topic, RouteAction::Store, "", sensor, plan, true};
  };
  // Named by a gateway: a device of Tasmota's own may have the same name.
  const auto behind = [&report](const char* topic, const char* device, const char* identity) {
    return Row{topic, RouteAction::Store, device, "", report, true, false, identity};
  };
  return {
      "tasmota",
      "",
      {store("tele/{device+}/SENSOR", "", report), store("tele/{device+}/STATE", "", report),
       store("tele/{device+}/RESULT", "", report), store("tele/{device+}/LWT", "LWT", word),
       store("tele/{device+}/SENSOR/{sensor}", "", report),
       store("tele/{device+}/ZbReceived", "", report),
       store("tele/{device+}/LwReceived", "", report),
       store("tele/{device+}/SSERIALRECEIVED", "", report),
       store("tele/{device+}/ENERGY", "ENERGY", report),
       behind("tele/tasmota_ble/{device}", "tasmota_ble.{device}", "tasmota_ble/{device}"),
       // What it is and how it is set up; UPTIME and the like stand in STATE.
       store("tele/{device+}/{sensor}", "", value), store("stat/{device+}/RESULT", "", events),
       store("stat/{device+}/MtrReceived", "", report),
       store("stat/{device+}/PCF8574_INP", "", report), store("stat/{device+}/STATE", "", report),
       store("stat/{device+}/BUTTON{sensor}", "BUTTON{sensor}", report),
       store("stat/{device+}/SWITCH{sensor}", "SWITCH{sensor}", report),
       behind("stat/EQ3/{device}", "EQ3.{device}", "EQ3/{device}"),
       // Answers to commands: the relays' state and sensors are readings.
       store("stat/{device+}/POWER", "POWER", word),
       store("stat/{device+}/POWER{sensor}", "POWER{sensor}", word),
       store("stat/{device+}/STATUS8", "", sensors), store("stat/{device+}/STATUS10", "", sensors),
       store("stat/{device+}/STATUS11", "", state), ignored("stat/{device+}/LOGGING"),
       store("stat/{device+}/{sensor}", "", value), ignored_if_nobody_takes_it("cmnd/#")},
      0,
      0,
      {"SENSOR", "STATE", "RESULT"}};
}

// First generation: bare values below shellies/. Second and later: JSON-RPC notifications and,
// where switched on, a status topic for each component. Events are records with times of their
// own: a press of a button, or what a BLU device near by has sent, under that device's address.
Preset shelly() {
  PayloadPlan value;
  PayloadPlan notify;
  notify.root = "/params";
  notify.times = {"/ts", "/params/ts"};
  notify.records = "/params/events";
  notify.record_names = {"/data/address", "/component"};
  notify.record_root = "/data";
  notify.time_format = TimeFormat::Unix;
  notify.drop_names = {"id", "component", "address"};
  notify.only_pointer = "/method";
  notify.only_texts = {"NotifyStatus", "NotifyFullStatus", "NotifyEvent"};
  PayloadPlan status;
  status.drop_names = {"id"};
  return {
      "shelly",
      "",
      {ignored("shellies/announce"), ignored("shellies/command"),
       ignored("shellies/{device}/announce"), ignored("shellies/{device}/info"),
       ignored("shellies/{device}/command"), ignored("shellies/{device}/{sensor+}/command"),
       ignored("shellies/{device}/{sensor+}/set"),
       Row{"shellies/{device}/{sensor+}", RouteAction::Store, "", "", value, true},
       Row{"{device}/events/rpc", RouteAction::Store, "", "", notify, true},
       Row{"{device}/status/{sensor}", RouteAction::Store, "", "", status, true},
       Row{"{device}/online", RouteAction::Store, "", "online", value, true},
       ignored_if_nobody_takes_it("{device}/rpc"), ignored_if_nobody_takes_it("{device}/command/#"),
       ignored_if_nobody_takes_it("{device}/debug/log")},
      8,
      7,
      {}};
}

// <node>/<domain>/<object>/state, and a level more where a component has several states: climate,
// fan, cover. Sensors keep their plain name, other domains put theirs before it.
Preset esphome() {
  PayloadPlan value;
  PayloadPlan word;
  word.kind = PayloadKind::Text;
  return {
      "esphome",
      "",
      {// It would be the node's own status.
       Row{"{device}/sensor/status/state", RouteAction::Store, "", "sensor.status", value, false},
       Row{"{device}/sensor/{sensor}/state", RouteAction::Store, "", "{sensor}", value, false},
       Row{"{device}/+/{sensor}/state", RouteAction::Store, "", "{2}.{sensor}", value, true},
       Row{"{device}/+/{sensor}/+/state", RouteAction::Store, "", "{2}.{sensor}.{4}", value, true},
       Row{"{device}/status", RouteAction::Store, "", "status", word, true},
       ignored_if_nobody_takes_it("{device}/debug")},
      1,
      1,
      {}};
}

// Statestream: one topic for each state and attribute. Device "sensor.kitchen", as entities are
// called there. Discovery messages end in `config`.
Preset homeassistant() {
  PayloadPlan value;
  value.unquote = true;  // states come bare, attributes as JSON
  return {"homeassistant",
          "homeassistant",
          {ignored("homeassistant/status"), ignored("homeassistant/+/+/+/config"),
           ignored("homeassistant/+/+/config"), ignored("homeassistant/+/+/last_changed"),
           ignored("homeassistant/+/+/last_updated"),
           Row{"homeassistant/+/{device}/{sensor}", RouteAction::Store, "{2}.{device}", "", value,
               true}},
          5,
          5,
          {}};
}

// The Things Stack v3: the decoded payload, and how well the first gateway heard it.
Preset ttn() {
  PayloadPlan uplink;
  uplink.root = "/uplink_message/decoded_payload";
  uplink.times = {"/uplink_message/received_at", "/received_at"};
  uplink.time_format = TimeFormat::Rfc3339;
  uplink.picks = {
      {"/uplink_message/rx_metadata/0/rssi", "rssi", false},
      {"/uplink_message/rx_metadata/0/snr", "snr", false},
      {"/uplink_message/f_port", "f_port", false},
      {"/uplink_message/f_cnt", "f_cnt", false},
      {"/uplink_message/settings/data_rate/lora/spreading_factor", "spreading_factor", false},
      {"/uplink_message/last_battery_percentage/value", "last_battery_percentage", false},
      {"/uplink_message/frm_payload", "frm_payload", true}};
  uplink.branches = {{"/uplink_message/normalized_payload", "normalized"}};
  PayloadPlan normalized;
  normalized.root = "/nothing";
  normalized.branches = {{"/uplink_normalized/normalized_payload", "normalized"}};
  normalized.times = {"/uplink_normalized/received_at", "/received_at"};
  normalized.time_format = TimeFormat::Rfc3339;
  PayloadPlan location;
  location.root = "/location_solved/location";
  location.times = {"/received_at"};
  location.time_format = TimeFormat::Rfc3339;
  // Devices are told apart within their application alone.
  const auto store = [](const char* topic, const char* sensor, const PayloadPlan& plan) {
    return Row{topic, RouteAction::Store, "", sensor, plan, true, false, "{2}/{device}"};
  };
  return {"ttn",
          "",
          {store("v3/+/devices/{device}/up", "", uplink),
           store("v3/+/devices/{device}/up/normalized", "", normalized),
           store("v3/+/devices/{device}/location/solved", "location", location),
           // Joins, and what becomes of downlinks.
           ignored("v3/+/devices/{device}/#")},
          0,
          0,
          {}};
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {zigbee2mqtt(), tasmota(),       shelly(),
                                          esphome(),     homeassistant(), ttn()};
  return all;
}

Status in_topic(const Status& status) {
  return status.with_context("topic: ");
}

Result<Route> make_route(const Preset& preset, const Row& row, std::string topic) {
  Route route;
  EC_ASSIGN_OR_RETURN(route.topic, TopicTemplate::parse(topic));
  route.action = row.action;
  route.subscribe = row.subscribe;
  route.fallback = row.fallback;
  route.payload = row.payload;
  route.silent_sensors = preset.silent_sensors;
  if (*row.device != '\0') {
    EC_ASSIGN_OR_RETURN(route.device, NameTemplate::parse(row.device, route.topic));
  }
  if (*row.identity != '\0') {
    EC_ASSIGN_OR_RETURN(route.identity, NameTemplate::parse(row.identity, route.topic));
  }
  if (*row.sensor != '\0') {
    EC_ASSIGN_OR_RETURN(route.sensor, NameTemplate::parse(row.sensor, route.topic));
  }
  return route;
}

// The rule's own topic, read as the preset's main row; rows of the preset that sort out or name
// other things come first where they lie below the same literal start.
Result<std::vector<Route>> routes_of_own_topic(const Preset& preset, std::string_view topic) {
  auto own = TopicTemplate::parse(topic);
  if (!own.ok()) return in_topic(own.status());
  std::vector<Route> routes;
  const std::string base = own->literal_prefix();
  if (!preset.base.empty() && !base.empty()) {
    for (std::size_t i = 0; i < preset.rows.size(); ++i) {
      const Row& row = preset.rows[i];
      if (i == preset.main_row) continue;
      const std::string_view below = std::string_view(row.topic).substr(preset.base.size());
      EC_ASSIGN_OR_RETURN(Route route, make_route(preset, row, base + std::string(below)));
      // Only what the rule's own subscription brings may be taken from the rules behind it. The
      // rest may come all the same: by the listener, or by another rule's subscription.
      if (!filter_covers(own->filter(), route.topic.filter())) route.fallback = true;
      route.subscribe = false;
      routes.push_back(std::move(route));
    }
  }
  Route route;
  const bool has_sensor = own->has(TopicField::Sensor);
  route.payload = preset.rows[has_sensor ? preset.sensor_row : preset.main_row].payload;
  route.topic = std::move(own).value();
  route.silent_sensors = preset.silent_sensors;
  routes.push_back(std::move(route));
  return routes;
}

}  // namespace

const std::vector<std::string_view>& preset_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Preset& preset : presets()) all.push_back(preset.name);
    return all;
  }();
  return names;
}

Result<std::vector<Route>> preset_routes(std::string_view name, std::string_view topic) {
  const auto& all = presets();
  const auto preset =
      std::find_if(all.begin(), all.end(), [name](const Preset& p) { return p.name == name; });
  if (preset == all.end()) {
    std::string known;
    for (const std::string_view each : preset_names()) {
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    return invalid_argument("preset: \"" + std::string(name) + "\": one of " + known);
  }
  if (!topic.empty()) return routes_of_own_topic(*preset, topic);
  std::vector<Route> routes;
  for (const Row& row : preset->rows) {
    EC_ASSIGN_OR_RETURN(Route route, make_route(*preset, row, row.topic));
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace edgecase::mqtt
