// The gate between paho and the broker. paho acknowledges a message whatever its callback says, and
// long before it could be durable; so paho connects to a socket of this process on loopback, and
// what passes there goes to the broker, through TLS where it speaks that. paho makes the session,
// subscribes and keeps it alive; messages end here: they are handed to who stores them, as many as
// have come at once, and acknowledged from here when they are durable (MessageLedger). As many
// messages share one sync as the broker has on their way.
//
// While the drive refuses, nothing is acknowledged, and the broker stops at the end of its window;
// where that is wider than what may wait here, messages are left unread. The connection lives on.
// When it ends, what is held is dropped: the broker has those messages and sends them again.
//
// One connection at a time, and only from this process: another one that finds the port is closed.
// One thread, "mqtt-gate"; the public functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "edgecase/clock.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "mqtt/broker.h"
#include "mqtt/gate_streams.h"
#include "mqtt/packet_codec.h"
#include "net/channel.h"
#include "tls/tls_ends.h"

namespace edgecase::mqtt {

struct GateStatus {
  bool connected = false;          // paho to the gate, and the gate to the broker
  std::size_t held = 0;            // acknowledgements
  std::int64_t held_since_ns = 0;  // the oldest one; boot clock; 0: none is held
  std::uint64_t taken = 0;         // messages, of all connections
  std::int64_t taken_last_ns = 0;  // wall clock; 0: none has come
  std::uint64_t released = 0;      // acknowledgements, of all connections
  std::uint64_t dropped = 0;       // that were held when their connection ended
};

class AckGate {
 public:
  static constexpr std::int64_t kConnectNs = 10'000'000'000;  // TCP; paho's limit is that of TLS
  static constexpr std::size_t kBufferBytes = 64u << 10;      // each way

  // `tls` null: in clear. `host` is what the broker's certificate must name. References are
  // borrowed for the gate's life.
  struct Parts {
    std::shared_ptr<const tls::TlsClient> tls;
    std::string host;
    Clock& clock;
    MessageLedger& ledger;
    std::uint32_t packet_max_bytes;  // of a message; see packet_max_bytes()
  };
  static Result<std::unique_ptr<AckGate>> open(Parts parts);
  ~AckGate();
  AckGate(const AckGate&) = delete;
  AckGate& operator=(const AckGate&) = delete;

  // Where the next connection leads to, and what is spoken there.
  // `judged_at_ns`: as TlsClient::open() says.
  void aim(const ResolvedAddress& broker, ProtocolVersion version,
           std::optional<std::int64_t> judged_at_ns = {}) EC_EXCLUDES(mutex_);
  // Where to connect instead.
  const ResolvedAddress& address() const { return address_; }

  // Why the last connection did not come about, or broke; "" when nobody knows. Asked for once.
  std::string take_failure() EC_EXCLUDES(mutex_);
  // What the broker has said at the end of the last connection. Asked for once.
  struct Ending {
    bool was_open = false;         // the broker was reached
    bool answered = false;         // CONNACK came
    bool version_refused = false;  // in it
    bool said_why = false;         // DISCONNECT came
    bool taken_over = false;       // in it: the session is another client's now
  };
  Ending take_ending() EC_EXCLUDES(mutex_);

  // The ledger has moved.
  void wake();
  // Ends the connection at hand: nothing that is held leaves.
  void cut();
  // The same, and waits until it has ended, `timeout_ns` at most.
  void end(std::int64_t timeout_ns) EC_EXCLUDES(mutex_);
  // For the end: when it returns no message is taken any more. False when that takes longer than
  // `timeout_ns`.
  bool close_inlet(std::int64_t timeout_ns) EC_EXCLUDES(mutex_);
  // Waits until everything that is durable by now is acknowledged. False as above.
  bool flush(std::int64_t timeout_ns) EC_EXCLUDES(mutex_);
  // Takes leave of the broker, and waits until it has ended the connection: by then it has read all
  // acknowledgements. False as above.
  bool leave(std::int64_t timeout_ns) EC_EXCLUDES(mutex_);

  // What the broker said when it took the last connection.
  BrokerTerms terms() const EC_EXCLUDES(mutex_);

  GateStatus status() const EC_EXCLUDES(mutex_);

 private:
  enum class Progress : unsigned char { Blocked, Moved, Over };
  // A connection and what is on its way in it.
  struct Passage {
    net::Channel& inside;
    net::Channel& broker;
    OutwardStream out;
    InwardStream in;
    HeldAcks acks;
    bool inside_ended = false;
    bool broker_ended = false;
    // Where the broker wants to hear of us more often than paho would have it; 0: it does not.
    std::int64_t ping_every_ns = 0;
    std::int64_t sent_ns = 0;
  };

  explicit AckGate(Parts parts);
  Status listen();
  void run();
  void serve(net::Socket accepted);
  std::unique_ptr<net::Channel> connect_broker();
  void forward(net::Channel& inside, net::Channel& broker);
  Progress move_out(Passage& passage);
  Progress move_in(Passage& passage);
  static bool reads_broker(const Passage& passage);
  void take_leave(Passage& passage, std::int64_t until_ns);
  void take_messages(Passage& passage) EC_EXCLUDES(mutex_);
  void keep_alive(Passage& passage);
  bool wait(const Passage& passage);
  bool wait_for(int descriptor, short events, std::int64_t until_ns);
  void take_wake();
  void note(const Passage& passage, std::uint64_t request) EC_EXCLUDES(mutex_);
  void note_end(const Passage& passage) EC_EXCLUDES(mutex_);
  void fail(std::string why) EC_EXCLUDES(mutex_);

  const Parts parts_;
  net::Socket listener_;
  net::Socket wake_;
  ResolvedAddress address_;
  std::string buffer_;  // of the thread
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cut_{false};
  std::atomic<bool> inlet_closed_{false};
  std::atomic<std::int64_t> leave_until_ns_{0};  // boot clock; 0: it stays

  mutable Mutex mutex_;
  CondVar changed_;
  ResolvedAddress broker_ EC_GUARDED_BY(mutex_);
  ProtocolVersion version_ EC_GUARDED_BY(mutex_) = ProtocolVersion::V5;
  std::optional<std::int64_t> judged_at_ns_ EC_GUARDED_BY(mutex_);
  std::string failure_ EC_GUARDED_BY(mutex_);
  Ending ending_ EC_GUARDED_BY(mutex_);
  BrokerTerms terms_ EC_GUARDED_BY(mutex_);
  GateStatus status_ EC_GUARDED_BY(mutex_);
  std::uint64_t released_before_ EC_GUARDED_BY(mutex_) = 0;  // by connections that have ended
  bool is_flushed_ EC_GUARDED_BY(mutex_) =
      true;  // nothing durable is held, or on its way to the broker
  std::uint64_t request_ EC_GUARDED_BY(mutex_) =
      0;  // of flush() and close_inlet(): made before the wake-up
  std::uint64_t answered_request_ EC_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

// The start-up self-test of the gate of acknowledgements: a broker of this process sends one
// message through it to paho, as a real one would, and looks whether an acknowledgement leaves
// before the message is durable, and whether it does afterwards. It finds a paho that acknowledges
// in a way that the gate does not know.

// Ok, or Unsupported with what went wrong: then no broker may be connected to. Takes some
// milliseconds, at most a few seconds.
Status test_ack_gate(Clock& clock, ProtocolVersion version);

}  // namespace edgecase::mqtt
