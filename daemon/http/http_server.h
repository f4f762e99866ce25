// The HTTP face: routes to functions. Endpoints, parameters and answers: http/API.md.
//
// Use: start() when everything it is given is ready; destroy it (or stop()) before any of that goes
// away. Thread-safe. Requests run on `http.threads` workers; idle and slow connections take none
// (http_front.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "audit/audit_log.h"
#include "auth/token_store.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "erase/erase_service.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/origins.h"
#include "ingest/redating.h"
#include "net/channel.h"
#include "observe/logger.h"
#include "observe/metrics.h"
#include "query/query_service.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"
#include "sign/signature.h"
#include "tiers/tier_maker.h"
#include "tiers/window_intake.h"

namespace edgecase::forward {
class Forwarding;
}

namespace edgecase::http {

// What the server stands on. Everything must outlive it.
struct HttpServerParts {
  const config::Settings& settings;
  Engine& engine;
  FileSystem& file_system;  // how full the two drives are
  Clock& clock;
  catalog::Catalog& catalog;
  catalog::DeviceIndex& devices;
  ingest::IngestPipeline& ingest;
  query::QueryService& query;
  retention::RetentionService& retention;
  erase::EraseService& erase;
  auth::Authenticator& authenticator;
  observe::Metrics& metrics;
  observe::Logger& logger;

  // The MQTT side is a sibling, so the application connects the two. Both are called on worker
  // threads; either may be left empty.
  std::function<std::string()> mqtt_status_json = {};  // a JSON object: "mqtt" of /api/v1/status
  std::function<Result<std::string>(std::string_view topic, std::string_view payload)> mqtt_test =
      {};  // a JSON object

  net::ChannelMaker tcp_channels = {};                     // of http.listen
  audit::AuditLog* audit = nullptr;                        // null: nothing is recorded
  const retention::Eviction* eviction = nullptr;           // null: nothing is evicted
  const ingest::Redating* redating = nullptr;              // null: nothing is dated later
  const tiers::TierMaker* tiers = nullptr;                 // null: nothing becomes windows
  std::shared_ptr<tiers::WindowIntake> windows = nullptr;  // null: none are taken
  forward::Forwarding* forwarding = nullptr;               // null: nothing is forwarded
  ingest::Origins* origins = nullptr;                      // null: all that comes is this store's
  sign::SigningKey* signing_key = nullptr;                 // null: reports are not signed
  // Has memory that is free given back, for a large body that comes or a change of many rules; on
  // any thread.
  std::function<void()> give_memory_back = {};
};

class HttpServer {
 public:
  // Listens on `http.socket` and `http.listen` (each may be ""). Errors name the address:
  // AlreadyExists (in use), NotAllowed, InvalidArgument, IoError.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerParts parts);
  // As stop(). Also removes the registry's callbacks, as /metrics is what calls them.
  ~HttpServer();

  // Takes no more requests, lets running ones finish for a bounded time, then cuts them off.
  void stop();

  // Takes http.names, http.proxies, limits.query-… and the rules of lines for requests from now on,
  // and this machine's names anew. InvalidArgument: nothing has changed.
  Status reload(const config::Settings& settings);

  // The port of the TCP listener: what the system chose for port 0. 0 when TCP is off.
  std::uint16_t tcp_port() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace edgecase::http
