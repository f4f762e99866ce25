// The broker: its address and the way to it, what it says beside its acknowledgements, and how long
// to wait for it.
//
// What it says: CONNACK, DISCONNECT, and through which subscriptions a message comes. As much is
// read as can be; texts are cut to kBrokerTextMaxBytes. Pure functions; any thread.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {

// Through which subscriptions a broker sends a message, as far as these have an identifier; no more
// than kMax are told.
struct SubscriptionIds {
  static constexpr std::size_t kMax = 4;
  std::array<std::uint32_t, kMax> ids{};
  std::uint8_t count = 0;

  bool has(std::uint32_t id) const {
    return std::find(ids.begin(), ids.begin() + count, id) != ids.begin() + count;
  }
  void add(std::uint32_t id) {
    if (count < kMax && !has(id)) ids[count++] = id;
  }
};
inline constexpr std::uint32_t kSubscriptionIdMax = 268'435'455;
// The subscription identifiers in PublishPacket::properties.
SubscriptionIds read_subscription_ids(std::string_view properties);

inline constexpr std::size_t kBrokerTextMaxBytes = 256;

// What holds on a connection (MQTT 5, 3.2.2.3); of what is not said, what its absence means.
struct BrokerTerms {
  bool is_session_shorter = false;  // than was asked: it lives so long without a connection
  std::uint32_t session_expiry_seconds = 0;
  bool has_keep_alive = false;  // instead of ours
  std::uint16_t keep_alive_seconds = 0;
  std::uint16_t receive_maximum = 65'535;  // of messages that we would publish
  std::uint8_t maximum_qos = 2;
  bool retain = true;
  bool wildcards = true;
  bool subscription_ids = true;
  bool shared_subscriptions = true;
  std::uint32_t maximum_packet_bytes = 0;  // 0: any
  std::string assigned_client_id;
};
struct BrokerAnswer {
  bool is_whole = false;         // of CONNACK: its first two bytes are there
  bool session_present = false;  // of CONNACK
  std::uint8_t reason = 0;
  std::string reason_text;
  std::string server_reference;  // another broker to use
  BrokerTerms terms;             // of CONNACK
};
BrokerAnswer read_connack(std::string_view body, ProtocolVersion version);
BrokerAnswer read_broker_disconnect(std::string_view body);
// The reason codes of MQTT 5, as the standard names them, in lower case; "" for what it does not
// name.
std::string_view reason_name(std::uint8_t reason);

// The way to the broker: its address, the socket, and how long to wait for it.

inline constexpr std::uint16_t kMqttPort = 1883;
inline constexpr std::uint16_t kMqttsPort = 8883;

// The address of a broker: "mqtt://host", "mqtt://host:1883", "mqtt://[::1]:1883"; mqtts:// for
// TLS.
struct BrokerAddress {
  std::string host;  // a name or an address, IPv6 without brackets
  std::uint16_t port = kMqttPort;
  bool secure = false;

  std::string text() const;  // "host:port", "[::1]:port"
  std::string url() const { return (secure ? "mqtts://" : "mqtt://") + text(); }
};

// InvalidArgument says what is wrong and what would be right. Percent-encoding and user names in
// the URL are not taken.
Result<BrokerAddress> parse_broker_address(std::string_view url);

// Patience of the broker's client: AnswerPatience with questions that the broker leaves open,
// TakeoverWatch with another client of our id. Owned by the connection (connection.h); not
// thread-safe.

// Says how long a broker may leave a question (SUBSCRIBE, UNSUBSCRIBE) unanswered, with nothing
// else coming, before its connection is given up. It doubles with each that was given up, so that a
// broker or a board that is slow gets its answer through in the end. It begins anew once all was
// answered.
class AnswerPatience {
 public:
  static constexpr int kDoublingsMax = 4;  // of 15 s: 4 minutes

  explicit AnswerPatience(std::int64_t first_ns) : first_ns_(first_ns) {}

  std::int64_t now_ns() const { return first_ns_ << doublings_; }
  void was_silent() { doublings_ += doublings_ < kDoublingsMax ? 1 : 0; }
  void all_answered() { doublings_ = 0; }

 private:
  const std::int64_t first_ns_;
  int doublings_ = 0;
};

// Notices that another client connects with our id again and again. MQTT 3.1.1 gives no reason when
// a broker closes a connection (5 does); but a broker that takes every connection and ends it soon
// after has most likely given the session to somebody else. Two that always reconnect at once would
// take it from each other for ever, so the one that notices first waits long.
class TakeoverWatch {
 public:
  static constexpr int kLosses = 4;                         // in a row, before it is one
  static constexpr std::int64_t kShortNs = 10'000'000'000;  // a connection lost sooner counts
  static constexpr std::int64_t kFirstPauseNs = 300'000'000'000;
  static constexpr std::int64_t kMaxPauseNs = 3'600'000'000'000;

  // It was stopped, or nobody listens there, which explains the loss.
  void broker_is_away() { reset(); }

  // The other side ended a connection that had held for `duration_ns`. How long to stay away; 0
  // when nothing is suspicious.
  std::int64_t connection_lost(std::int64_t duration_ns) {
    if (duration_ns >= kShortNs) {
      reset();
      return 0;
    }
    if (++losses_ < kLosses) return 0;
    return taken_over();
  }

  // The broker has said so, as MQTT 5 does. How long to stay away.
  std::int64_t taken_over() {
    const std::int64_t pause_ns = pause_ns_;
    pause_ns_ = std::min(pause_ns * 2, kMaxPauseNs);
    return pause_ns;
  }

 private:
  void reset() {
    losses_ = 0;
    pause_ns_ = kFirstPauseNs;
  }

  int losses_ = 0;
  std::int64_t pause_ns_ = kFirstPauseNs;
};

// Finds the broker's addresses, and who is at the other end of a connection on loopback.
struct ResolvedAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  std::string text;  // "127.0.0.1:1883", "[::1]:1883"
};

// Whether it is this machine's own.
bool is_loopback(const ResolvedAddress& address);

// Asks the system's resolver, so it may wait for the network. Unavailable: no such host.
Result<std::vector<ResolvedAddress>> resolve_broker(const BrokerAddress& address);

// Whether somebody listens there: a connection is made, and closed. Waits `timeout_ms` at most.
bool is_reachable(const ResolvedAddress& address, int timeout_ms);

// Whether the other end of an accepted connection is in this process too.
bool is_end_of_own_connection(int file_descriptor);

}  // namespace edgecase::mqtt
