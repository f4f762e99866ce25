#include "mqtt/connection.h"

#include <MQTTAsync.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>

#include "mqtt/ack_gate.h"
#include "mqtt/broker.h"

namespace edgecase::mqtt {
namespace {

constexpr std::array kLeastVersion = {1, 3, 10};

std::string url_of(const std::string& address) {
  return "tcp://" + address;
}

// Why a broker refuses is told by the gate, which sees what it says.
template <typename Failure>
std::string failure_text(const Failure* data) {
  if (data == nullptr) return "no reason given";
  if (data->message != nullptr) return data->message;
  return "the MQTT client gives no reason but " + std::to_string(data->code);
}

// With the broker's own words, where it has any.
std::string refusal_text(int code, MQTTProperties& properties) {
  std::string text = "the broker refuses it, reason " + std::to_string(code);
  const std::string_view name = reason_name(static_cast<std::uint8_t>(code));
  if (!name.empty()) text += " (" + std::string(name) + ")";
  const MQTTProperty* const said =
      MQTTProperties_getProperty(&properties, MQTTPROPERTY_CODE_REASON_STRING);
  if (said != nullptr && said->value.data.len > 0) {
    const auto size = static_cast<std::size_t>(said->value.data.len);
    text += ": " + std::string(said->value.data.data, std::min(size, kBrokerTextMaxBytes));
  }
  return text;
}

Status failed(const char* what, int code) {
  const char* text = MQTTAsync_strerror(code);
  return unavailable(std::string(what) + ": " +
                     (text != nullptr ? std::string(text) : "code " + std::to_string(code)));
}

// A session that never expires, and how much may be on its way.
void add_session_properties(MQTTProperties& properties) {
  MQTTProperty expiry;
  expiry.identifier = MQTTPROPERTY_CODE_SESSION_EXPIRY_INTERVAL;
  expiry.value.integer4 = 0xFFFF'FFFF;
  MQTTProperties_add(&properties, &expiry);
  MQTTProperty maximum;
  maximum.identifier = MQTTPROPERTY_CODE_RECEIVE_MAXIMUM;
  maximum.value.integer2 = PahoClient::kReceiveMaximum;
  MQTTProperties_add(&properties, &maximum);
}

}  // namespace

// What paho calls; `context` is the client.
struct PahoClient::Callbacks {
  static PahoEvents& events_of(void* context) { return static_cast<PahoClient*>(context)->events_; }

  // Wanted by paho, and never called: messages end in the gate, which lets no acknowledgement of
  // paho's pass.
  static int message_arrived(void*, char* topic, int, MQTTAsync_message* message) {
    MQTTAsync_freeMessage(&message);
    MQTTAsync_free(topic);
    return 1;
  }
  static void connection_lost(void* context, char* cause) {
    events_of(context).on_connection_lost(cause != nullptr ? cause : "connection lost");
  }
  static void connected(void* context, MQTTAsync_successData* data) {
    events_of(context).on_connected(data != nullptr && data->alt.connect.sessionPresent != 0);
  }
  static void connected5(void* context, MQTTAsync_successData5* data) {
    events_of(context).on_connected(data != nullptr && data->alt.connect.sessionPresent != 0);
  }
  template <typename Failure>
  static void connect_failed(void* context, Failure* data) {
    events_of(context).on_connect_failed(failure_text(data));
  }
  static void subscribed(void* context, MQTTAsync_successData* data) {
    events_of(context).on_subscribed(data != nullptr ? data->alt.qos : 0);
  }
  // UNSUBACK has its reason here, too.
  static void subscribed5(void* context, MQTTAsync_successData5* data) {
    if (data != nullptr && data->reasonCode >= MQTTREASONCODE_UNSPECIFIED_ERROR) {
      return events_of(context).on_subscribe_failed(
          refusal_text(data->reasonCode, data->properties));
    }
    events_of(context).on_subscribed(data != nullptr ? data->reasonCode : 0);
  }
  static void subscribe_failed5(void* context, MQTTAsync_failureData5* data) {
    const bool refused = data != nullptr && data->reasonCode >= MQTTREASONCODE_UNSPECIFIED_ERROR;
    events_of(context).on_subscribe_failed(
        refused ? refusal_text(data->reasonCode, data->properties) : failure_text(data));
  }
  static MQTTAsync_responseOptions response_options(PahoClient& client) {
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    if (client.version_ == ProtocolVersion::V5) {
      options.onSuccess5 = &subscribed5;
      options.onFailure5 = &subscribe_failed5;
    } else {
      options.onSuccess = &subscribed;
      options.onFailure = &subscribe_failed;
    }
    options.context = &client;
    return options;
  }
  static void subscribe_failed(void* context, MQTTAsync_failureData* data) {
    events_of(context).on_subscribe_failed(data != nullptr && data->code == 0x80
                                               ? "the broker refuses the subscription"
                                               : failure_text(data));
  }
};

Status PahoClient::check_version() {
  const MQTTAsync_nameValue* info = MQTTAsync_getVersionInfo();
  for (; info != nullptr && info->name != nullptr; ++info) {
    if (std::strcmp(info->name, "Version") == 0) return check_version(info->value);
  }
  return unsupported("paho-mqtt-c does not tell its version: 1.3.10 is needed");
}

Status PahoClient::check_version(std::string_view text) {
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (const int least : kLeastVersion) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < least) {
      return unsupported("paho-mqtt-c " + std::string(text) + " is too old: 1.3.10 is needed");
    }
    if (number > least) return ok();
    at = next < end ? next + 1 : next;
  }
  return ok();
}

