// A store on this machine's file system and the subscription that fills it: what the daemon builds
// around MQTT, without its other faces.
#pragma once

#include <memory>
#include <string>

#include "edgecase/options.h"
#include "mqtt/mqtt_source.h"
#include "query/query_service.h"

namespace edgecase::test {

class MqttStore {
 public:
  // Opens, or creates, the store below `directory`.
  static Result<std::unique_ptr<MqttStore>> open(const std::string& directory);

  // Subscribes. Once, on a store that is open.
  Status subscribe(const config::MqttSettings& settings);
  mqtt::MqttSource& source() { return *source_; }

  // Calls `visit` with each reading of `namespace_name`, ordered by series, then time.
  template <typename Visit>
  Status visit(const std::string& namespace_name, Visit visit) {
    query::QueryService service(*engine_, *catalog_);
    wire::QueryRequest request;
    request.namespace_name = namespace_name;
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    EC_ASSIGN_OR_RETURN(const auto cursor, service.query(principal, request));
    wire::Reading reading;
    while (true) {
      EC_ASSIGN_OR_RETURN(const bool more, cursor->next(reading));
      if (!more) return ok();
      visit(reading);
    }
  }

 private:
  EventListener listener_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<ingest::IngestPipeline> pipeline_;
  std::unique_ptr<mqtt::RejectedMessages> rejected_;
  std::unique_ptr<mqtt::MqttSource> source_;
};

}  // namespace edgecase::test
