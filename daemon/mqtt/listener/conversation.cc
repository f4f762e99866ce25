#include "mqtt/listener/conversation.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "mqtt/rejected_messages.h"

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kSmallPacketBytes = 1u << 10;  // not given back between packets

std::string reason_hex(ReasonCode reason) {
  char text[16];
  std::snprintf(text, sizeof text, " (0x%02X)", static_cast<unsigned>(reason));
  return text;
}

std::string_view words_of(ReasonCode reason) {
  switch (reason) {
    case ReasonCode::MalformedPacket: return "malformed packet";
    case ReasonCode::ProtocolError: return "protocol error";
    case ReasonCode::TopicNameInvalid: return "the topic is empty or has a wildcard";
    case ReasonCode::TopicAliasInvalid: return "no such topic alias is possible";
    case ReasonCode::UnsupportedProtocolVersion: return "only MQTT 3.1.1 and 5 are spoken here";
    default: return "refused";
  }
}

}  // namespace

void note_stored(SessionTable& sessions, const GroupMessage& message) {
  Session* const session = sessions.find(message.session);
  if (session == nullptr) return;
  using State = ReceivedIds::State;
  if (message.qos == 1 && message.content_hash != 0) {
    session->redelivery.stored(message.packet_id, message.content_hash);
  }
  if (message.qos == 2 && session->received.state(message.packet_id) == State::Storing) {
    session->received.set(message.packet_id, State::Stored);
  }
}

Conversation::Conversation(const ConversationParts& parts, std::uint64_t connection,
                           Standing standing, auth::Principal peer)
    : parts_(parts),
      connection_(connection),
      standing_(standing),
      principal_(std::move(peer)),
      share_(parts.budget) {}

void Conversation::leave(std::int64_t now_ns) {
  ended_ = true;
  if (session_ != 0) parts_.sessions.detach(session_, connection_, now_ns);
}

std::uint64_t Conversation::take_predecessor() {
  return std::exchange(predecessor_, 0);
}

void Conversation::end(ReasonCode reason, std::string_view why) {
  if (ended_) return;
  ended_ = true;
  failure_ = std::string(why) + reason_hex(reason);
  if (!is_connected()) return;
  append_disconnect(version_, reason, wants_texts_ ? why : "", client_packet_max_bytes_, output_);
}

bool Conversation::receive(std::string_view bytes, MessageGroup& group, std::int64_t now_ns) {
  now_ns_ = now_ns;
  if (is_connected() && parts_.authenticator != nullptr &&
      !parts_.authenticator->is_current(principal_)) {
    end(ReasonCode::NotAuthorized, "the token has ended, or one is needed by now");
  }
  while (!bytes.empty() && !ended_) {
    if (skip_bytes_ > 0) {
      bytes = skip(bytes, group);
    } else if (wanted_bytes_ > 0) {
      bytes = take_partial(bytes, group, now_ns);
    } else {
      bytes = take_whole(bytes, group);
    }
  }
  return !ended_;
}

// The first packet, straight from what was received; or its beginning is kept.
std::string_view Conversation::take_whole(std::string_view bytes, MessageGroup& group) {
  FixedHeader header;
  const HeaderProgress progress = read_fixed_header(bytes, header);
  if (progress == HeaderProgress::Malformed) {
    end(ReasonCode::MalformedPacket, words_of(ReasonCode::MalformedPacket));
    return {};
  }
  const std::size_t total = std::size_t{header.header_bytes} + header.remaining_bytes;
  if (progress == HeaderProgress::NeedMore || bytes.size() < total ||
      header.remaining_bytes > parts_.packet_max_bytes) {
    wanted_bytes_ = 1;
    return bytes;
  }
  if (!admit(header)) return {};
  handle(header, bytes.substr(header.header_bytes, header.remaining_bytes), group);
  return bytes.substr(total);
}