Result<std::unique_ptr<PahoClient>> PahoClient::create(const std::string& address,
                                                       const std::string& client_id,
                                                       ProtocolVersion version,
                                                       PahoEvents& events) {
  std::unique_ptr<PahoClient> client(new PahoClient(version, events));
  MQTTAsync_createOptions options = MQTTAsync_createOptions_initializer;
  options.MQTTVersion = version == ProtocolVersion::V5 ? MQTTVERSION_5 : MQTTVERSION_3_1_1;
  MQTTAsync handle = nullptr;
  // No persistence: paho's never syncs, and we publish nothing.
  const int code = MQTTAsync_createWithOptions(&handle, url_of(address).c_str(), client_id.c_str(),
                                               MQTTCLIENT_PERSISTENCE_NONE, nullptr, &options);
  if (code != MQTTASYNC_SUCCESS) return failed("cannot create the MQTT client", code);
  client->handle_ = handle;
  const int set = MQTTAsync_setCallbacks(handle, client.get(), &Callbacks::connection_lost,
                                         &Callbacks::message_arrived, nullptr);
  if (set != MQTTASYNC_SUCCESS) return failed("cannot set the MQTT client up", set);
  return client;
}

PahoClient::~PahoClient() {
  if (handle_ == nullptr) return;
  MQTTAsync handle = handle_;
  MQTTAsync_destroy(&handle);
}

Status PahoClient::connect(const std::string& address, const PahoLogin& login) {
  const bool five = version_ == ProtocolVersion::V5;
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  const MQTTAsync_connectOptions of_five = MQTTAsync_connectOptions_initializer5;
  MQTTProperties properties = MQTTProperties_initializer;
  if (five) {
    options = of_five;
    options.cleanstart = 0;
    add_session_properties(properties);
    options.connectProperties = &properties;
    options.onSuccess5 = &Callbacks::connected5;
    options.onFailure5 = &Callbacks::connect_failed<MQTTAsync_failureData5>;
  } else {
    options.cleansession = 0;
    options.MQTTVersion = MQTTVERSION_3_1_1;
    options.onSuccess = &Callbacks::connected;
    options.onFailure = &Callbacks::connect_failed<MQTTAsync_failureData>;
  }
  options.keepAliveInterval = kKeepAliveSeconds;
  options.connectTimeout = kConnectTimeoutSeconds;
  options.automaticReconnect = 0;
  options.context = this;
  if (!login.username.empty()) {
    options.username = login.username.c_str();
    options.password = login.password.c_str();
  }
  std::string url = url_of(address);
  char* urls[] = {url.data()};
  options.serverURIs = urls;
  options.serverURIcount = 1;
  const int code = MQTTAsync_connect(handle_, &options);
  MQTTProperties_free(&properties);
  if (code != MQTTASYNC_SUCCESS) return failed("cannot connect", code);
  return ok();
}

Status PahoClient::subscribe(const Subscription& subscription) {
  MQTTAsync_responseOptions options = Callbacks::response_options(*this);
  if (subscription.id != 0 && version_ == ProtocolVersion::V5) {
    MQTTProperty id;
    id.identifier = MQTTPROPERTY_CODE_SUBSCRIPTION_IDENTIFIER;
    id.value.integer4 = subscription.id;
    MQTTProperties_add(&options.properties, &id);
  }
  const int code =
      MQTTAsync_subscribe(handle_, subscription.filter.c_str(), subscription.qos, &options);
  MQTTProperties_free(&options.properties);
  if (code != MQTTASYNC_SUCCESS) return failed("cannot subscribe", code);
  return ok();
}

Status PahoClient::unsubscribe(const std::string& filter) {
  MQTTAsync_responseOptions options = Callbacks::response_options(*this);
  const int code = MQTTAsync_unsubscribe(handle_, filter.c_str(), &options);
  if (code != MQTTASYNC_SUCCESS) return failed("cannot unsubscribe", code);
  return ok();
}

namespace {

constexpr std::int64_t kPatienceNs = 5'000'000'000;  // for each step
constexpr int kLookMs = 2;
constexpr std::uint16_t kPacketId = 1;

constexpr std::uint32_t kPacketMaxBytes = 1u << 10;

// Counts the message, and has it durable when it is told to be.
class TestLedger final : public MessageLedger, public PahoEvents {
 public:
  void take(std::span<const IncomingMessage> messages) override { appended_ += messages.size(); }
  void new_session() override {}
  std::uint64_t appended() const override { return appended_; }
  std::uint64_t durable() const override { return durable_; }
  bool full() const override { return false; }
  void make_durable() { durable_ = appended_.load(); }

