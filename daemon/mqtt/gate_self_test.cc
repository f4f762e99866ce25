#include "mqtt/ack_gate.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "mqtt/paho_client.h"

namespace edgecase::mqtt {
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
