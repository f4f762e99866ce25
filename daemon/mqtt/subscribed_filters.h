// The filters that the broker's session holds, remembered over restarts: a session keeps a filter
// until it is unsubscribed, also when its rule is long gone from the configuration. Records in the
// namespace `_mqtt` (record_namespace.h):
//
//   key      'F'  client id  0  broker, "host:port"  0  filter      no part can hold a 0
//   value    one byte, the record's version: 1
//
// One thread at a time.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "edgecase/engine.h"

namespace edgecase::mqtt {

class SubscribedFilters {
 public:
  // Reads what is remembered of this session. Errors: the engine's.
  static Result<std::unique_ptr<SubscribedFilters>> open(Engine& engine, std::string_view client_id,
                                                         std::string_view broker);

  const std::set<std::string>& filters() const { return filters_; }
  // Durable on return. Before the broker is asked to subscribe, and after it has unsubscribed: so
  // none is ever forgotten. Errors: the engine's.
  Status add(const std::string& filter);
  Status remove(const std::string& filter);

 private:
  SubscribedFilters(Engine& engine, NamespaceId namespace_id, std::string prefix)
      : engine_(engine), namespace_id_(namespace_id), prefix_(std::move(prefix)) {}
  Status load();

  Engine& engine_;
  const NamespaceId namespace_id_;
  const std::string prefix_;  // of every key of this session
  std::set<std::string> filters_;
};

}  // namespace edgecase::mqtt
