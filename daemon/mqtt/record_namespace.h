// The namespace of MQTT's own records: the engine's `_mqtt` on the metadata drive, which no query
// shows. The first byte of a key says whose record it is: 'D' device_names.h, 'F'
// subscribed_filters.h, 'Q' listener/session_records.h.
#pragma once

#include <string_view>

#include "edgecase/engine.h"

namespace edgecase::mqtt {

inline constexpr std::string_view kMqttNamespace = "_mqtt";

// Made where there is none yet. Errors: the engine's.
Result<NamespaceId> open_record_namespace(Engine& engine);

}  // namespace edgecase::mqtt
