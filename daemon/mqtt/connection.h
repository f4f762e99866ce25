// The connection to the broker: paho's client (PahoClient), the filters that the session holds
// (SubscribedFilters), and the state machine behind MqttSource (Connection).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "mqtt/ack_gate.h"
#include "mqtt/broker.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/packet_codec.h"
#include "mqtt/topic_rule.h"
#include "net/channel.h"

namespace edgecase::mqtt {

// paho's MQTTAsync client, as far as a subscriber needs it: MQTT 5 or 3.1.1, a persistent session,
// no reconnect of its own. Everything that comes from paho arrives at PahoEvents, on paho's threads
// and under its global lock: handlers must not call the client, nor take long, since keep-alive
// stands still meanwhile.
//
// paho acknowledges a message whatever happens to it, so it must reach the broker through an
// AckGate, which takes the messages before they come to paho.
class PahoEvents {
 public:
  virtual ~PahoEvents() = default;
  virtual void on_connected(bool session_present) = 0;
  virtual void on_connect_failed(const std::string& why) = 0;
  virtual void on_connection_lost(const std::string& why) = 0;
  // At that QoS; of unsubscribe() it means nothing.
  virtual void on_subscribed(int granted_qos) = 0;
  virtual void on_subscribe_failed(const std::string& why) = 0;
};

struct PahoLogin {
  std::string username;
  std::string password;
};

class PahoClient {
 public:
  static constexpr int kKeepAliveSeconds = 30;
  static constexpr int kConnectTimeoutSeconds = 10;
  // How many messages a broker of MQTT 5 may have on their way to us; one of 3.1.1 decides itself.
  static constexpr int kReceiveMaximum = 1'024;

  // Unsupported: paho is older than 1.3.10, whose callbacks cannot be relied on.
  static Status check_version();
  // The same of a version in words, "1.3.12".
  static Status check_version(std::string_view text);

  // `address` is "127.0.0.1:1883"; `events` is borrowed for the client's life.
  static Result<std::unique_ptr<PahoClient>> create(const std::string& address,
                                                    const std::string& client_id,
                                                    ProtocolVersion version, PahoEvents& events);
  // The broker keeps the session. May take a second.
  ~PahoClient();
  PahoClient(const PahoClient&) = delete;
  PahoClient& operator=(const PahoClient&) = delete;

  // Ok: on_connected() or on_connect_failed() follows.
  Status connect(const std::string& address, const PahoLogin& login);
  // Ok: on_subscribed() or on_subscribe_failed() follows. One at a time, unsubscribe() included.
  Status subscribe(const Subscription& subscription);
  // The same, to be rid of a filter.
  Status unsubscribe(const std::string& filter);

 private:
  PahoClient(ProtocolVersion version, PahoEvents& events) : version_(version), events_(events) {}
  struct Callbacks;

  const ProtocolVersion version_;
  PahoEvents& events_;
  void* handle_ = nullptr;  // MQTTAsync
};

// The filters that the broker's session holds, remembered over restarts: a session keeps a filter
// until it is unsubscribed, also when its rule is long gone from the configuration. Records in the
// namespace `_mqtt` (topic_names.h):
//
//   key      'F'  client id  0  broker, "host:port"  0  filter      no part can hold a 0
//   value    one byte, the record's version: 1
//
// One thread at a time.
class SubscribedFilters {
 public:
  // Reads what is remembered of this session. Errors: the engine's.
  static Result<std::unique_ptr<SubscribedFilters>> open(Engine& engine, std::string_view client_id,
                                                         std::string_view broker);

  const std::set<std::string>& filters() const { return filters_; }
  // Durable on return. Before the broker is asked to subscribe, and after it has unsubscribed: so
  // none is ever forgotten. Errors: the engine's.
  Status add(const std::string& filter);
  Status remove(const std::string& filter);

 private:
  SubscribedFilters(Engine& engine, NamespaceId namespace_id, std::string prefix)
      : engine_(engine), namespace_id_(namespace_id), prefix_(std::move(prefix)) {}
  Status load();

