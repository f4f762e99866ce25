#include "mqtt/listener/conversation.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "mqtt/message_group.h"
#include "net/channel.h"

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
  append_disconnect(version_, reason, wants_texts_ ? why : "", client_packet_max_bytes_, answers());
}

void Conversation::end_for(ReasonCode reason) {
  end(reason, words_of(reason));
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
    end_for(ReasonCode::MalformedPacket);
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
    end_for(ReasonCode::MalformedPacket);
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
  net::drop_front(partial_, partial_.size());
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
      return on_connect(body, group);
    case PacketType::Publish: return on_publish(header.flags, body, group);
    case PacketType::Pubrel: return on_pubrel(body, group);
    case PacketType::Subscribe:
    case PacketType::Unsubscribe: return on_subscribe(header.type, body);
    case PacketType::Pingreq:
      if (!body.empty()) break;
      return append_pingresp(answers());
    case PacketType::Disconnect: return on_disconnect(body, group);
    default:
      return end(ReasonCode::ProtocolError, "a packet that only servers send, or that is unasked");
  }
  end_for(ReasonCode::MalformedPacket);
}

void Conversation::refuse_connect(ProtocolVersion version, ReasonCode reason,
                                  std::string_view why) {
  ConnackPacket answer;
  answer.reason = reason;
  answer.reason_text = why;
  append_connack(version, answer, output_);
  end(reason, why);
}

void Conversation::on_connect(std::string_view body, MessageGroup& group) {
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
  if (reason == ReasonCode::Success && packet.has_will &&
      !parts_.sessions.has_room_for(sizeof(Will) + packet.will.topic.size() +
                                    packet.will.payload.size())) {
    reason = ReasonCode::ServerBusy;
    why = "the wills of all clients take 4 MiB, try again without one";
  }
  if (reason != ReasonCode::Success) return refuse_connect(packet.version, reason, why);
  welcome(packet, group);
}

void Conversation::note_denied(ReasonCode reason) {
  audit::AuditLog* const audit = parts_.pipeline.audit();
  if (audit == nullptr) return;
  if (reason == ReasonCode::ConnectionRateExceeded) return audit->note_throttled();
  audit->note_denied("mqtt.connect", principal_, "", "");
}

// The password is a token and the username its id, or a token stands for the certificate. Other
// credentials mean nothing to who needs none.
ReasonCode Conversation::log_in(const ConnectPacket& packet, std::string& why) {
  if (parts_.authenticator == nullptr) return ReasonCode::Success;
  auth::Authenticator& authenticator = *parts_.authenticator;
  const bool is_token = auth::looks_like_token(packet.password);
  const bool has_certificate = !is_token && !principal_.certificate.empty();
  if (!is_token && !has_certificate && authenticator.is_current(principal_))
    return ReasonCode::Success;
  auto shown = authenticator.authenticate(
      principal_, has_certificate ? std::string_view() : std::string_view(packet.password));
  if (has_certificate && shown.ok() && !shown->grant) return ReasonCode::Success;
  if (shown.ok() && (has_certificate || shown->grant->token_id == packet.username)) {
    principal_ = std::move(shown).value();
    const auth::Scopes& scopes = principal_.grant->scopes;
    if (scopes.admin || !scopes.write.empty()) return ReasonCode::Success;
    why = "token " + principal_.grant->token_id + " may not write anything";
    return ReasonCode::NotAuthorized;
  }
  why = shown.ok() ? "the username is not the token's id" : shown.status().message();
  if (!shown.ok() && shown.status().code() == StatusCode::Busy) {
    return ReasonCode::ConnectionRateExceeded;
  }
  return packet.password.empty() ? ReasonCode::NotAuthorized : ReasonCode::BadUserNameOrPassword;
}

