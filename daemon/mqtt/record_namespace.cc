#include "mqtt/record_namespace.h"

namespace edgecase::mqtt {

Result<NamespaceId> open_record_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kMqttNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  return engine.create_namespace(kMqttNamespace, options);
}

}  // namespace edgecase::mqtt
