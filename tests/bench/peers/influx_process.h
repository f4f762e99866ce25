// A private InfluxDB 1.x, as Debian packages it, to measure beside. Its defaults sync the
// write-ahead log before every answer; that is written down again in its configuration.
#pragma once

#include <memory>
#include <string>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"

namespace edgecase::cli::bench {

class InfluxProcess final : public Server {
 public:
  // Unavailable when influxd is not installed.
  static Result<std::unique_ptr<InfluxProcess>> start(const std::string& parent);

  Endpoint endpoint() const override { return {"", port_}; }
  pid_t id() const override { return child_->id(); }

 private:
  InfluxProcess() = default;

  std::unique_ptr<PrivateDirectory> directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> child_;
};

// InfluxProcess::start() for ingest_http_beside().
StartServer start_influx;

}  // namespace edgecase::cli::bench
