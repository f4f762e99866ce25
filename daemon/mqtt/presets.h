// Topic layouts and payload shapes of widely used firmware and bridges, as ready-made routes. What
// each one takes and how it names things: daemon/mqtt/DESIGN.md.
#pragma once

#include <string_view>
#include <vector>

#include "edgecase/result.h"
#include "mqtt/topic_rule.h"

namespace edgecase::mqtt {

// zigbee2mqtt, tasmota, shelly, esphome, homeassistant, ttn.
const std::vector<std::string_view>& preset_names();

// The routes of preset `name`, in the order in which they are tried. With a `topic`, that template
// alone is subscribed to and gets the preset's way of reading payloads. InvalidArgument names the
// key that is wrong.
Result<std::vector<Route>> preset_routes(std::string_view name, std::string_view topic);

}  // namespace edgecase::mqtt