  Engine& engine_;
  const NamespaceId namespace_id_;
  const std::string prefix_;  // of every key of this session
  std::set<std::string> filters_;
};

// Everything create() has checked and compiled.
struct ConnectionPlan {
  config::MqttSettings settings;
  config::LimitSettings limits;
  BrokerAddress address;
  std::vector<TopicRule> rules;
  std::vector<Subscription> subscriptions;
  std::shared_ptr<const tls::TlsClient> tls;  // null: in clear
};

// The file's first line; "" for no file. InvalidArgument names the setting.
Result<std::string> read_password(const std::string& path);

// The state machine: connects, subscribes, watches, reconnects.
class MqttSource::Connection final : public PahoEvents {
 public:
  Connection(ConnectionPlan plan, const MqttSourceParts& parts,
             std::unique_ptr<SubscribedFilters> filters);
  ~Connection() override;

  // Before start().
  Status open_gate();

  void start();
  void stop();
  MqttStatus status() const;

 private:
  enum class Answer : unsigned char { Pending, Yes, No };
  // What came of a question; Gone: there is no connection any more, or the daemon stops.
  enum class Reply : unsigned char { Yes, No, Gone };

  void on_connected(bool session_present) override;
  void on_connect_failed(const std::string& why) override;
  void on_connection_lost(const std::string& why) override;
  void on_subscribed(int granted_qos) override;
  void on_subscribe_failed(const std::string& why) override;

  // For the watching thread.
  void watch();
  bool connect_once();
  bool connect_to(const ResolvedAddress& broker, const PahoLogin& login);
  std::optional<std::int64_t> certificate_time_ns();
  bool subscribe_all();
  bool subscribe_to_rules();
  Reply subscribe_to(const Subscription& each);
  std::string forbidden_by_terms(const Subscription& each) const;
  void note_subscription(const Subscription& each, std::optional<int> granted_qos,
                         const std::string& why);
  bool ask_again();
  void look_for_overlaps();
  void note_terms();
  bool unsubscribe_from_removed_rules();
  Reply reply_to(const Status& asked, const std::string& what);
  void expect_answer();
  Reply wait_for_answer(const char* what, std::int64_t patience_ns);
  bool wait_while_heard(std::int64_t patience_ns) EC_REQUIRES(mutex_);
  bool wait_for_news(std::int64_t patience_ns) EC_REQUIRES(mutex_);
  bool wait_for_loss(std::int64_t patience_ns) EC_REQUIRES(mutex_);
  std::int64_t stay_connected();
  bool is_overdue() const;
  bool is_unnoticed_loss();
  bool is_gate_tested();
  std::int64_t after_loss(std::int64_t held_ns, bool by_us, const std::string& why);
  void choose_version();
  void note_lost_session();
  void pause(std::int64_t duration_ns);
  void note_error(const std::string& message, const char* key = "connection");

  const ConnectionPlan plan_;
  Clock& clock_;
  observe::Logger* const logger_;
  const std::int64_t ack_patience_ns_;
  const std::int64_t ask_again_ns_;
  Engine& engine_;
  ingest::IngestPipeline& pipeline_;
  MessageSink sink_;
  net::Backoff backoff_;
  AnswerPatience answer_patience_;  // of the watching thread
  TakeoverWatch takeovers_;
  std::unique_ptr<SubscribedFilters> filters_;  // of the watching thread
  std::unique_ptr<AckGate> gate_;
  std::unique_ptr<PahoClient> client_;
  ProtocolVersion version_ = ProtocolVersion::V5;  // of the next connection
  bool is_version_known_ = false;                  // the broker has refused MQTT 5
  ResolvedAddress broker_;                         // of the connection at hand
  std::int64_t pause_max_ns_ = net::Backoff::kMaxNs;
  std::set<ProtocolVersion> tested_versions_;
  bool has_overlaps_ = false;     // of the session's filters
  std::int64_t next_ask_ns_ = 0;  // of poor subscriptions; boot clock
  int looks_without_gate_ = 0;    // in a row, at a connection
  bool had_session_;         // an earlier process has subscribed, and nothing was heard of it yet
  bool subscribed_ = false;  // in this process, in the session the broker has

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool lost_ EC_GUARDED_BY(mutex_) = false;  // since the last connect
  bool cut_ EC_GUARDED_BY(mutex_) = false;   // by us: acknowledgements were held for too long
  bool session_present_ EC_GUARDED_BY(mutex_) = false;
  Answer answer_ EC_GUARDED_BY(mutex_) = Answer::Pending;
  std::string answer_text_ EC_GUARDED_BY(mutex_);
  int granted_qos_ EC_GUARDED_BY(mutex_) = 0;
  MqttStatus status_ EC_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace edgecase::mqtt
