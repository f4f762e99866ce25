#include "mqtt/ack_gate.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <vector>

#include "daemon/mqtt/mqtt_fixture.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"
#include "support/test_certificate.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

class Ledger final : public mqtt::MessageLedger {
 public:
  void take(std::span<const mqtt::IncomingMessage> messages) override {
    appended_ += messages.size();
  }
  void new_session() override { ++sessions_; }
  std::uint64_t appended() const override { return appended_; }
  std::uint64_t durable() const override { return durable_; }
  bool full() const override { return full_; }

  std::atomic<std::uint64_t> appended_{0}, durable_{0}, sessions_{0};
  std::atomic<bool> full_{false};
};

constexpr std::uint32_t kPacketMaxBytes = 1u << 20;
const std::string kPublish = bytes_of({0x32, 6, 0, 1, 't', 0, 7, 'x'});  // QoS 1, id 7
const std::string kPuback = bytes_of({0x40, 2, 0, 7});
const std::string kSuback = bytes_of({0x90, 3, 0, 1, 1});
const std::string kPingreq = bytes_of({0xC0, 0});
const std::string kPingresp = bytes_of({0xD0, 0});

// A gate with both ends in this process: plain sockets in place of paho and of the broker.
struct GateFixture {
  GateFixture() : broker_listener(net::listen_on_tcp(net::loopback_host(), 0).value()) {
    auto opened = mqtt::AckGate::open({.tls = nullptr,
                                       .host = "127.0.0.1",
                                       .clock = system_clock(),
                                       .ledger = ledger,
                                       .packet_max_bytes = kPacketMaxBytes});
    REQUIRE(opened.ok());
    gate = std::move(opened).value();
    connect();
  }
  void connect() {
    const auto port = net::tcp_port_of(broker_listener);
    gate->aim(mqtt::resolve_broker({net::loopback_host(), port}).value().front(),
              mqtt::ProtocolVersion::V311);
    inside = net::Socket(socket(gate->address().bytes.ss_family, SOCK_STREAM, 0));
    REQUIRE(::connect(inside.descriptor(),
                      reinterpret_cast<const sockaddr*>(&gate->address().bytes),
                      gate->address().size) == 0);
    int accepted = -1;
    REQUIRE(eventually(
        [&] { return (accepted = accept(broker_listener.descriptor(), nullptr, nullptr)) >= 0; }));
    broker = net::Socket(accepted);
  }
  static void send_to(const net::Socket& socket, const std::string& bytes) {
    REQUIRE(send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // Waits until so much has come.
  static std::string receive(const net::Socket& socket, std::size_t size) {
    std::string all(size, '\0');
    std::size_t got = 0;
    eventually([&] {
      const ssize_t more = recv(socket.descriptor(), all.data() + got, size - got, MSG_DONTWAIT);
      if (more > 0) got += static_cast<std::size_t>(more);
      return got == size || more == 0;
    });
    return all.substr(0, got);
  }
  // Whether the other end is gone, with nothing left to read.
  static bool is_ended(const net::Socket& socket) {
    char byte = 0;
    return eventually([&] {
      const ssize_t got = recv(socket.descriptor(), &byte, 1, MSG_DONTWAIT);
      REQUIRE(got <= 0);
      return got == 0 || errno == ECONNRESET;
    });
  }
  bool holds(std::size_t count) const {
    return eventually([&] { return gate->status().held == count; });
  }

  Ledger ledger;
  net::Socket broker_listener;
  std::unique_ptr<mqtt::AckGate> gate;
  net::Socket inside;
  net::Socket broker;
};

// Whether this machine has a connection on its way to that port, not answered yet.
bool is_connecting_to(std::uint16_t port) {
  constexpr const char* kSynSent = " 02 ";
  char wanted[16];
  std::snprintf(wanted, sizeof wanted, ":%04X", static_cast<unsigned>(port));
  for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream table(path);
    for (std::string line; std::getline(table, line);) {
      // "  0: local:port remote:port state ..."
      if (line.find(std::string(wanted) + kSynSent) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("ack gate: an acknowledgement waits until its message is durable") {
  GateFixture fixture;
  fixture.send_to(fixture.broker, kPublish + kSuback);
  CHECK(fixture.receive(fixture.inside, kSuback.size()) == kSuback);  // and no message
  REQUIRE(fixture.holds(1));
  CHECK(fixture.ledger.appended_ == 1);
  CHECK(fixture.gate->status().taken == 1);
  CHECK(fixture.gate->status().taken_last_ns > 0);
  CHECK(fixture.gate->status().held_since_ns > 0);
  // What is no acknowledgement overtakes it.
  fixture.send_to(fixture.inside, kPingreq);
  CHECK(fixture.receive(fixture.broker, 2) == kPingreq);
  fixture.ledger.durable_ = 1;
  fixture.gate->wake();
  CHECK(fixture.receive(fixture.broker, 4) == kPuback);
  REQUIRE(fixture.holds(0));
  CHECK(fixture.gate->status().released == 1);
  CHECK(fixture.gate->status().dropped == 0);
}

TEST_CASE("ack gate: an acknowledgement of paho's ends the connection") {
  GateFixture fixture;
  fixture.send_to(fixture.broker, kPublish);
  REQUIRE(fixture.holds(1));
  fixture.send_to(fixture.inside, kPuback);
  CHECK(fixture.is_ended(fixture.broker));
  CHECK(fixture.gate->take_failure() == "the MQTT client sent what is no packet of a subscriber");
}

TEST_CASE("ack gate: an exchange of QoS 2 is carried through") {
  GateFixture fixture;
  fixture.send_to(fixture.broker, bytes_of({0x34, 6, 0, 1, 't', 0, 7, 'x'}));
  REQUIRE(fixture.holds(1));
  fixture.ledger.durable_ = 1;
  fixture.gate->wake();
  CHECK(fixture.receive(fixture.broker, 4) == bytes_of({0x50, 2, 0, 7}));
  fixture.send_to(fixture.broker, bytes_of({0x62, 2, 0, 7}));
  CHECK(fixture.receive(fixture.broker, 4) == bytes_of({0x70, 2, 0, 7}));
}

TEST_CASE("ack gate: a message that needs many reads is taken whole") {
  GateFixture fixture;
  std::string message = bytes_of({0x32, 0x85, 0x80, 0x20, 0, 1, 't', 0, 7});
  message.append(512u << 10, 'x');
  std::size_t sent = 0;
  REQUIRE(eventually([&] {
    const ssize_t got = send(fixture.broker.descriptor(), message.data() + sent,
                             message.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got > 0) sent += static_cast<std::size_t>(got);
    return sent == message.size();
  }));
  REQUIRE(fixture.holds(1));
  CHECK(fixture.ledger.appended_ == 1);
}

TEST_CASE("ack gate: who stores hears of a session that the broker has not kept") {
  GateFixture fixture;
  const std::string kept = bytes_of({0x20, 2, 1, 0});
  const std::string fresh = bytes_of({0x20, 2, 0, 0});
  fixture.send_to(fixture.broker, kept + kPublish);
  REQUIRE(fixture.holds(1));
  CHECK(fixture.ledger.sessions_ == 0);
  fixture.send_to(fixture.broker, fresh + kPublish);
  REQUIRE(fixture.holds(2));
  CHECK(fixture.ledger.sessions_ == 1);
}

TEST_CASE("ack gate: what is held is dropped with its connection, and no later one sends it") {
  GateFixture fixture;
  for (const bool by_us : {true, false}) {
    CAPTURE(by_us);
    fixture.send_to(fixture.broker, kPublish);
    REQUIRE(fixture.holds(1));
    if (by_us) {
      fixture.gate->cut();
    } else {
      fixture.inside = net::Socket();
    }
    CHECK(fixture.is_ended(fixture.broker));
    if (by_us) CHECK(fixture.is_ended(fixture.inside));
    CHECK(eventually([&] { return !fixture.gate->status().connected; }));
    fixture.connect();
  }
  CHECK(fixture.gate->status().dropped == 2);
  fixture.ledger.durable_ = 2;
  fixture.gate->wake();
  fixture.send_to(fixture.inside, kPingreq);
  CHECK(fixture.receive(fixture.broker, 2) == kPingreq);
  CHECK(fixture.gate->status().released == 0);
}

TEST_CASE("ack gate: a store that is full is brought no messages, and the connection lives on") {
  GateFixture fixture;
  fixture.ledger.full_ = true;
  fixture.send_to(fixture.broker, kPublish);
  // The broker's answer to this one stands behind the message.
  fixture.send_to(fixture.inside, kPingreq);
  CHECK(fixture.receive(fixture.broker, 2) == kPingreq);
  fixture.send_to(fixture.broker, kPingresp);
  CHECK(fixture.receive(fixture.inside, 2) == kPingresp);
  CHECK(fixture.ledger.appended_ == 0);
  fixture.ledger.full_ = false;
  fixture.gate->wake();
  fixture.send_to(fixture.broker, kSuback);
  // And is not passed on a second time.
  CHECK(fixture.receive(fixture.inside, kSuback.size()) == kSuback);
  CHECK(fixture.ledger.appended_ == 1);
}

TEST_CASE("ack gate: at the end no more is taken, and what is durable is acknowledged") {
  GateFixture fixture;
  fixture.send_to(fixture.broker, kPublish);
  REQUIRE(fixture.holds(1));
  constexpr std::int64_t kLong = 60'000'000'000;
  CHECK(fixture.gate->close_inlet(kLong));
  fixture.send_to(fixture.broker, kPublish + kPublish);
  CHECK(fixture.gate->flush(kLong));  // nothing is durable, so there is nothing to wait for
  CHECK(fixture.gate->status().held == 1);
  fixture.ledger.durable_ = 1;
  CHECK(fixture.gate->flush(kLong));
  CHECK(fixture.gate->status().held == 0);
  CHECK(fixture.receive(fixture.broker, 4) == kPuback);
  CHECK(fixture.ledger.appended_ == 1);  // none was let in
}

TEST_CASE("ack gate: what the broker still sends does not cost it the last acknowledgements") {
  GateFixture fixture;
  fixture.send_to(fixture.broker, kPublish);
  REQUIRE(fixture.holds(1));
  constexpr std::int64_t kLong = 60'000'000'000;
  REQUIRE(fixture.gate->close_inlet(kLong));
  fixture.ledger.durable_ = 1;
  REQUIRE(fixture.gate->flush(kLong));
  auto left = std::async(std::launch::async, [&] { return fixture.gate->leave(kLong); });
  CHECK(fixture.receive(fixture.broker, 6) == kPuback + bytes_of({0xE0, 0}));
  CHECK(fixture.is_ended(fixture.broker));
  // More than its socket takes: it is read.
  const std::string many(4u << 20, 'x');
  fixture.send_to(fixture.broker, many);
  CHECK(fixture.gate->status().connected);
  fixture.broker = net::Socket();
  CHECK(left.get());
  CHECK(fixture.gate->status().released == 1);
  CHECK(fixture.ledger.appended_ == 1);
}

TEST_CASE("ack gate: tells how the broker has ended it") {
  struct Case {
    std::string packet;
    bool answered, refused, taken_over;
    const char* reason;
  };
  for (const Case& c :
       {Case{"", false, false, false, ""},
        Case{bytes_of({0x20, 2, 0, 1}), true, true, false,
             "the broker does not speak this version of MQTT"},
        Case{bytes_of({0x20, 3, 0, 0x84, 0}), true, true, false,
             "the broker does not speak this version of MQTT"},
        Case{bytes_of({0x20, 2, 0, 4}), true, false, false, "wrong mqtt.username or password"},
        Case{bytes_of({0x20, 2, 0, 0}), true, false, false, ""},
        Case{bytes_of({0x20, 3, 0, 0, 0, 0xE0, 2, 0x8E, 0}), true, false, true,
             "the broker gave the session to another client of this id"},
        Case{bytes_of({0x20, 3, 0, 0, 0, 0xE0, 1, 0x8B}), true, false, false,
             "the broker ended the connection, reason 139 (server shutting down)"},
        Case{bytes_of({0x00, 0}), false, false, false, "the broker sent what is no packet"}}) {
    CAPTURE(c.packet);
    GateFixture fixture;
    fixture.send_to(fixture.broker, c.packet);
    shutdown(fixture.broker.descriptor(), SHUT_WR);
    // It may not have been connected yet.
    auto ending = fixture.gate->take_ending();
    CHECK(eventually([&] {
      if (!ending.was_open) ending = fixture.gate->take_ending();
      return ending.was_open;
    }));
    CHECK_FALSE(fixture.gate->status().connected);
    CHECK(ending.answered == c.answered);
    CHECK(ending.version_refused == c.refused);
    CHECK(ending.taken_over == c.taken_over);
    CHECK(fixture.gate->take_failure() == c.reason);
    CHECK(fixture.gate->take_failure().empty());
  }
}

TEST_CASE("ack gate: nobody else comes through") {
  const TempDirectory directory;
  const TestCertificate files = make_test_certificate(directory.path(), "broker");
  const auto client = tls::TlsClient::load(files.certificate, {}).value();
  Ledger ledger;
  const auto gate = mqtt::AckGate::open({.tls = client,
                                         .host = "localhost",
                                         .clock = system_clock(),
                                         .ledger = ledger,
                                         .packet_max_bytes = kPacketMaxBytes})
                        .value();
  net::Socket broker = net::listen_on_tcp(net::loopback_host(), 0).value();
  gate->aim(mqtt::resolve_broker({net::loopback_host(), net::tcp_port_of(broker)}).value().front(),
            mqtt::ProtocolVersion::V5);
  const std::string port = gate->address().text.substr(gate->address().text.rfind(':') + 1);
  // Reads until it is closed; exit code 0 then.
  CHECK(run_process({"bash", "-c",
                     "exec 3<>/dev/tcp/" + net::loopback_host() + "/" + port +
                         "; read -t 60 -u 3; test $? = 1"},
                    "") == 0);
  // One of this process is let through: TLS begins at the other end.
  net::Socket own(socket(gate->address().bytes.ss_family, SOCK_STREAM, 0));
  REQUIRE(connect(own.descriptor(), reinterpret_cast<const sockaddr*>(&gate->address().bytes),
                  gate->address().size) == 0);
  CHECK(send(own.descriptor(), "x", 1, MSG_NOSIGNAL) == 1);
  int accepted = -1;
  CHECK(
      eventually([&] { return (accepted = accept(broker.descriptor(), nullptr, nullptr)) >= 0; }));
  net::Socket end(accepted);
  char byte = 0;
  CHECK(eventually([&] { return recv(end.descriptor(), &byte, 1, 0) == 1; }));
  CHECK(byte == 0x16);  // a handshake, not the x
}

TEST_CASE("ack gate: a cut that comes while the gate connects ends that connection") {
  GateFixture fixture;
  fixture.gate->cut();
  REQUIRE(fixture.is_ended(fixture.inside));
  // A listener whose queue is full: who connects waits for an answer.
  const auto any = mqtt::resolve_broker({net::loopback_host(), 0}).value().front();
  const net::Socket busy(socket(any.bytes.ss_family, SOCK_STREAM, 0));
  REQUIRE(bind(busy.descriptor(), reinterpret_cast<const sockaddr*>(&any.bytes), any.size) == 0);
  REQUIRE(listen(busy.descriptor(), 0) == 0);
  const std::uint16_t port = net::tcp_port_of(busy);
  const auto address = mqtt::resolve_broker({net::loopback_host(), port}).value().front();
  const net::Socket first(socket(any.bytes.ss_family, SOCK_STREAM, 0));
  REQUIRE(::connect(first.descriptor(), reinterpret_cast<const sockaddr*>(&address.bytes),
                    address.size) == 0);

  fixture.gate->aim(address, mqtt::ProtocolVersion::V5);
  fixture.inside = net::Socket(socket(any.bytes.ss_family, SOCK_STREAM, 0));
  REQUIRE(::connect(fixture.inside.descriptor(),
                    reinterpret_cast<const sockaddr*>(&fixture.gate->address().bytes),
                    fixture.gate->address().size) == 0);
  GateFixture::send_to(fixture.inside, kPingreq);
  REQUIRE(eventually([&] { return is_connecting_to(port); }));
  fixture.gate->cut();
  // Now it may connect; what the broker's side sees of it is its end, and not the packet.
  const net::Socket taken_first(accept(busy.descriptor(), nullptr, nullptr));
  const net::Socket taken(accept(busy.descriptor(), nullptr, nullptr));
  REQUIRE(taken.descriptor() >= 0);
  CHECK(fixture.is_ended(taken));
  CHECK(fixture.is_ended(fixture.inside));
  CHECK_FALSE(fixture.gate->status().connected);
}
