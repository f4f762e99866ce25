// The daemon's subscription to a broker: messages in, readings to the pipeline.
//
// - MQTT 5, or 3.1.1 where the broker knows no other, QoS 1, a persistent session under
//   mqtt.client-id: what arrives while the daemon is down waits at the broker, within the broker's
//   own limits.
// - Messages are stored in groups (MessageSink), and acknowledged when their readings are durable:
//   acknowledgements wait in a gate (ack_gate.h). Before the first connection it is tested that
//   they do; without that no connection is made.
// - A watchdog cuts the connection when an acknowledgement has been held for kAckPatienceNs though
//   the drive does not refuse; the broker then sends again what was not acknowledged.
// - A thread of its own ("mqtt-watch", monotonic clock) connects, subscribes and, after a loss,
//   reconnects with full-jitter back-off, 0.5 to 60 s; after minutes when another client seems to
//   use the same id (broker.h). It subscribes once when the daemon starts and whenever the broker
//   has forgotten the session; not at other reconnects, so that retained messages do not come
//   again.
//
// Use: create() checks everything that can be checked without the network; start(); stop() or the
// destructor. status() is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/ack_gate.h"
#include "mqtt/broker.h"
#include "mqtt/message_committer.h"
#include "mqtt/repeat_filter.h"
#include "observe/logger.h"
#include "observe/metrics.h"

namespace edgecase::mqtt {

// Borrowed for the sink's life; `logger` may be null. `source` says in the audit log where messages
// come from: broker and client, with the rule's number behind it. `wake` is called from a thread of
// the sink's own when durable() or full() may have changed.
struct SinkParts {
  const std::vector<TopicRule>& rules;
  const config::LimitSettings& limits;
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  observe::Logger* logger = nullptr;
  std::string source = "mqtt";
  std::function<void()> wake = [] {};
  DeviceNames* names = nullptr;  // null: names are as topics say
};

// Takes messages of the broker and stores them in groups, many with one sync
// (MessageCommitter). Which of them may be acknowledged is what appended() and durable() tell: a
// message is durable once its readings are, or once it was kept as rejected; one with nothing to
// store counts with its group. While the drive refuses, nothing becomes durable, and what waits is
// tried again until it is stored.
//
// Everything is thread-safe.
class MessageSink final : public MessageLedger {
 public:
  explicit MessageSink(SinkParts parts);
  ~MessageSink() override;

  // Refuses them once the sink was stopped.
  void take(std::span<const IncomingMessage> messages) override EC_EXCLUDES(take_mutex_);
  void new_session() override EC_EXCLUDES(take_mutex_);
  // Every filter that the session may have: where some overlap, copies are recognised.
  void set_filters(const std::vector<std::string>& filters) EC_EXCLUDES(take_mutex_);
  bool has_overlaps() EC_EXCLUDES(take_mutex_);
  void new_connection() EC_EXCLUDES(take_mutex_);
  // Stores what waits if the drive takes it at once; from now on nothing is taken. Idempotent.
  void stop() EC_EXCLUDES(take_mutex_);

  std::uint64_t appended() const override { return appended_.load(std::memory_order_acquire); }
  std::uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  bool full() const override { return full_.load(std::memory_order_relaxed); }

  SinkCounters counters() const;

 private:
  void add(const IncomingMessage& message, MessageGroup& group) EC_REQUIRES(take_mutex_);
  void on_committer();

  const SinkParts parts_;
  std::vector<std::string> actors_;  // by number of a rule; 0: none

  Mutex take_mutex_;  // held while messages are added
  RepeatFilter repeats_ EC_GUARDED_BY(take_mutex_);
  CopyFilter copies_ EC_GUARDED_BY(take_mutex_);
  bool stopped_ EC_GUARDED_BY(take_mutex_) = false;
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> durable_{0};
  std::atomic<bool> full_{false};
  std::atomic<std::uint64_t> lost_at_qos0_{0};
  MessageCommitter committer_;  // last: its thread uses the others
};

// A subscription that the broker has refused, or granted at less than was asked.
struct PoorSubscription {
  std::string filter;
  int asked_qos = 1;
  std::optional<int> granted_qos;  // none: refused
  std::string reason;              // of a refusal
  std::int64_t since_ns = 0;       // wall clock
};

struct MqttStatus {
  std::string broker;  // "mqtt://127.0.0.1:1883"
  bool connected = false;
  std::int64_t since_ns = 0;  // wall clock: connected, or disconnected, since
  std::string protocol;       // of the last connection: "5" or "3.1.1"; "" before there was one
  std::string last_error;     // of the connection; kept after a reconnect
  std::int64_t last_error_ns = 0;
  std::int64_t last_message_ns = 0;  // wall clock; 0: none yet
  std::uint64_t connects = 0;
  std::size_t subscriptions = 0;  // that are asked for
  std::vector<PoorSubscription> poor_subscriptions;
  BrokerTerms terms;                 // of the last connection
  std::uint64_t sessions_lost = 0;   // the broker forgot us: a possible gap
  std::uint64_t overdue = 0;         // connections that the watchdog cut
  std::uint64_t unacknowledged = 0;  // stored or being stored, with their acknowledgement held back
  // The gate (ack_gate.h): whether a connection goes through it; acknowledgements that have left.
  bool gate_connected = false;
  std::uint64_t released = 0;
  std::int64_t lag_ns = 0;  // how long the messages at hand have waited for the drive
  SinkCounters counters;
};

inline constexpr std::int64_t kAckPatienceNs = 30'000'000'000;
// Without an answer or a message for so long, paho's client is taken for stuck, and made anew: its
// own time limits are shorter. For questions of ours it grows: broker.h.
inline constexpr std::int64_t kAnswerPatienceNs = 15'000'000'000;

// How often a subscription is asked for again that is not what was asked.
inline constexpr std::int64_t kAskAgainNs = 60'000'000'000;

// Borrowed for the source's life.
struct MqttSourceParts {
  Engine& engine;
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  Random& random;                     // used by the source's thread only
  observe::Logger* logger = nullptr;  // may be null
  DeviceNames* names = nullptr;       // null: names are as topics say
  std::int64_t ack_patience_ns = kAckPatienceNs;
  std::int64_t answer_patience_ns = kAnswerPatienceNs;  // for what a connection asks
  std::int64_t ask_again_ns = kAskAgainNs;
};

class MqttSource {
 public:
  // Null when mqtt.broker is "". InvalidArgument names the setting and, of a rule, its line;
  // Unsupported: paho is too old; else the engine's errors.
  static Result<std::unique_ptr<MqttSource>> create(const config::MqttSettings& settings,
                                                    const config::LimitSettings& limits,
                                                    const MqttSourceParts& parts);
  ~MqttSource();
  MqttSource(const MqttSource&) = delete;
  MqttSource& operator=(const MqttSource&) = delete;

  // Returns at once; the broker need not be there.
  void start();
  // A message that is being stored is finished or withheld. Idempotent.
  void stop();

  MqttStatus status() const;

 private:
  class Connection;
  explicit MqttSource(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

// What create() checks, without an engine: for `edgecase config check`.
Status check_mqtt_settings(const config::MqttSettings& settings);

// {"broker","connected","since"?,"last_error"?,…}: the "mqtt" part of /api/v1/status.
std::string status_json(const MqttStatus& status);

// edgecase_mqtt_*; `source` must live until the registry's callbacks are cleared.
void register_metrics(const MqttSource& source, observe::Metrics& metrics);

}  // namespace edgecase::mqtt
