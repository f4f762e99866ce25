// The two ways through the gate of acknowledgements, without its sockets: bytes in, bytes out.
// Packets pass unchanged and in order, with three exceptions: what acknowledges a message waits
// until that message is durable; messages wait while there is no room for them; and a PINGREQ is
// answered here while the broker's answers wait behind such a message. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {

// From paho to the broker: PUBACK and PUBREC are held back.
class OutwardStream {
 public:
  // An acknowledgement of MQTT 5 may carry a text, which paho never sends.
  static constexpr std::size_t kAckBytesMax = 64;
  static constexpr std::size_t kPacketBytesMax = 1u << 20;  // paho sends no larger ones

  // `stamp` is the position of the last message that was taken by now. False: that is no MQTT.
  bool feed(std::string_view bytes, std::uint64_t stamp, std::int64_t now_ns);
  // Lets go, in order, of what acknowledges messages up to this position.
  void release(std::uint64_t durable);
  // PINGREQs that have passed since the last call.
  std::uint32_t take_pings() { return std::exchange(pings_, 0); }

  std::string& output() { return output_; }
  const std::string& output() const { return output_; }
  std::size_t held() const { return held_.size(); }
  // Whether the next release() may find one that it lets go of.
  bool holds_up_to(std::uint64_t durable) const {
    return !held_.empty() && held_.front().stamp <= durable;
  }
  // Since when the oldest one is held; 0: none is.
  std::int64_t held_since_ns() const { return held_.empty() ? 0 : held_.front().since_ns; }
  std::uint64_t acks_seen() const { return acks_seen_; }
  std::uint64_t acks_released() const { return acks_seen_ - held_.size(); }

 private:
  struct Held {
    std::uint64_t stamp = 0;
    std::int64_t since_ns = 0;
    std::string packet;
  };

  std::string partial_;
  std::string output_;
  std::deque<Held> held_;
  std::uint64_t acks_seen_ = 0;
  std::uint32_t pings_ = 0;
};

// From the broker to paho.
class InwardStream {
 public:
  enum class Publishes : unsigned char { Pass, Wait };

  // Takes all of it; what waits is kept.
  void feed(std::string_view bytes) { input_.append(bytes); }
  // Moves to output() what may pass, until that holds `output_max_bytes`. False: that is no MQTT.
  bool advance(Publishes publishes, std::size_t output_max_bytes);
  // So many PINGREQs have gone to the broker. Where its answers wait behind a message that is
  // stopped, advance() answers in its place, and drops its answers when they come.
  void expect_answers(std::uint32_t pings) { pings_open_ += pings; }

  std::string& output() { return output_; }
  const std::string& output() const { return output_; }
  std::size_t waiting_bytes() const { return input_.size(); }
  // A message is at the front and may not pass.
  bool is_stopped() const { return stopped_; }
  // Messages that will be acknowledged.
  std::uint64_t publishes_passed() const { return publishes_passed_; }
  // Why the broker has refused or ended the connection; "" when it has not said.
  const std::string& reason() const { return reason_; }
  bool was_connected() const { return was_connected_; }
  bool version_refused() const { return version_refused_; }
  bool taken_over() const { return taken_over_; }
  // The broker has said goodbye, whatever the reason.
  bool was_ended() const { return was_ended_; }

 private:
  enum class Step : unsigned char { NeedMore, Moved, Stopped, Malformed };
  void answer_pings();
  Step next_packet(Publishes publishes, std::string_view rest, std::size_t& taken);
  void look_at(PacketType type, std::string_view body);

  std::string input_;
  std::string output_;
  std::uint64_t body_left_ = 0;  // of the packet that passes
  bool stopped_ = false;
  std::uint64_t publishes_passed_ = 0;
  std::uint32_t pings_open_ = 0;      // nobody has answered them
  std::uint32_t pings_answered_ = 0;  // here; the broker's answers are still to come
  bool was_connected_ = false;
  bool version_refused_ = false;
  bool taken_over_ = false;
  bool was_ended_ = false;
  std::string reason_;
};

}  // namespace edgecase::mqtt
