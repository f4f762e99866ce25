// A real server on a private socket and a port the system chose, over an engine in memory; and a
// client that sends exactly the bytes it is given.
#pragma once

#include <netinet/in.h>

#include <zlib.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "auth/token_store.h"
#include "catalog/catalog.h"
#include "config/settings.h"
#include "edgecase/machine.h"
#include "erase/erase_jobs.h"
#include "erase/erase_service.h"
#include "http/http_server.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/origins.h"
#include "net/channel.h"
#include "observe/logger.h"
#include "observe/metrics.h"
#include "query/query_service.h"
#include "retention/retention_service.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"

namespace edgecase::http::test {

struct Answer {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool complete = false;                       // all of the body came, the last chunk too

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// One connection. Every wait is bounded; tests fail instead of hanging.
class Client {
 public:
  // `from` is an address of this machine, in host order.
  static Client over_tcp(std::uint16_t port, std::uint32_t from = INADDR_LOOPBACK);
  static Client over_unix(const std::string& path);

  // Reads on.
  void end_sending() const;
  bool connected() const { return static_cast<bool>(socket_); }
  bool send(std::string_view bytes);
  // True: the server closed the connection, after whatever else it sent.
  bool closed();
  Answer receive(std::string_view method = "GET");
  Answer ask(std::string_view method, std::string_view target, std::string_view body = {},
             std::string_view headers = {});
  // As many bytes as `bytes` has; false: the connection ended before.
  bool receive_some(std::string& bytes);
  // Until the server has reset the connection, with what was under way.
  void await_reset() const;
  // Until there is something of an answer, which stays.
  bool await_answer() { return !input_.empty() || fill(); }
  // The next bytes as they come.
  bool receive_exactly(std::string_view expected);

 private:
  explicit Client(net::Socket socket) : socket_(std::move(socket)) {}
  bool fill();
  bool take_line(std::string& line);
  bool take(std::size_t size, std::string& bytes);

  net::Socket socket_;
  std::string input_;
};

struct ServerFixture {
  explicit ServerFixture(void (*adjust)(config::Settings&) = nullptr);
  ~ServerFixture();

  Client connect() const { return Client::over_tcp(server->tcp_port()); }
  Answer ask(std::string_view method, std::string_view target, std::string_view body = {},
             std::string_view headers = {}) const {
    return connect().ask(method, target, body, headers);
  }
  // All of `selector` in namespace `ns` as NDJSON lines "device/sensor@time=value".
  std::string stored(const std::string& ns = "default") const;

  edgecase::test::TempDirectory directory;
  edgecase::test::ManualClock clock;
  config::Settings settings;
  edgecase::test::ModelEngine engine;
  observe::Metrics metrics;
  observe::Logger logger{2, observe::LogStyle::Plain, clock};
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<erase::EraseService> erase;
  SeededRandom random{20251120};
  std::unique_ptr<auth::TokenStore> tokens;
  std::unique_ptr<sign::SigningKey> signing_key;
  std::unique_ptr<auth::Authenticator> authenticator;
  std::unique_ptr<audit::AuditLog> audit;  // where `audit.mode` is set to strict
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> queries;
  std::unique_ptr<ingest::Origins> origins;
  std::unique_ptr<erase::EraseWorker> erase_worker;
  std::unique_ptr<HttpServer> server;
};

// Discarded where the body is none.
nlohmann::json json_of(const Answer& answer);
// The header that shows a token.
std::string bearer(const std::string& token);

enum class Wrapper : int { Gzip = 15 + 16, Zlib = 15, None = -15 };
std::string compress(std::string_view text, Wrapper wrapper);

}  // namespace edgecase::http::test
