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
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "mqtt/broker.h"
#include "mqtt/packet_codec.h"
#include "net/channel.h"
#include "tls/tls_ends.h"

namespace edgecase::mqtt {

// The two ways through the gate to the broker, without its sockets: bytes in, bytes out. What is
// about messages ends here: they are taken out of what the broker sends, and paho never sees them,
// nor their acknowledgements. Everything else passes unchanged and in order, with one exception: a
// PINGREQ is answered here while the broker's answers wait behind a message that is stopped.
// One thread at a time. What comes out goes to who stores it (MessageLedger).

// Views for the length of a call.
struct IncomingMessage {
  std::string_view topic;  // any bytes; empty: the broker named none
  std::string_view payload;
  int qos = 1;
  std::uint16_t packet_id = 0;  // 0 with QoS 0
  bool redelivered = false;     // DUP
  bool retained = false;
  SubscriptionIds subscriptions = {};  // of MQTT 5, where they were asked for
  std::uint32_t oversized_bytes = 0;   // of the packet over the limit whose beginning `payload` is
};

// The interface that the gate to the broker asks of who stores the messages. Positions count
// messages from the start of the process, in the order in which they came.
//
// take() and new_session() are for the one thread that brings messages; the rest is thread-safe.
class MessageLedger {
 public:
  virtual ~MessageLedger() = default;
  // Waits for no drive.
  virtual void take(std::span<const IncomingMessage> messages) = 0;
  // The broker kept nothing of the last session.
  virtual void new_session() = 0;
  // How many messages have been taken, the last one included that was, or was not, kept. One that
  // was refused counts too, and nothing from it on is ever durable.
  virtual std::uint64_t appended() const = 0;
  // How many of them, from the first on, are durable.
  virtual std::uint64_t durable() const = 0;
  // Whether as much waits for the drive that no more should be brought.
  virtual bool full() const = 0;
};

// Acknowledgements of messages that are not durable yet, in the order of the messages.
class HeldAcks {
 public:
  explicit HeldAcks(ProtocolVersion version) : version_(version) {}

  // Holds the acknowledgement of a message up to that position; one of QoS 0 has none.
  void hold(const IncomingMessage& message, std::uint64_t position, std::int64_t now_ns);
  // Appends those of messages up to this position.
  void release(std::uint64_t durable, std::string& out);

  std::size_t held() const { return held_.size(); }
  // Whether the next release() finds one that it lets go of.
  bool holds_up_to(std::uint64_t durable) const {
    return !held_.empty() && held_.front().position <= durable;
  }
  // Since when the oldest one is held; 0: none is.
  std::int64_t held_since_ns() const { return held_.empty() ? 0 : held_.front().since_ns; }
  std::uint64_t released() const { return released_; }

 private:
  struct Held {
    std::uint64_t position = 0;
    std::int64_t since_ns = 0;
    std::uint16_t packet_id = 0;
    bool is_qos2 = false;
  };

  const ProtocolVersion version_;
  std::deque<Held> held_;
  std::uint64_t released_ = 0;
};

// From paho to the broker.
class OutwardStream {
 public:
  static constexpr std::size_t kPacketBytesMax = 1u << 20;  // paho sends no larger ones

  // False: that is no MQTT, or an acknowledgement of what paho was never given.
  bool feed(std::string_view bytes);
  // PINGREQs that have passed since the last call.
  std::uint32_t take_pings() { return std::exchange(pings_, 0); }

  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

 private:
  std::string partial_;
  std::string output_;
  std::uint32_t pings_ = 0;
};

// From the broker to paho, and to who stores the messages.
class InwardStream {
 public:
  enum class Publishes : unsigned char { Take, Wait };

  // A message over `packet_max_bytes` is passed over unbuffered but for its beginning.
  InwardStream(ProtocolVersion version, std::uint32_t packet_max_bytes)
      : version_(version), packet_max_bytes_(packet_max_bytes) {}

  // Takes all of it; what waits is kept.
  void feed(std::string_view bytes);
  // Goes on until output() holds `output_max_bytes`, or a message is not whole yet, or may not be
  // taken. False: that is no MQTT.
  bool advance(Publishes publishes, std::size_t output_max_bytes);
  // What the last advance() took; valid until the next feed() or advance().
  std::span<const IncomingMessage> messages() const { return messages_; }
  // Notes PINGREQs that have gone to the broker. Where its answers wait behind a message that is
  // stopped, advance() answers in its place, and drops its answers when they come.
  void expect_answers(std::uint32_t pings) { pings_open_ += pings; }
  // One of ours has gone, of which paho knows nothing.
  void expect_own_answer() { ++pings_answered_; }

  // To paho.
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }
  // To the broker: the ends of exchanges of QoS 2.
  std::string take_answers() { return std::exchange(answers_, {}); }
  // messages() are no more, and nothing of them stays in memory here.
  void drop_taken();
  std::size_t waiting_bytes() const { return input_.size() - begin_; }
  // A message is at the front and may not be taken.
  bool is_stopped() const { return stopped_; }
  // A message is at the front and not whole.
  bool is_message_partial() const { return partial_; }

  // Why the broker has refused or ended the connection; "" when it has not said.
  const std::string& reason() const { return reason_; }
  bool was_connected() const { return was_connected_; }
  // Told once: the broker took the connection and kept nothing of the last session. Messages that
  // come later are not taken before that was asked.
  bool take_new_session() { return std::exchange(new_session_, false); }
  // Told once: what the broker said when it took the connection.
  bool has_new_terms() { return std::exchange(new_terms_, false); }
  const BrokerTerms& terms() const { return terms_; }
  bool version_refused() const { return version_refused_; }
  bool taken_over() const { return taken_over_; }
  // The broker has said goodbye, whatever the reason.
  bool was_ended() const { return was_ended_; }

 private:
  enum class Step : unsigned char { Moved, NeedMore, Stopped, Malformed };
  Step step(Publishes publishes);
  Step pass_packet(const FixedHeader& header, std::string_view rest);
  Step end(const FixedHeader& header, std::string_view rest);
  Step take_publish(const FixedHeader& header, std::string_view rest);
  bool add_message(std::uint8_t flags, std::string_view body, std::uint32_t oversized_bytes);
  Step answer_pubrel(const FixedHeader& header, std::string_view rest);
  void answer_pings();
  void look_at(PacketType type, std::string_view body);

  const ProtocolVersion version_;
  const std::uint32_t packet_max_bytes_;
  std::string input_;
  std::size_t begin_ = 0;  // of what waits
  std::string output_;
  std::string answers_;
  std::vector<IncomingMessage> messages_;
  std::uint64_t pass_bytes_ = 0;  // of the packet that passes, still to come
  std::uint64_t skip_bytes_ = 0;  // of the message over the limit, still to come
  FixedHeader skipped_;
  std::string skipped_head_;
  bool stopped_ = false;
  bool partial_ = false;
  std::uint32_t pings_open_ = 0;      // nobody has answered them
  std::uint32_t pings_answered_ = 0;  // here; the broker's answers are still to come
  bool was_connected_ = false;
  bool new_session_ = false;
  bool new_terms_ = false;
  BrokerTerms terms_;
  bool version_refused_ = false;
  bool taken_over_ = false;
  bool was_ended_ = false;
  std::string reason_;
};

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
