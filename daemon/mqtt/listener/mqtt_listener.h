// Takes MQTT connections of devices and of brokers' bridges (mqtt.listen): what they publish is
// stored, and acknowledged once it is durable. Nothing is routed.
//
// Two threads: "mqtt-poll" accepts, receives, decodes and answers; "mqtt-commit"
// (mqtt/message_group.h) stores. A connection that is idle or slow costs no more than its
// memory: half a packet has a deadline, an answer that is not read has one, and both are bounded in
// bytes. While the drive refuses, acknowledgements wait, and once the group that fills is full
// nothing is read either.
//
// Use: start(); stop() or the destructor. status() and port() are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "auth/token_store.h"
#include "config/settings.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "edgecase/random.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/message_group.h"
#include "mqtt/topic_names.h"
#include "mqtt/topic_rule.h"
#include "net/channel.h"
#include "observe/logger.h"
#include "observe/metrics.h"

namespace edgecase::mqtt {

struct ListenerOptions {
  std::string host;
  std::uint16_t port = 0;  // 0: the system chooses
  std::uint32_t connections = 256;
  std::uint32_t connections_per_address = 65'536;
  std::uint64_t in_flight_limit_bytes = 4u << 20;  // packets that are not whole yet
  bool grant_subscriptions = false;                // mqtt.subscriptions = "grant"

  std::int64_t connect_ns = 10'000'000'000;       // from a connection to its CONNECT
  std::int64_t packet_grace_ns = 10'000'000'000;  // for a packet, and for any more of it, and
  std::uint64_t packet_bytes_per_second_min = 1u << 10;  // a second more for so many bytes
  std::int64_t write_grace_ns = 10'000'000'000;          // without a reader's progress
  std::int64_t close_ns = 2'000'000'000;                 // for the client to read the last answer
  std::int64_t sweep_ns = 1'000'000'000;                 // how often deadlines are looked at
};

struct ListenerStatus {
  std::string address;            // "127.0.0.1:1884"
  std::uint64_t connections = 0;  // open now
  std::uint64_t connects = 0;     // CONNECTs that were taken
  std::uint64_t refused = 0;      // that were not, and connections over the limit
  std::uint64_t failed = 0;       // ended by what broke the protocol, a limit or a deadline
  std::uint64_t taken_over = 0;   // ended, since their client connected again
  std::uint64_t sessions = 0;     // kept, with a connection or without
  std::uint64_t wills = 0;        // of clients that were lost, stored by the rules
  std::int64_t lag_ns = 0;        // how long the group at hand has waited for the drive
  SinkCounters counters;
};

class DeviceNames;

// Borrowed for the listener's life.
struct ListenerParts {
  Engine& engine;
  Random& random;                       // one that nobody can predict
  const std::vector<TopicRule>& rules;  // until set_rules(); copied
  const config::LimitSettings& limits;
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  observe::Logger* logger = nullptr;  // may be null
  net::ChannelMaker channels = {};
  auth::Authenticator* authenticator = nullptr;  // null: whoever connects may publish anything
  DeviceNames* names = nullptr;                  // null: names are as topics say
};

class MqttListener {
 public:
  // Listens, with the sessions of an earlier run. Errors name the address: AlreadyExists,
  // NotAllowed, InvalidArgument, IoError; and the engine's.
  static Result<std::unique_ptr<MqttListener>> start(const ListenerOptions& options,
                                                     const ListenerParts& parts);
  ~MqttListener();
  MqttListener(const MqttListener&) = delete;
  MqttListener& operator=(const MqttListener&) = delete;

  // What is durable by then is still acknowledged. Idempotent.
  void stop();

  // For messages that come from now on.
  void set_rules(std::vector<TopicRule> rules);
  std::uint16_t port() const;
  ListenerStatus status() const;

 private:
  class Poller;
  explicit MqttListener(std::unique_ptr<Poller> poller);
  std::unique_ptr<Poller> poller_;
};

// The "listener" part of the "mqtt" part of /api/v1/status, one JSON object.
std::string status_json(const ListenerStatus& status);

// edgecase_mqtt_listener_*; `listener` must live until the registry's callbacks are cleared.
void register_metrics(const MqttListener& listener, observe::Metrics& metrics);

}  // namespace edgecase::mqtt
