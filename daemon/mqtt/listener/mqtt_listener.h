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

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "auth/token_store.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/listener/conversation.h"
#include "mqtt/listener/session_table.h"
#include "mqtt/message_committer.h"
#include "mqtt/topic_names.h"
#include "mqtt/topic_rule.h"
#include "net/budgets.h"
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

// The listener's sockets. All but status(), wake() and stop() belong
// to the poller's thread.

class MqttListener::Poller {
 public:
  Poller(const ListenerOptions& options, const ListenerParts& parts,
         std::unique_ptr<SessionRecords> records, std::vector<net::Socket> listeners);
  ~Poller();

  Status start();
  void stop();
  void set_rules(std::vector<TopicRule> rules) EC_EXCLUDES(fresh_mutex_);
  std::uint16_t port() const { return port_; }
  ListenerStatus status() const EC_EXCLUDES(mutex_);

 private:
  struct Connection {
    Connection(std::uint64_t number, std::unique_ptr<net::Channel> accepted, auth::Principal peer,
               const ConversationParts& parts, Conversation::Standing standing,
               net::AddressLimit& addresses)
        : id(number),
          channel(std::move(accepted)),
          channel_share(parts.budget),
          address(peer.name),
          address_share(addresses, peer.name),
          conversation(parts, number, standing, std::move(peer)) {}

    const std::uint64_t id;
    const std::unique_ptr<net::Channel> channel;
    net::BudgetShare channel_share;
    const std::string address;
    const net::AddressShare address_share;
    Conversation conversation;
    std::uint32_t events = 0;  // what epoll watches
    std::int64_t opened_ns = 0;
    std::int64_t heard_ns = 0;       // received something
    std::int64_t written_ns = 0;     // an answer made progress, or was put into an empty output
    bool backlog = false;            // an answer waits for its reader
    std::int64_t closing_ns = 0;     // 0: open. Its last answer is out, or on its way
    std::int64_t paused_ns = 0;      // since when it is not read, since the group is full; 0: it is
    std::int64_t owes_until_ns = 0;  // not read before: a device of its messages is over its rate
    bool is_counted = false;         // its CONNECT was taken
    bool touched = false;            // has answers to be sent at the end of this turn
  };

  Status load_sessions();
  void run();
  void forget_ended();
  void publish_wills();
  int timeout_ms() const;
  void watch_listeners(std::uint32_t events);
  void accept_some(const net::Socket& listener);
  void admit(net::Socket accepted);
  bool close_oldest_stranger(const std::string& network = {});
  void on_ready(Connection& connection, std::uint32_t events);
  void receive(Connection& connection);
  void after_receive(Connection& connection);
  void drain(Connection& connection);
  void collect();
  void complete(const GroupMessage& message);
  void touch(Connection& connection);
  void send_touched();
  void flush(Connection& connection);
  void begin_closing(Connection& connection);
  void resume_paused();
  void resume(Connection& connection);
  void hold_back(std::uint64_t id, std::int64_t owed_ns);
  void resume_paid();
  void watch(Connection& connection);
  void sweep();
  bool is_overdue(Connection& connection, std::string& why, ReasonCode& reason) const;
  void end(Connection& connection, ReasonCode reason, std::string_view why);
  void note_end(const Connection& connection);
  void close(std::uint64_t id);
  Connection* find(std::uint64_t id);
  void wake();
  void take_rules() EC_EXCLUDES(fresh_mutex_);

  const ListenerOptions options_;
  const ListenerParts parts_;
  SessionTable sessions_;
  const std::unique_ptr<SessionRecords> records_;
  net::ByteBudget budget_;
  net::AddressLimit addresses_;
  std::vector<TopicRule> rules_;  // of the thread
  const ConversationParts conversation_parts_;
  const std::vector<net::Socket> listeners_;
  const std::uint16_t port_;
  net::Socket poll_;
  net::Socket wake_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  Mutex fresh_mutex_;
  std::optional<std::vector<TopicRule>> fresh_rules_ EC_GUARDED_BY(fresh_mutex_);  // for the thread
  std::vector<std::uint64_t> touched_;
  std::vector<std::uint64_t> paused_;
  std::vector<std::uint64_t> owing_;  // connections that are not read for that
  std::vector<char> buffer_;
  std::uint64_t next_id_;
  std::int64_t now_ns_ = 0;
  std::int64_t next_sweep_ns_ = 0;
  std::int64_t next_paid_ns_ = 0;     // of owing_, the first; 0: none
  std::int64_t accept_again_ns_ = 0;  // 0: accepting

  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ListenerStatus status_ EC_GUARDED_BY(mutex_);
  std::unique_ptr<MessageCommitter> committer_;
  std::thread thread_;
};

}  // namespace edgecase::mqtt
