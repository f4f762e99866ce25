#include "bench/peers/redis_process.h"

#include <unistd.h>

#include <charconv>
#include <fstream>

namespace edgecase::cli::bench {
namespace {

constexpr double kRedisStartSeconds = 20;
constexpr const char* kServer = "/usr/bin/redis-server";

}  // namespace

bool RedisProcess::is_installed() {
  return access(kServer, X_OK) == 0;
}

Result<std::unique_ptr<RedisProcess>> RedisProcess::start(const std::string& parent) {
  std::unique_ptr<RedisProcess> redis(new RedisProcess());
  EC_ASSIGN_OR_RETURN(redis->directory_, PrivateDirectory::create(parent));
  const std::string& directory = redis->directory_->path();
  const std::string config_path = directory + "/redis.conf";
  std::ofstream file(config_path);
  file << "port 0\nunixsocket " << redis->endpoint().socket_path << "\ndir " << directory
       << "\nsave \"\"\nappendonly yes\nappendfsync everysec\nloglevel warning\n";
  file.close();
  if (!file) return io_error("cannot write " + config_path);
  EC_ASSIGN_OR_RETURN(redis->child_,
                      ChildProcess::start({kServer, config_path}, directory + "/log"));
  EC_TRY(wait_until_ready(*redis->child_, kRedisStartSeconds, [&redis] {
    auto client = RedisClient::connect(redis->endpoint());
    return client.ok() && client->call({{"PING"}}).ok();
  }));
  return redis;
}

Result<RedisClient> RedisClient::connect(const Endpoint& endpoint) {
  RedisClient client;
  EC_TRY(client.connection_.open(endpoint));
  return client;
}

Result<std::string> RedisClient::take_line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n", taken_)) == std::string::npos) {
    EC_ASSIGN_OR_RETURN(const std::size_t received, connection_.receive(buffer_));
    if (received == 0) return io_error("Redis closed the connection");
  }
  std::string line = buffer_.substr(taken_, end - taken_);
  taken_ = end + 2;
  if (taken_ == buffer_.size()) {
    buffer_.clear();
    taken_ = 0;
  }
  return line;
}

// Arrays of bulk strings there, simple strings and integers back.
Result<std::uint64_t> RedisClient::call(const std::vector<std::vector<std::string>>& commands) {
  std::string request;
  for (const auto& words : commands) {
    request += "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  EC_TRY(connection_.send(request));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    EC_ASSIGN_OR_RETURN(const std::string line, take_line());
    if (line.empty() || (line[0] != '+' && line[0] != ':'))
      return io_error("Redis answered " + line);
    if (line[0] == ':') std::from_chars(line.data() + 1, line.data() + line.size(), number);
  }
  return number;
}

}  // namespace edgecase::cli::bench
