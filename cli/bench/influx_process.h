// A private InfluxDB 1.x, as Debian packages it, to measure beside. Its defaults sync the
// write-ahead log before every answer; that is written down again in its configuration.
#pragma once

#include <memory>
#include <string>

#include "bench/child_process.h"
#include "bench/private_directory.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

class InfluxProcess {
 public:
  // Unavailable when influxd is not installed.
  static Result<std::unique_ptr<InfluxProcess>> start(const std::string& parent);

  Endpoint endpoint() const { return {"", port_}; }
  pid_t id() const { return child_->id(); }
  std::uint64_t occupied_bytes() const { return bench::occupied_bytes(directory_->path()); }

 private:
  InfluxProcess() = default;

  std::unique_ptr<PrivateDirectory> directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace edgecase::cli::bench
