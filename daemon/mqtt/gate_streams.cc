#include "mqtt/ack_gate.h"

#include <algorithm>

#include "mqtt/message_group.h"
#include "mqtt/packet_codec.h"
#include "net/channel.h"

namespace edgecase::mqtt {
namespace {

// What is looked at is looked at whole: CONNACK and DISCONNECT may carry texts.
constexpr std::size_t kLookedAtMaxBytes = 32u << 10;

// A return code of 3.1.1; those of MQTT 5 are larger.
constexpr std::uint8_t kVersionRefused311 = 1;

bool acknowledges(PacketType type) {
  return type == PacketType::Puback || type == PacketType::Pubrec || type == PacketType::Pubcomp;
}

bool is_looked_at(PacketType type) {
  return type == PacketType::Connack || type == PacketType::Pingresp;
}

std::string reason_words(std::uint8_t code) {
  const std::string_view name = reason_name(code);
  return "reason " + std::to_string(code) + (name.empty() ? "" : " (" + std::string(name) + ")");
}

// What a CONNACK of either version says; "" for success.
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
    default: return "the broker refuses the connection, " + reason_words(code);
  }
}

// What it says beside its reason.
std::string with_more(std::string text, const BrokerAnswer& answer) {
  if (!answer.reason_text.empty()) text += ": " + answer.reason_text;
  if (!answer.server_reference.empty()) {
    text += "; it says to use " + answer.server_reference + " instead (mqtt.broker)";
  }
  return text;
}

// A message of QoS 0 must not be marked as sent again; one that is, is taken.
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

// ---- Acknowledgements

void HeldAcks::hold(const IncomingMessage& message, std::uint64_t position, std::int64_t now_ns) {
  if (message.qos > 0) held_.push_back({position, now_ns, message.packet_id, message.qos == 2});
}

void HeldAcks::release(std::uint64_t durable, std::string& out) {
  for (; holds_up_to(durable); held_.pop_front()) {
    const Held& ack = held_.front();
    append_ack(ack.is_qos2 ? PacketType::Pubrec : PacketType::Puback, ack.packet_id, version_,
               ReasonCode::Success, {}, 0, out);
    ++released_;
  }
}

// ---- From paho to the broker

bool OutwardStream::feed(std::string_view bytes) {
  const bool joined = !partial_.empty();
  if (joined) partial_.append(bytes);
  std::string_view rest = joined ? std::string_view(partial_) : bytes;
  while (!rest.empty()) {
    FixedHeader header;
    const HeaderProgress progress = read_fixed_header(rest, header);
    if (progress == HeaderProgress::Malformed) return false;
    if (progress == HeaderProgress::NeedMore) break;
    const std::size_t size = std::size_t{header.header_bytes} + header.remaining_bytes;
    if (size > kPacketBytesMax || acknowledges(header.type)) return false;
    if (rest.size() < size) break;
    output_.append(rest.substr(0, size));
    if (header.type == PacketType::Pingreq) ++pings_;
    rest.remove_prefix(size);
  }
  if (joined) {
    net::drop_front(partial_, partial_.size() - rest.size());
  } else {
    partial_.assign(rest);
  }
  return true;
}

// ---- From the broker

void InwardStream::feed(std::string_view bytes) {
  drop_taken();
  if (!was_ended_) input_.append(bytes);
}

void InwardStream::drop_taken() {
  messages_.clear();
  net::drop_front(input_, begin_);
  begin_ = 0;
}

bool InwardStream::advance(Publishes publishes, std::size_t output_max_bytes) {
  messages_.clear();
  stopped_ = false;
  partial_ = false;
  Step last = Step::Moved;
  while (last == Step::Moved && output_.size() < output_max_bytes && begin_ < input_.size() &&
         !new_session_) {
    last = step(publishes);
  }
  stopped_ = last == Step::Stopped;
  if (stopped_) answer_pings();
  return last != Step::Malformed;
}

InwardStream::Step InwardStream::step(Publishes publishes) {
  const std::string_view rest = std::string_view(input_).substr(begin_);
  if (pass_bytes_ > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(pass_bytes_, rest.size()));
    output_.append(rest.substr(0, part));
    pass_bytes_ -= part;
    begin_ += part;
    return Step::Moved;
  }
  if (skip_bytes_ > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(skip_bytes_, rest.size()));
    skip_bytes_ -= part;
    begin_ += part;
    if (skip_bytes_ > 0) return Step::NeedMore;
    // The next one may need the room for its own beginning.
    return add_message(skipped_.flags, skipped_head_, skipped_.remaining_bytes) ? Step::NeedMore
                                                                                : Step::Malformed;
  }
  FixedHeader header;
  const HeaderProgress progress = read_fixed_header(without_wrong_dup(rest), header);
  if (progress == HeaderProgress::Malformed) return Step::Malformed;
  if (progress == HeaderProgress::NeedMore) return Step::NeedMore;
  if (header.type == PacketType::Pubrel) return answer_pubrel(header, rest);
  if (header.type != PacketType::Publish) return pass_packet(header, rest);
  return publishes == Publishes::Wait ? Step::Stopped : take_publish(header, rest);
}