std::string_view Conversation::take_partial(std::string_view bytes, MessageGroup& group,
                                            std::int64_t now_ns) {
  if (partial_.empty()) partial_since_ns_ = now_ns;
  const std::size_t more = std::min(bytes.size(), wanted_bytes_ - partial_.size());
  if (!grow_partial(partial_.size() + more)) {
    end(ReasonCode::QuotaExceeded, "mqtt.in-flight-limit is reached, try again later");
    return {};
  }
  partial_ += bytes.substr(0, more);
  bytes.remove_prefix(more);
  if (partial_.size() < wanted_bytes_) return bytes;
  FixedHeader header;
  const HeaderProgress progress = read_fixed_header(partial_, header);
  if (progress == HeaderProgress::Malformed) {
    end(ReasonCode::MalformedPacket, words_of(ReasonCode::MalformedPacket));
    return {};
  }
  if (progress == HeaderProgress::NeedMore) {
    ++wanted_bytes_;
    return bytes;
  }
  if (!admit(header)) return {};
  std::uint32_t body_bytes = header.remaining_bytes;
  const bool oversized = body_bytes > parts_.packet_max_bytes;
  if (oversized) body_bytes = std::min(body_bytes, kOversizedHeadBytes);
  wanted_bytes_ = std::size_t{header.header_bytes} + body_bytes;
  if (partial_.size() < wanted_bytes_) return bytes;
  if (oversized) {
    skip_bytes_ = header.remaining_bytes - body_bytes;
    if (skip_bytes_ == 0) on_oversized(group);
    return bytes;
  }
  handle(header, std::string_view(partial_).substr(header.header_bytes), group);
  forget_partial();
  return bytes;
}

std::string_view Conversation::skip(std::string_view bytes, MessageGroup& group) {
  const std::size_t taken = std::min<std::size_t>(bytes.size(), skip_bytes_);
  skip_bytes_ -= static_cast<std::uint32_t>(taken);
  skipped_bytes_ += taken;
  if (skip_bytes_ == 0) on_oversized(group);
  return bytes.substr(taken);
}

// Whether a packet of that size and kind is read at all. A client of 3.1.1 cannot be told why it is
// not, and would send it for ever: its message is passed over and kept as rejected.
bool Conversation::admit(const FixedHeader& header) {
  if (!is_connected()) {
    if (header.type != PacketType::Connect) {
      end(ReasonCode::ProtocolError, "the first packet is no CONNECT");
      return false;
    }
    if (header.remaining_bytes > kConnectMaxBytes) {
      end(ReasonCode::PacketTooLarge, "CONNECT of more than 64 KiB");
      return false;
    }
  }
  if (header.remaining_bytes <= parts_.packet_max_bytes) return true;
  if (version_ == ProtocolVersion::V311 && header.type == PacketType::Publish) return true;
  end(ReasonCode::PacketTooLarge, "a packet has at most " +
                                      std::to_string(parts_.packet_max_bytes) +
                                      " bytes (limits.message-limit)");
  return false;
}

bool Conversation::grow_partial(std::size_t bytes) {
  if (bytes <= partial_.capacity()) return true;
  const std::size_t capacity = std::max(bytes, std::min(2 * partial_.capacity(), wanted_bytes_));
  if (!share_.grow(capacity - partial_.capacity())) return false;
  partial_.reserve(capacity);
  return true;
}

void Conversation::forget_partial() {
  partial_since_ns_ = 0;
  wanted_bytes_ = 0;
  skipped_bytes_ = 0;
  partial_.clear();
  if (partial_.capacity() <= kSmallPacketBytes) return;
  std::size_t alias_bytes = 0;
  for (const std::string& alias : aliases_) alias_bytes += alias.size();
  partial_ = std::string();
  share_.shrink(share_.bytes() - alias_bytes);
}

void Conversation::handle(const FixedHeader& header, std::string_view body, MessageGroup& group) {
  switch (header.type) {
    case PacketType::Connect:
      if (is_connected()) return end(ReasonCode::ProtocolError, "a second CONNECT");
      return on_connect(body);
    case PacketType::Publish: return on_publish(header.flags, body, group);
    case PacketType::Pubrel: return on_pubrel(body);
    case PacketType::Subscribe:
    case PacketType::Unsubscribe: return on_subscribe(header.type, body);
    case PacketType::Pingreq:
      if (!body.empty()) break;
      return append_pingresp(output_);
    case PacketType::Disconnect: return on_disconnect(body);
    default:
      return end(ReasonCode::ProtocolError, "a packet that only servers send, or that is unasked");
  }
  end(ReasonCode::MalformedPacket, words_of(ReasonCode::MalformedPacket));
}

