// Loads that a bench puts on a daemon or a broker: lines over HTTP, messages over MQTT.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/raw_connection.h"
#include "bench/report.h"

namespace edgecase::cli::bench {

// Readings as Influx line protocol, made beforehand, and what sends them: over several keep-alive
// connections, waiting for every answer.
struct SensorLineOptions {
  std::uint64_t lines = 0;
  std::uint32_t lines_per_body = 1'000;
  std::uint32_t devices = 100;  // lines go round the devices; each round is one second
  std::uint32_t fields = 10;    // of one line
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'763'596'800'000'000'000;  // 2025-11-20T00:00:00Z
};

// One body after another; the caller takes them in turn.
std::vector<std::string> make_sensor_bodies(const SensorLineOptions& options);

struct LoadResult {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;  // of the bodies
  Histogram latency;        // of a request
};

// POST /write?db=<database>, one a body.
std::vector<std::string> make_write_requests(const std::vector<std::string>& bodies,
                                             const std::string& database);

// Each request goes once, in order, to whichever connection is free. Every answer must be 2xx. With
// `seconds` above 0 it stops after them. `begin` is called once connections over TLS have agreed on
// their keys, before the first request. Cancelled on Ctrl-C.
Result<LoadResult> send_all(const Endpoint& endpoint, const std::vector<std::string>& requests,
                            std::uint32_t connections, double seconds,
                            const std::function<Status()>& begin = nullptr);

// Makes the database where the server wants that: POST /query?q=CREATE DATABASE.
Status create_database(const Endpoint& endpoint, const std::string& database);

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

// Publishers that cost next to nothing: MQTT 3.1.1 at QoS 1 over plain sockets, a window of
// messages in flight each.
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
