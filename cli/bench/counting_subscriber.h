// A paho subscriber that stores nothing: what the library and the broker alone can take.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "edgecase/result.h"

namespace edgecase::cli::bench {

class CountingSubscriber {
 public:
  // Subscribed to sensors/# when it returns.
  static Result<std::unique_ptr<CountingSubscriber>> connect(std::uint16_t port, int qos);
  ~CountingSubscriber();
  CountingSubscriber(const CountingSubscriber&) = delete;
  CountingSubscriber& operator=(const CountingSubscriber&) = delete;

  std::uint64_t messages() const { return messages_; }

 private:
  CountingSubscriber() = default;
  struct Callbacks;

  void* client_ = nullptr;
  int qos_ = 0;
  std::atomic<int> subscribed_{0};  // 1 yes, -1 refused
  std::atomic<std::uint64_t> messages_{0};
};

}  // namespace edgecase::cli::bench