void Conversation::refuse_connect(ProtocolVersion version, ReasonCode reason,
                                  std::string_view why) {
  ConnackPacket answer;
  answer.reason = reason;
  answer.reason_text = why;
  append_connack(version, answer, output_);
  end(reason, why);
}

void Conversation::on_connect(std::string_view body) {
  ConnectPacket packet;
  ReasonCode reason = decode_connect(body, packet);
  std::string_view why = words_of(reason);
  if (reason == ReasonCode::Success) {
    if (standing_ == Standing::TurnedAway) {
      reason = ReasonCode::ServerBusy;
      why = "too many connections are open (mqtt.connections)";
    } else if (standing_ == Standing::AddressTurnedAway) {
      reason = ReasonCode::ServerBusy;
      why = "too many connections of this address (mqtt.connections-per-address)";
    } else if (packet.wants_authentication) {
      reason = ReasonCode::BadAuthenticationMethod;
      why = "no authentication method is known here";
    } else if (packet.client_id.size() > kClientIdMaxBytes) {
      reason = ReasonCode::ClientIdentifierNotValid;
      why = "a client identifier has at most 256 bytes";
    } else if (packet.client_id.empty() && !packet.clean_start &&
               packet.version == ProtocolVersion::V311) {
      reason = ReasonCode::ClientIdentifierNotValid;
      why = "a session that is kept needs a client identifier";
    }
  }
  std::string denied;
  if (reason == ReasonCode::Success) {
    reason = log_in(packet, denied);
    why = denied;
    if (reason != ReasonCode::Success) note_denied(reason);
  }
  if (reason != ReasonCode::Success) return refuse_connect(packet.version, reason, why);
  welcome(packet);
}

void Conversation::note_denied(ReasonCode reason) {
  audit::AuditLog* const audit = parts_.pipeline.audit();
  if (audit == nullptr) return;
  if (reason == ReasonCode::ConnectionRateExceeded) return audit->note_throttled();
  audit->note_denied("mqtt.connect", principal_, "", "");
}

// The password is a token and the username its id. Other credentials mean nothing to who needs
// none.
ReasonCode Conversation::log_in(const ConnectPacket& packet, std::string& why) {
  if (parts_.authenticator == nullptr) return ReasonCode::Success;
  auth::Authenticator& authenticator = *parts_.authenticator;
  const bool is_token = auth::looks_like_token(packet.password);
  if (!is_token && authenticator.is_current(principal_)) return ReasonCode::Success;
  auto shown = authenticator.authenticate(principal_, packet.password);
  if (shown.ok() && shown->grant->token_id == packet.username) {
    principal_ = std::move(shown).value();
    const auth::Scopes& scopes = principal_.grant->scopes;
    if (scopes.admin || scopes.write) return ReasonCode::Success;
    why = "token " + principal_.grant->token_id + " may not write anything";
    return ReasonCode::NotAuthorized;
  }
  why = shown.ok() ? "the username is not the token's id" : shown.status().message();
  if (!shown.ok() && shown.status().code() == StatusCode::Busy) {
    return ReasonCode::ConnectionRateExceeded;
  }
  return packet.password.empty() ? ReasonCode::NotAuthorized : ReasonCode::BadUserNameOrPassword;
}

