// A private mosquitto, and a paho subscriber that stores nothing: what the library and the broker
// alone can take. The broker's queues are unlimited, so that it drops nothing however slow a
// subscriber is; all else is as installed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/processes.h"
#include "bench/raw_connection.h"
#include "bench/store_session.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// Gone with its directory at the end of its scope.
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

// Counts on paho's threads.
class CountingSubscriber {
 public:
  // MQTT 3.1.1 with as many messages on their way as the broker likes, or MQTT 5 with as many as
  // the daemon asks for.
  enum class Window : unsigned char { Usual, Wide };
  static constexpr std::uint16_t kWideWindow = 1'024;

  // Subscribed to sensors/# when it returns.
  static Result<std::unique_ptr<CountingSubscriber>> connect(std::uint16_t port, int qos,
                                                             Window window = Window::Usual);
  ~CountingSubscriber();
  CountingSubscriber(const CountingSubscriber&) = delete;
  CountingSubscriber& operator=(const CountingSubscriber&) = delete;

  std::uint64_t messages() const { return messages_; }

 private:
  CountingSubscriber() = default;
  struct Callbacks;
  void begin_to_connect();

  void* client_ = nullptr;
  int qos_ = 0;
  Window window_ = Window::Usual;
  std::atomic<int> subscribed_{0};  // 1 yes, -1 refused
  std::atomic<std::uint64_t> messages_{0};
};

}  // namespace edgecase::cli::bench
