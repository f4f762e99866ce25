// paho's MQTTAsync client, as far as a subscriber needs it: MQTT 5 or 3.1.1, a persistent session,
// no reconnect of its own. Everything that comes from paho arrives at PahoEvents, on paho's threads
// and under its global lock: handlers must not call the client, nor take long, since keep-alive
// stands still meanwhile.
//
// paho acknowledges a message whatever happens to it, so it must reach the broker through an
// AckGate, which takes the messages before they come to paho.
#pragma once

#include <memory>
#include <string>

#include "edgecase/status.h"
#include "mqtt/packet_codec.h"
#include "mqtt/topic_rule.h"

namespace edgecase::mqtt {

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

}  // namespace edgecase::mqtt