void Conversation::welcome(const ConnectPacket& packet) {
  version_ = packet.version;
  wants_texts_ = packet.wants_problem_information;
  client_packet_max_bytes_ = packet.maximum_packet_bytes;
  keep_alive_ns_ = packet.keep_alive_seconds * kSecondNs / 2 * 3;
  client_id_ = packet.client_id;
  ConnackPacket answer;
  if (client_id_.empty()) {
    client_id_ = "edgecase-" + std::to_string(connection_) + "-" + std::to_string(now_ns_);
    answer.assigned_client_id = client_id_;
  }
  const SessionTable::Attached attached =
      parts_.sessions.attach(client_id_, packet.clean_start, connection_, now_ns_);
  session_ = attached.session->number;
  its_session_ = attached.session;
  predecessor_ = attached.taken_from;
  std::uint32_t expiry = packet.clean_start ? 0 : kSessionExpiryMaxSeconds;
  if (version_ == ProtocolVersion::V5) {
    expiry = std::min(packet.session_expiry_seconds, kSessionExpiryMaxSeconds);
  }
  attached.session->expiry_ns = expiry * kSecondNs;
  answer.session_present = attached.was_present;
  answer.tells_session_expiry = expiry != packet.session_expiry_seconds;
  answer.session_expiry_seconds = expiry;
  answer.receive_maximum = kReceiveMaximum;
  answer.topic_alias_maximum = kTopicAliasMaximum;
  answer.maximum_packet_bytes = parts_.packet_max_bytes;
  append_connack(version_, answer, output_);
}

void Conversation::on_publish(std::uint8_t flags, std::string_view body, MessageGroup& group) {
  PublishPacket packet;
  const ReasonCode reason = decode_publish(flags, body, version_, packet);
  if (reason != ReasonCode::Success) return end(reason, words_of(reason));
  if (!resolve_alias(packet) || !within_receive_maximum(packet)) return;
  take_message(packet, group);
}

void Conversation::on_oversized(MessageGroup& group) {
  FixedHeader header;
  static_cast<void>(read_fixed_header(partial_, header));
  PublishPacket packet;
  const ReasonCode reason = decode_publish(
      header.flags, std::string_view(partial_).substr(header.header_bytes), version_, packet);
  if (reason != ReasonCode::Success) return end(reason, words_of(reason));
  if (!within_receive_maximum(packet)) return;
  const IncomingPublish message{connection_,      session_,   packet.topic,    packet.payload,
                                packet.packet_id, packet.qos, packet.duplicate};
  if (packet.qos == 1) ++waiting_qos1_;
  if (packet.qos == 2) {
    its_session_->received.set(packet.packet_id, ReceivedIds::State::Storing);
  }
  group.add_oversized(message, header.remaining_bytes, parts_.limits);
  forget_partial();
}

void Conversation::take_message(const PublishPacket& packet, MessageGroup& group) {
  const IncomingPublish message{
      connection_,      session_,   packet.topic,     packet.payload,
      packet.packet_id, packet.qos, packet.duplicate, principal_.grant ? &principal_ : nullptr,
      &principal_};
  std::uint64_t hash = 0;
  if (packet.qos == 1) {
    ++waiting_qos1_;
    // A session that ends with its connection is never come back to.
    if (its_session_->expiry_ns != 0) hash = content_hash(packet.topic, packet.payload);
    if (packet.duplicate && hash != 0 &&
        its_session_->redelivery.is_redelivery(packet.packet_id, hash)) {
      return group.add_repeat(message);
    }
  } else if (packet.qos == 2) {
    ReceivedIds& received = its_session_->received;
    if (received.state(packet.packet_id) != ReceivedIds::State::Unknown) {
      return group.add_repeat(message);
    }
    received.set(packet.packet_id, ReceivedIds::State::Storing);
  }
  group.add(message, parts_.rules, parts_.limits, parts_.pipeline, hash);
}

bool Conversation::resolve_alias(PublishPacket& packet) {
  if (packet.topic_alias == 0) return true;
  if (packet.topic_alias > kTopicAliasMaximum) {
    end(ReasonCode::TopicAliasInvalid, "topic aliases go up to 16");
    return false;
  }
  if (aliases_.empty()) aliases_.resize(kTopicAliasMaximum);
  std::string& alias = aliases_[packet.topic_alias - 1u];
  if (packet.topic.empty()) {
    if (alias.empty()) end(ReasonCode::ProtocolError, "this topic alias stands for no topic yet");
    packet.topic = alias;
    return !ended_;
  }
  if (packet.topic == alias) return true;
  share_.shrink(alias.size());
  alias = std::string();
  if (!share_.grow(packet.topic.size())) {
    end(ReasonCode::QuotaExceeded, "mqtt.in-flight-limit is reached, try again later");
    return false;
  }
  alias = packet.topic;
  return true;
}

