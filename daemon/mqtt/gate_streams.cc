#include "mqtt/gate_streams.h"

#include <algorithm>

namespace edgecase::mqtt {
namespace {

// What is looked at is looked at whole: CONNACK and DISCONNECT may carry texts.
constexpr std::size_t kLookedAtMaxBytes = 32u << 10;

// A return code of 3.1.1; those of MQTT 5 are larger.
constexpr std::uint8_t kVersionRefused311 = 1;

bool is_held(PacketType type) {
  return type == PacketType::Puback || type == PacketType::Pubrec;
}

bool is_looked_at(PacketType type) {
  return type == PacketType::Connack || type == PacketType::Disconnect ||
         type == PacketType::Pingresp;
}

// Of a CONNACK of either version; "" for success.
std::string refusal_text(std::uint8_t code) {
  switch (code) {
    case 0: return "";
    case kVersionRefused311:
    case static_cast<std::uint8_t>(ReasonCode::UnsupportedProtocolVersion):
      return "the broker does not speak this version of MQTT";
    case 2:
    case static_cast<std::uint8_t>(ReasonCode::ClientIdentifierNotValid):
      return "the broker does not accept mqtt.client-id";
    case 3:
    case static_cast<std::uint8_t>(ReasonCode::ServerBusy):
      return "the broker is not available yet";
    case 4:
    case static_cast<std::uint8_t>(ReasonCode::BadUserNameOrPassword):
      return "wrong mqtt.username or password";
    case 5:
    case static_cast<std::uint8_t>(ReasonCode::NotAuthorized):
      return "not authorised: mqtt.username or password is wrong, or may not connect";
    default: return "the broker refuses the connection, reason " + std::to_string(code);
  }
}

// A message of QoS 0 must not be marked as sent again; paho takes one that is.
std::string without_wrong_dup(std::string_view bytes) {
  constexpr unsigned kQosBits = 0x06;
  constexpr unsigned kDupBit = 0x08;
  std::string head(bytes.substr(0, kFixedHeaderMaxBytes));
  const auto first = static_cast<unsigned char>(head[0]);
  const bool is_publish = first >> 4 == static_cast<unsigned>(PacketType::Publish);
  if (is_publish && (first & kQosBits) == 0) head[0] = static_cast<char>(first & ~kDupBit);
  return head;
}

}  // namespace

// ---- From paho to the broker

bool OutwardStream::feed(std::string_view bytes, std::uint64_t stamp, std::int64_t now_ns) {
  const bool joined = !partial_.empty();
  if (joined) partial_.append(bytes);
  std::string_view rest = joined ? std::string_view(partial_) : bytes;
  while (!rest.empty()) {
    FixedHeader header;
    const HeaderProgress progress = read_fixed_header(rest, header);
    if (progress == HeaderProgress::Malformed) return false;
    if (progress == HeaderProgress::NeedMore) break;
    const std::size_t size = std::size_t{header.header_bytes} + header.remaining_bytes;
    if (size > (is_held(header.type) ? kAckBytesMax : kPacketBytesMax)) return false;
    if (rest.size() < size) break;
    if (is_held(header.type)) {
      held_.push_back({stamp, now_ns, std::string(rest.substr(0, size))});
      ++acks_seen_;
    } else {
      output_.append(rest.substr(0, size));
      if (header.type == PacketType::Pingreq) ++pings_;
    }
    rest.remove_prefix(size);
  }
  if (joined) {
    partial_.erase(0, partial_.size() - rest.size());
  } else {
    partial_.assign(rest);
  }
  return true;
}

void OutwardStream::release(std::uint64_t durable) {
  for (; holds_up_to(durable); held_.pop_front()) output_ += held_.front().packet;
}

// ---- From the broker to paho

bool InwardStream::advance(Publishes publishes, std::size_t output_max_bytes) {
  stopped_ = false;
  std::size_t taken = 0;
  // The front of input_ is cut off once, at the end.
  std::string all;
  all.swap(input_);
  std::string_view rest = all;
  Step step = Step::Moved;
  while (step == Step::Moved && output_.size() < output_max_bytes && taken < all.size()) {
    rest = std::string_view(all).substr(taken);
    if (body_left_ > 0) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, rest.size()));
      output_.append(rest.substr(0, part));
      body_left_ -= part;
      taken += part;
      continue;
    }
    step = next_packet(publishes, rest, taken);
  }
  all.erase(0, taken);
  input_.swap(all);
  stopped_ = step == Step::Stopped;
  if (stopped_) answer_pings();
  return step != Step::Malformed;
}

InwardStream::Step InwardStream::next_packet(Publishes publishes, std::string_view rest,
                                             std::size_t& taken) {
  FixedHeader header;
  const HeaderProgress progress = read_fixed_header(without_wrong_dup(rest), header);
  if (progress == HeaderProgress::Malformed) return Step::Malformed;
  if (progress == HeaderProgress::NeedMore) return Step::NeedMore;
  if (header.type == PacketType::Publish) {
    if (publishes == Publishes::Wait) return Step::Stopped;
    if (((header.flags >> 1) & 3) != 0) ++publishes_passed_;
  } else if (is_looked_at(header.type) && header.remaining_bytes <= kLookedAtMaxBytes) {
    const std::size_t size = std::size_t{header.header_bytes} + header.remaining_bytes;
    if (rest.size() < size) return Step::NeedMore;
    look_at(header.type, rest.substr(header.header_bytes, header.remaining_bytes));
    if (header.type == PacketType::Pingresp && pings_answered_ > 0) {
      --pings_answered_;
      taken += size;
      return Step::Moved;
    }
    if (header.type == PacketType::Pingresp && pings_open_ > 0) --pings_open_;
  }
  output_.append(rest.substr(0, header.header_bytes));
  taken += header.header_bytes;
  body_left_ = header.remaining_bytes;
  return Step::Moved;
}

// Nothing of a packet is on its way: the next one is the message that is stopped.
void InwardStream::answer_pings() {
  for (; pings_open_ > 0; --pings_open_) {
    append_pingresp(output_);
    ++pings_answered_;
  }
}

void InwardStream::look_at(PacketType type, std::string_view body) {
  const std::uint8_t code =
      type == PacketType::Connack && body.size() >= 2   ? static_cast<std::uint8_t>(body[1])
      : type == PacketType::Disconnect && !body.empty() ? static_cast<std::uint8_t>(body[0])
                                                        : std::uint8_t{0};
  if (type == PacketType::Connack) {
    was_connected_ = true;
    const auto unsupported = static_cast<std::uint8_t>(ReasonCode::UnsupportedProtocolVersion);
    version_refused_ = code == kVersionRefused311 || code == unsupported;
    reason_ = refusal_text(code);
  } else if (type == PacketType::Disconnect) {
    was_ended_ = true;
    taken_over_ = code == static_cast<std::uint8_t>(ReasonCode::SessionTakenOver);
    reason_ = taken_over_ ? "the broker gave the session to another client of this id"
                          : "the broker ended the connection, reason " + std::to_string(code);
  }
}

}  // namespace edgecase::mqtt
