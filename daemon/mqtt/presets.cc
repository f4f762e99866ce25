#include "mqtt/presets.h"

#include <algorithm>
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
  return {topic, RouteAction::Ignore, "", "", {}, false};
}

// JSON state per device, friendly names may have several levels; `last_seen` is RFC 3339 or
// milliseconds since 1970, as configured there. Rows below `bridge` and the command topics only
// sort out.
Preset zigbee2mqtt() {
  PayloadPlan state;
  state.times = {"/last_seen"};
  state.drops = {"/device"};  // what the device is, not what it measures
  state.drop_scalar = true;
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

// `Time` is the device's local time, without an offset unless SetOption52 is on: then it counts,
// else the time of arrival does.
Preset tasmota() {
  PayloadPlan report;
  report.times = {"/Time"};
  report.local_time_is_unknown = true;
  report.drop_names = {"TempUnit", "PressureUnit", "SpeedUnit"};
  PayloadPlan word;
  word.kind = PayloadKind::Text;
  return {"tasmota",
          "",
          {Row{"tele/{device}/SENSOR", RouteAction::Store, "", "", report, true},
           Row{"tele/{device}/STATE", RouteAction::Store, "", "", report, true},
           Row{"tele/{device}/LWT", RouteAction::Store, "", "LWT", word, true},
           Row{"stat/{device}/RESULT", RouteAction::Ignore, "", "", {}, false},
           // Of the answers to commands only the relays' state is a reading.
           Row{"stat/{device}/POWER", RouteAction::Store, "", "POWER", word, true},
           Row{"stat/{device}/POWER{sensor}", RouteAction::Store, "", "POWER{sensor}", word, false},
           Row{"stat/{device}/{sensor}", RouteAction::Ignore, "", "", {}, true}},
          0,
          0,
          {"SENSOR", "STATE", "RESULT"}};
}

// First generation: bare values below shellies/. Second and later: JSON-RPC notifications and,
// where switched on, a status topic for each component.
Preset shelly() {
  PayloadPlan value;
  PayloadPlan notify;
  notify.root = "/params";
  notify.times = {"/params/ts"};
  notify.time_format = TimeFormat::Unix;
  notify.drop_names = {"id"};
  notify.only_pointer = "/method";
  notify.only_texts = {"NotifyStatus", "NotifyFullStatus"};
  PayloadPlan status;
  status.drop_names = {"id"};
  return {"shelly",
          "",
          {ignored("shellies/announce"), ignored("shellies/command"),
           ignored("shellies/{device}/announce"), ignored("shellies/{device}/info"),
           ignored("shellies/{device}/command"), ignored("shellies/{device}/{sensor+}/command"),
           ignored("shellies/{device}/{sensor+}/set"),
           Row{"shellies/{device}/{sensor+}", RouteAction::Store, "", "", value, true},
           Row{"{device}/events/rpc", RouteAction::Store, "", "", notify, true},
           Row{"{device}/status/{sensor}", RouteAction::Store, "", "", status, true},
           Row{"{device}/online", RouteAction::Store, "", "online", value, true}},
          8,
          7,
          {}};
}

// <node>/<domain>/<object>/state. Sensors keep their plain name, other domains put theirs before
// it.
Preset esphome() {
  PayloadPlan value;
  PayloadPlan word;
  word.kind = PayloadKind::Text;
  return {"esphome",
          "",
          {Row{"{device}/sensor/{sensor}/state", RouteAction::Store, "", "{sensor}", value, false},
           Row{"{device}/+/{sensor}/state", RouteAction::Store, "", "{2}.{sensor}", value, true},
           Row{"{device}/status", RouteAction::Store, "", "status", word, true}},
          0,
          0,
          {}};
}

// Statestream: one topic for each state and attribute. Device "sensor.kitchen", as entities are
// called there. Discovery messages end in `config`.
Preset homeassistant() {
  PayloadPlan value;
  value.unquote = true;  // states come bare, attributes as JSON
  return {"homeassistant",
          "homeassistant",
          {ignored("homeassistant/+/+/config"), ignored("homeassistant/+/+/last_changed"),
           ignored("homeassistant/+/+/last_updated"),
           Row{"homeassistant/+/{device}/{sensor}", RouteAction::Store, "{2}.{device}", "", value,
               true}},
          3,
          3,
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
      {"/uplink_message/frm_payload", "frm_payload", true}};
  return {"ttn", "", {Row{"v3/+/devices/{device}/up", RouteAction::Store, "", "", uplink, true}},
          0,     0,  {}};
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
  route.payload = row.payload;
  route.silent_sensors = preset.silent_sensors;
  if (*row.device != '\0') {
    EC_ASSIGN_OR_RETURN(route.device, NameTemplate::parse(row.device, route.topic));
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
      // Only what the rule's own subscription brings may be taken from the rules behind it.
      if (!filter_covers(own->filter(), route.topic.filter())) continue;
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