bool Conversation::within_receive_maximum(const PublishPacket& packet) {
  if (packet.qos == 0) return true;
  const ReceivedIds& received = its_session_->received;
  if (packet.qos == 2 && received.state(packet.packet_id) != ReceivedIds::State::Unknown) {
    return true;
  }
  const bool counts_qos1 = version_ == ProtocolVersion::V5;
  if (packet.qos == 1 && !counts_qos1) return true;
  const std::size_t waiting = received.size() + (counts_qos1 ? waiting_qos1_ : 0);
  if (waiting < kReceiveMaximum) return true;
  end(ReasonCode::ReceiveMaximumExceeded, "more than 1024 messages wait for an acknowledgement");
  return false;
}

void Conversation::acknowledge(const GroupMessage& message) {
  if (message.qos == 0) return;
  const bool first = message.qos == 1;
  if (first) --waiting_qos1_;
  if (ended_) return;
  // A PUBREC with a failure is the end of the exchange (4.3.3).
  if (!first && version_ == ProtocolVersion::V5 && message.reason != ReasonCode::Success) {
    its_session_->received.set(message.packet_id, ReceivedIds::State::Unknown);
  }
  append_ack(first ? PacketType::Puback : PacketType::Pubrec, message.packet_id, version_,
             message.reason, wants_texts_ ? message.reason_text : "", client_packet_max_bytes_,
             output_);
}

void Conversation::on_pubrel(std::string_view body) {
  AckPacket packet;
  const ReasonCode reason = decode_ack(body, version_, packet);
  if (reason != ReasonCode::Success) return end(reason, words_of(reason));
  ReceivedIds& received = its_session_->received;
  const ReceivedIds::State state = received.state(packet.packet_id);
  if (state == ReceivedIds::State::Storing) {
    return end(ReasonCode::ProtocolError, "PUBREL before PUBREC");
  }
  received.set(packet.packet_id, ReceivedIds::State::Unknown);
  append_ack(PacketType::Pubcomp, packet.packet_id, version_,
             state == ReceivedIds::State::Stored ? ReasonCode::Success
                                                 : ReasonCode::PacketIdentifierNotFound,
             "", client_packet_max_bytes_, output_);
}

// Nothing is ever delivered from here, and whoever asks for it is told so.
void Conversation::on_subscribe(PacketType type, std::string_view body) {
  SubscribePacket packet;
  const ReasonCode reason = decode_subscribe(type, body, version_, packet);
  if (reason != ReasonCode::Success) return end(reason, words_of(reason));
  if (packet.filters > kFiltersMax) {
    return end(ReasonCode::QuotaExceeded, "more than 1024 topic filters in one packet");
  }
  const bool subscribes = type == PacketType::Subscribe;
  append_suback(subscribes ? PacketType::Suback : PacketType::Unsuback, packet.packet_id, version_,
                subscribes ? ReasonCode::ImplementationSpecific : ReasonCode::NoSubscriptionExisted,
                packet.filters, output_);
}

void Conversation::on_disconnect(std::string_view body) {
  DisconnectPacket packet;
  const ReasonCode reason = decode_disconnect(body, version_, packet);
  if (reason != ReasonCode::Success) return end(reason, words_of(reason));
  Session& session = *its_session_;
  if (packet.changes_expiry) {
    // A session that was to end with its connection cannot be kept after all (3.14.2.2.2).
    if (session.expiry_ns == 0 && packet.session_expiry_seconds != 0) {
      return end(ReasonCode::ProtocolError, "a session cannot be kept after all");
    }
    session.expiry_ns =
        std::min(packet.session_expiry_seconds, kSessionExpiryMaxSeconds) * kSecondNs;
  }
  ended_ = true;
}

}  // namespace edgecase::mqtt