InwardStream::Step InwardStream::pass_packet(const FixedHeader& header, std::string_view rest) {
  if (header.type == PacketType::Disconnect) return end(header, rest);
  if (is_looked_at(header.type) && header.remaining_bytes <= kLookedAtMaxBytes) {
    const std::size_t size = std::size_t{header.header_bytes} + header.remaining_bytes;
    if (rest.size() < size) return Step::NeedMore;
    look_at(header.type, rest.substr(header.header_bytes, header.remaining_bytes));
    if (header.type == PacketType::Pingresp && pings_answered_ > 0) {
      --pings_answered_;
      begin_ += size;
      return Step::Moved;
    }
    if (header.type == PacketType::Pingresp && pings_open_ > 0) --pings_open_;
  }
  output_.append(rest.substr(0, header.header_bytes));
  begin_ += header.header_bytes;
  pass_bytes_ = header.remaining_bytes;
  return Step::Moved;
}

// paho is not shown it: it would close its socket and tell nobody, and a SUBSCRIBE on its way would
// be waited for in vain. A connection that ends it reports at once. Nothing follows a DISCONNECT.
InwardStream::Step InwardStream::end(const FixedHeader& header, std::string_view rest) {
  const std::size_t body_bytes = std::min<std::size_t>(header.remaining_bytes, kLookedAtMaxBytes);
  if (rest.size() < header.header_bytes + body_bytes) return Step::NeedMore;
  look_at(header.type, rest.substr(header.header_bytes, body_bytes));
  begin_ = input_.size();
  return Step::NeedMore;
}

InwardStream::Step InwardStream::take_publish(const FixedHeader& header, std::string_view rest) {
  const bool oversized = header.remaining_bytes > packet_max_bytes_;
  const std::uint32_t body_bytes =
      oversized ? std::min(header.remaining_bytes, kOversizedHeadBytes) : header.remaining_bytes;
  const std::size_t size = std::size_t{header.header_bytes} + body_bytes;
  partial_ = rest.size() < size;
  if (partial_) return Step::NeedMore;
  const std::string_view body = rest.substr(header.header_bytes, body_bytes);
  begin_ += size;
  if (!oversized) return add_message(header.flags, body, 0) ? Step::Moved : Step::Malformed;
  skipped_ = header;
  skipped_head_ = body;
  skip_bytes_ = header.remaining_bytes - body_bytes;
  if (skip_bytes_ > 0) return Step::Moved;
  return add_message(header.flags, skipped_head_, header.remaining_bytes) ? Step::NeedMore
                                                                          : Step::Malformed;
}

// A topic that is none is for who stores the message to judge: without its acknowledgement the
// broker would send it for ever.
bool InwardStream::add_message(std::uint8_t flags, std::string_view body,
                               std::uint32_t oversized_bytes) {
  PublishPacket packet;
  if (read_publish(flags, body, version_, packet) != ReasonCode::Success) return false;
  messages_.push_back({.topic = packet.topic,
                       .payload = packet.payload,
                       .qos = packet.qos,
                       .packet_id = packet.packet_id,
                       .redelivered = packet.duplicate && packet.qos > 0,
                       .retained = packet.retain,
                       .subscriptions = read_subscription_ids(packet.properties),
                       .oversized_bytes = oversized_bytes});
  return true;
}

// What it is about was durable when its PUBREC left.
InwardStream::Step InwardStream::answer_pubrel(const FixedHeader& header, std::string_view rest) {
  if (header.remaining_bytes > kLookedAtMaxBytes) return Step::Malformed;
  const std::size_t size = std::size_t{header.header_bytes} + header.remaining_bytes;
  if (rest.size() < size) return Step::NeedMore;
  PacketReader reader(rest.substr(header.header_bytes, header.remaining_bytes));
  const std::uint16_t packet_id = reader.fixed16();
  if (packet_id == 0) return Step::Malformed;
  append_ack(PacketType::Pubcomp, packet_id, version_, ReasonCode::Success, {}, 0, answers_);
  begin_ += size;
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
  if (type == PacketType::Connack) {
    const BrokerAnswer answer = read_connack(body, version_);
    was_connected_ = true;
    const auto unsupported = static_cast<std::uint8_t>(ReasonCode::UnsupportedProtocolVersion);
    version_refused_ = answer.reason == kVersionRefused311 || answer.reason == unsupported;
    const bool is_taken = answer.is_whole && answer.reason == 0;
    new_session_ = is_taken && !answer.session_present;
    new_terms_ = is_taken;
    terms_ = answer.terms;
    reason_ = answer.reason == 0 ? "" : with_more(refusal_text(answer.reason), answer);
  } else if (type == PacketType::Disconnect) {
    const BrokerAnswer answer = read_broker_disconnect(body);
    was_ended_ = true;
    taken_over_ = answer.reason == static_cast<std::uint8_t>(ReasonCode::SessionTakenOver);
    reason_ =
        with_more(taken_over_ ? "the broker gave the session to another client of this id"
                              : "the broker ended the connection, " + reason_words(answer.reason),
                  answer);
  }
}

}  // namespace edgecase::mqtt
