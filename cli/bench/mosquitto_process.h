// A private mosquitto. Its queues are unlimited, so that it drops nothing however slow a subscriber
// is; all else is as installed.
#pragma once

#include <memory>
#include <string>

#include "bench/child_process.h"
#include "bench/private_directory.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

class MosquittoProcess {
 public:
  // Unavailable when mosquitto is not installed.
  static Result<std::unique_ptr<MosquittoProcess>> start(const std::string& parent);

  std::uint16_t port() const { return port_; }
  Endpoint endpoint() const { return {"", port_}; }

 private:
  MosquittoProcess() = default;

  std::unique_ptr<PrivateDirectory> directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace edgecase::cli::bench
