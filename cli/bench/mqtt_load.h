// Publishers that cost next to nothing: MQTT 3.1.1 at QoS 1 over plain sockets, a window of
// messages in flight each.
#pragma once

#include <cstdint>
#include <string>

#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

// One publisher's connection; used by one thread.
class MqttPublisher {
 public:
  // Connects with a clean session.
  static Result<MqttPublisher> connect(const Endpoint& broker, const std::string& client_id);

  // Queues one message; sends when enough are queued, and waits while `window` are unacknowledged.
  Status publish(std::string_view topic, std::string_view payload);
  // Sends what is queued and waits for every acknowledgement.
  Status finish();

  static constexpr std::uint32_t kWindow = 100;

 private:
  Status send_queued();
  Status receive_acknowledgements();

  RawConnection connection_;
  std::string outgoing_;
  std::string incoming_;
  std::uint32_t queued_ = 0;
  std::uint32_t unacknowledged_ = 0;
  std::uint16_t packet_id_ = 0;
};

// `publishers` threads publish `messages` numbers as sensors/node-<p>/s<k>, all acknowledged by the
// broker on return; how long that took.
Result<double> publish_numbers(const Endpoint& broker, std::uint32_t publishers,
                               std::uint64_t messages, std::uint64_t seed);

}  // namespace edgecase::cli::bench