// The answer waits until nothing is left of an earlier session of this client, and until the drive
// knows how long this one lives.
void Conversation::welcome(const ConnectPacket& packet, MessageGroup& group) {
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
  const SessionTable::Attached attached = parts_.sessions.attach(
      parts_.records.key_of(client_id_), packet.clean_start, connection_, now_ns_);
  add_ended_sessions(parts_.sessions, parts_.records, group);
  session_ = attached.session->number;
  its_session_ = attached.session;
  add_due_wills(parts_, group);
  keep_will(packet);
  predecessor_ = attached.taken_from;
  std::uint32_t expiry = packet.clean_start ? 0 : kSessionExpiryMaxSeconds;
  if (version_ == ProtocolVersion::V5) {
    expiry = std::min(packet.session_expiry_seconds, kSessionExpiryMaxSeconds);
  }
  const bool changes_record =
      its_session_->recorded && its_session_->expiry_ns != expiry * kSecondNs;
  its_session_->expiry_ns = expiry * kSecondNs;
  if (changes_record) record_session(group);
  starting_ = changes_record || parts_.sessions.is_ending(its_session_->key);
  if (starting_) group.add_other(Purpose::Connect, connection_, session_);
  answer.session_present = attached.was_present;
  answer.tells_session_expiry = expiry != packet.session_expiry_seconds;
  answer.session_expiry_seconds = expiry;
  answer.receive_maximum = kReceiveMaximum;
  answer.topic_alias_maximum = kTopicAliasMaximum;
  answer.maximum_packet_bytes = parts_.packet_max_bytes;
  append_connack(version_, answer, starting_ ? connack_ : output_);
}

void Conversation::keep_will(const ConnectPacket& packet) {
  if (!packet.has_will) return;
  auto will = std::make_unique<Will>();
  will->topic = packet.will.topic;
  will->payload = packet.will.payload;
  will->delay_ns = packet.will.delay_seconds * kSecondNs;
  will->principal = principal_;
  parts_.sessions.set_will(*its_session_, std::move(will));
}

// Nothing is ever delivered from here, and whoever asks for it is told so; or, for libraries that
// close otherwise, it is told yes.
void Conversation::on_subscribe(PacketType type, std::string_view body) {
  SubscribePacket packet;
  const ReasonCode reason = decode_subscribe(type, body, version_, packet);
  if (reason != ReasonCode::Success) return end_for(reason);
  if (packet.filters > kFiltersMax) {
    return end(ReasonCode::QuotaExceeded, "more than 1024 topic filters in one packet");
  }
  const bool subscribes = type == PacketType::Subscribe;
  if (subscribes && parts_.grants_subscriptions) {
    if (parts_.logger != nullptr) {
      parts_.logger->log_keyed(observe::LogLevel::Notice, "mqtt", "subscription granted",
                               "client \"" + client_id_ +
                                   "\" subscribes and is told yes, since mqtt.subscriptions = "
                                   "\"grant\": it will never get a message");
    }
    return append_granted(packet.packet_id, version_, packet.qos, answers());
  }
  append_suback(subscribes ? PacketType::Suback : PacketType::Unsuback, packet.packet_id, version_,
                subscribes ? ReasonCode::ImplementationSpecific : ReasonCode::NoSubscriptionExisted,
                packet.filters, answers());
}

void Conversation::on_disconnect(std::string_view body, MessageGroup& group) {
  DisconnectPacket packet;
  const ReasonCode reason = decode_disconnect(body, version_, packet);
  if (reason != ReasonCode::Success) return end_for(reason);
  Session& session = *its_session_;
  if (packet.changes_expiry) {
    // A session that was to end with its connection cannot be kept after all (3.14.2.2.2).
    if (session.expiry_ns == 0 && packet.session_expiry_seconds != 0) {
      return end(ReasonCode::ProtocolError, "a session cannot be kept after all");
    }
    session.expiry_ns =
        std::min(packet.session_expiry_seconds, kSessionExpiryMaxSeconds) * kSecondNs;
    if (session.recorded) record_session(group);
  }
  // Any other reason, 0x04 too, leaves the will to be published (3.1.2.5).
  if (packet.reason == 0) parts_.sessions.drop_will(session);
  ended_ = true;
}

}  // namespace edgecase::mqtt
