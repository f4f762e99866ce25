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
  static constexpr std::uint32_t kWindow = 100;

  // Connects with a clean session. At most `window` messages are on their way.
  static Result<MqttPublisher> connect(const Endpoint& broker, const std::string& client_id,
                                       std::uint32_t window = kWindow);

  // Queues one message; sends when enough are queued, and waits while the window is full.
  Status publish(std::string_view topic, std::string_view payload);
  // Sends what is queued and waits for every acknowledgement.
  Status finish();

 private:
  Status send_queued();
  Status receive_acknowledgements();

  std::uint32_t window_ = kWindow;
  RawConnection connection_;
  std::string outgoing_;
  std::string incoming_;
  std::uint32_t queued_ = 0;
  std::uint32_t unacknowledged_ = 0;
  std::uint16_t packet_id_ = 0;
};

struct MqttLoad {
  std::uint32_t publishers = 1;
  std::uint64_t messages = 0;  // of all publishers together
  std::uint64_t seed = 1;
  std::uint32_t payload_bytes = 0;  // a text of that length that begins with a number; 0: a number
  std::uint32_t window = MqttPublisher::kWindow;
};
// Each publisher in a thread of its own publishes as sensors/node-<p>/s<k>, everything acknowledged
// on return; how long that took, in seconds.
Result<double> publish_all(const Endpoint& broker, const MqttLoad& load);

}  // namespace edgecase::cli::bench