 private:
  void on_connected(bool) override {}
  void on_connect_failed(const std::string&) override {}
  void on_connection_lost(const std::string&) override {}
  void on_subscribed(int) override {}
  void on_subscribe_failed(const std::string&) override {}

  std::atomic<std::uint64_t> appended_{0}, durable_{0};
};

std::string publish_packet(ProtocolVersion version) {
  std::string body("\0\1t", 3);
  body += static_cast<char>(kPacketId >> 8);
  body += static_cast<char>(kPacketId & 0xff);
  if (version == ProtocolVersion::V5) body += '\0';  // no properties
  body += '1';
  constexpr char kPublishAtQos1 = 0x32;
  return std::string{kPublishAtQos1, static_cast<char>(body.size())} + body;
}

// The broker's end of the connection.
class TestBroker {
 public:
  explicit TestBroker(Clock& clock) : clock_(clock) {}

  Result<ResolvedAddress> listen() {
    const std::string host = net::loopback_host();
    EC_ASSIGN_OR_RETURN(listener_, net::listen_on_tcp(host, 0));
    EC_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> found,
                        resolve_broker({host, net::tcp_port_of(listener_)}));
    return found.front();
  }
  Status accept() {
    EC_TRY(wait_for(listener_));
    connection_ = net::Socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    return connection_ ? ok() : no_answer();
  }
  Status send(const std::string& packet) const {
    const ssize_t sent =
        ::send(connection_.descriptor(), packet.data(), packet.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(packet.size()) ? ok() : no_answer();
  }
  // The next packet is of this type.
  Status expect(PacketType type) {
    FixedHeader header;
    while (read_fixed_header(received_, header) != HeaderProgress::Complete ||
           received_.size() < header.header_bytes + header.remaining_bytes) {
      EC_TRY(wait_for(connection_));
      if (!receive()) return no_answer();
    }
    if (header.type != type)
      return unsupported("the MQTT client sent another packet than expected");
    received_.erase(0, header.header_bytes + header.remaining_bytes);
    return ok();
  }
  // Whether anything has come.
  bool has_received() {
    pollfd ready{connection_.descriptor(), POLLIN, 0};
    if (::poll(&ready, 1, kLookMs) > 0) receive();
    return !received_.empty();
  }

  static Status no_answer() { return unavailable("the self-test of the gate got no answer"); }

 private:
  Status wait_for(const net::Socket& socket) const {
    const std::int64_t until_ns = clock_.boot_ns() + kPatienceNs;
    do {
      pollfd ready{socket.descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, kLookMs) > 0) return ok();
    } while (clock_.boot_ns() < until_ns);
    return no_answer();
  }
  bool receive() {
    char bytes[512];
    const ssize_t got = ::recv(connection_.descriptor(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) received_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }

  Clock& clock_;
  net::Socket listener_;
  net::Socket connection_;
  std::string received_;
};

Status wait_until_held(const AckGate& gate, TestBroker& broker, Clock& clock) {
  const std::int64_t until_ns = clock.boot_ns() + kPatienceNs;
  // What is held is told after everything else that came with it was passed on.
  while (gate.status().held == 0) {
    if (broker.has_received()) break;
    if (clock.boot_ns() > until_ns) return TestBroker::no_answer();
  }
  if (!broker.has_received()) return ok();
  return unsupported(
      "an acknowledgement left before its message was durable; this MQTT library cannot be used");
}

}  // namespace

Status test_ack_gate(Clock& clock, ProtocolVersion version) {
  TestLedger ledger;
  TestBroker broker(clock);
  EC_ASSIGN_OR_RETURN(const ResolvedAddress address, broker.listen());
  EC_ASSIGN_OR_RETURN(const auto gate, AckGate::open({.tls = nullptr,
                                                      .host = "127.0.0.1",
                                                      .clock = clock,
                                                      .ledger = ledger,
                                                      .packet_max_bytes = kPacketMaxBytes}));
  gate->aim(address, version);
  EC_ASSIGN_OR_RETURN(const auto client, PahoClient::create(gate->address().text,
                                                            "edgecase-self-test", version, ledger));
  EC_TRY(client->connect(gate->address().text, {}));
  EC_TRY(broker.accept());
  EC_TRY(broker.expect(PacketType::Connect));
  std::string answer;
  append_connack(version, {}, answer);
  EC_TRY(broker.send(answer));
  EC_TRY(broker.send(publish_packet(version)));
  EC_TRY(wait_until_held(*gate, broker, clock));
  ledger.make_durable();
  gate->wake();
  return broker.expect(PacketType::Puback);
}

}  // namespace edgecase::mqtt
