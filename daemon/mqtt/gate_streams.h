// The two ways through the gate to the broker, without its sockets: bytes in, bytes out. What is
// about messages ends here: they are taken out of what the broker sends, and paho never sees them,
// nor their acknowledgements. Everything else passes unchanged and in order, with one exception: a
// PINGREQ is answered here while the broker's answers wait behind a message that is stopped.
// One thread at a time. What comes out goes to who stores it (MessageLedger).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mqtt/broker.h"
#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {

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

}  // namespace edgecase::mqtt
