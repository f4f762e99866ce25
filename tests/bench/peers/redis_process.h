// A private Redis, as Debian packages it, to measure beside: on a Unix socket, with its append-only
// file, which it syncs every second.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/processes.h"
#include "bench/raw_connection.h"
#include "bench/store_session.h"

namespace edgecase::cli::bench {

class RedisProcess {
 public:
  static bool is_installed();
  static Result<std::unique_ptr<RedisProcess>> start(const std::string& parent);

  Endpoint endpoint() const { return {directory_->path() + "/socket", 0}; }
  pid_t id() const { return child_->id(); }
  // Where its append-only file lies.
  const std::string& directory() const { return directory_->path(); }

 private:
  RedisProcess() = default;

  std::unique_ptr<PrivateDirectory> directory_;  // gone after the process
  std::unique_ptr<ChildProcess> child_;
};

// Speaks its protocol. Used by one thread.
class RedisClient {
 public:
  static Result<RedisClient> connect(const Endpoint& endpoint);

  // Sent together; every answer must be no error. The number in the last one, else 0.
  Result<std::uint64_t> call(const std::vector<std::vector<std::string>>& commands);

 private:
  RedisClient() = default;
  Result<std::string> take_line();

  RawConnection connection_;
  std::string buffer_;  // received and not yet taken
  std::size_t taken_ = 0;
};

}  // namespace edgecase::cli::bench
