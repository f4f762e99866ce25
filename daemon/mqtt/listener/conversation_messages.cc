// Messages of a conversation, from PUBLISH to the end of their exchange.
#include "mqtt/listener/conversation.h"

namespace edgecase::mqtt {

void note_stored(SessionTable& sessions, const GroupMessage& message) {
  if (message.purpose == Purpose::Ended) return sessions.note_gone(message.topic);
  if (message.purpose != Purpose::Publish) return;
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

void add_ended_sessions(SessionTable& sessions, const SessionRecords& records,
                        MessageGroup& group) {
  using IfRejected = MessageGroup::IfRejected;
  for (const SessionTable::Ended& ended : sessions.take_ended()) {
    GroupMessage& message = group.add_other(Purpose::Ended, 0, 0);
    message.topic = group.batch().keep(ended.key);
    if (ended.with_session) group.add_record(records.remove(ended.key), IfRejected::Kept);
    for (const std::uint16_t packet_id : ended.packet_ids) {
      group.add_record(records.remove(message_key(ended.key, packet_id)), IfRejected::Kept);
    }
  }
}

// Nobody waits for them to be acknowledged. A client that may not write any more does not by a
// will.
std::size_t add_due_wills(const ConversationParts& parts, MessageGroup& group) {
  const auto wills = parts.sessions.take_due_wills();
  for (const std::unique_ptr<Will>& will : wills) {
    const auth::Principal& principal = will->principal;
    const IncomingPublish message{0,         0, will->topic, will->payload,
                                  0,         0, false,       principal.grant ? &principal : nullptr,
                                  &principal};
    if (parts.authenticator != nullptr && !parts.authenticator->is_current(principal)) {
      group.add_rejected(message, ReasonCode::NotAuthorized,
                         "a will whose client's token has ended, or that needs one by now");
    } else {
      group.add(message, parts.rules, parts.limits, parts.pipeline, 0, parts.names);
    }
  }
  return wills.size();
}

void Conversation::on_publish(std::uint8_t flags, std::string_view body, MessageGroup& group) {
  PublishPacket packet;
  const ReasonCode reason = decode_publish(flags, body, version_, packet);
  if (reason != ReasonCode::Success) return end_for(reason);
  if (!resolve_alias(packet) || !within_receive_maximum(packet)) return;
  take_message(packet, group);
}

void Conversation::on_oversized(MessageGroup& group) {
  FixedHeader header;
  static_cast<void>(read_fixed_header(partial_, header));
  PublishPacket packet;
  const ReasonCode reason = decode_publish(
      header.flags, std::string_view(partial_).substr(header.header_bytes), version_, packet);
  if (reason != ReasonCode::Success) return end_for(reason);
  if (!within_receive_maximum(packet)) return;
  const IncomingPublish message{connection_,      session_,   packet.topic,    packet.payload,
                                packet.packet_id, packet.qos, packet.duplicate};
  if (packet.qos == 1) ++waiting_qos1_;
  std::uint64_t fingerprint = 0;
  if (packet.qos == 2) {
    fingerprint = parts_.records.fingerprint(packet.topic, packet.payload);
    if (!begin_receiving(packet.packet_id, fingerprint, group)) {
      forget_partial();
      return group.add_repeat(message);
    }
  }
  group.add_oversized(message, header.remaining_bytes, parts_.limits);
  if (packet.qos == 2) record_message(packet.packet_id, fingerprint, group);
  forget_partial();
}

void Conversation::take_message(const PublishPacket& packet, MessageGroup& group) {
  const IncomingPublish message{
      connection_,      session_,   packet.topic,     packet.payload,
      packet.packet_id, packet.qos, packet.duplicate, principal_.grant ? &principal_ : nullptr,
      &principal_};
  std::uint64_t hash = 0;
  std::uint64_t fingerprint = 0;
  if (packet.qos == 1) {
    ++waiting_qos1_;
    // A session that ends with its connection is never come back to.
    if (its_session_->expiry_ns != 0) hash = content_hash(packet.topic, packet.payload);
    if (packet.duplicate && hash != 0 &&
        its_session_->redelivery.is_redelivery(packet.packet_id, hash)) {
      return group.add_repeat(message);
    }
  } else if (packet.qos == 2) {
    fingerprint = parts_.records.fingerprint(packet.topic, packet.payload);
    if (!begin_receiving(packet.packet_id, fingerprint, group)) return group.add_repeat(message);
  }
  group.add(message, parts_.rules, parts_.limits, parts_.pipeline, hash, parts_.names);
  if (packet.qos == 2) record_message(packet.packet_id, fingerprint, group);
  if (!std::exchange(has_brought_, true)) check_rate(group);
}

// A client that is held back may not go on through another connection: its first message is stored,
// for it is in the group, but that is all.
void Conversation::check_rate(MessageGroup& group) {
  const GroupMessage& first = group.messages().back();
  if (first.readings == 0) return;
  const wire::Reading& reading = group.batch().readings[first.first_reading];
  const std::int64_t owed_ns = parts_.pipeline.owed_ns(reading);
  if (owed_ns == 0) return;
  end(ReasonCode::QuotaExceeded, "its device is over limits.device-rate, try again in " +
                                     std::to_string(ingest::whole_seconds(owed_ns)) + " s");
}

// False: the message was received before, and not released since. Another one under the same id is
// of a client that has lost its own state: passing over it would lose it.
bool Conversation::begin_receiving(std::uint16_t packet_id, std::uint64_t fingerprint,
                                   MessageGroup& group) {
  Session& session = *its_session_;
  const ReceivedIds::Entry known = session.received.get(packet_id);
  const bool is_known = known.state != ReceivedIds::State::Unknown;
  if (is_known && known.fingerprint == fingerprint) return false;
  if (session.expiry_ns != 0 && !session.recorded) record_session(group);
  if (is_known && session.recorded) {
    group.add_other(Purpose::Record, connection_, session_);
    group.add_record(parts_.records.remove(message_key(session.key, packet_id)),
                     MessageGroup::IfRejected::Kept);
  }
  session.received.begin(packet_id, fingerprint);
  return true;
}

// With the message that was added last.
void Conversation::record_message(std::uint16_t packet_id, std::uint64_t fingerprint,
                                  MessageGroup& group) {
  const Session& session = *its_session_;
  if (session.expiry_ns == 0) return;
  // A PUBREC with a failure is the end of the exchange (4.3.3).
  const auto if_rejected = version_ == ProtocolVersion::V5 ? MessageGroup::IfRejected::Dropped
                                                           : MessageGroup::IfRejected::Kept;
  const std::string key = message_key(session.key, packet_id);
  const std::string value = message_value(fingerprint);
  group.add_record(parts_.records.put(key, value), if_rejected);
}

void Conversation::record_session(MessageGroup& group) {
  Session& session = *its_session_;
  session.recorded = true;
  group.add_other(Purpose::Record, connection_, session_);
  const std::string value =
      session_value(static_cast<std::uint32_t>(session.expiry_ns / 1'000'000'000));
  group.add_record(parts_.records.put(session.key, value), MessageGroup::IfRejected::Kept);
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
  switch (message.purpose) {
    case Purpose::Publish: return acknowledge_publish(message);
    case Purpose::Release:
      if (!ended_) complete_release(message.packet_id, message.reason);
      return;
    case Purpose::Connect:
      starting_ = false;
      if (!ended_) output_ = std::exchange(connack_, {}) + std::exchange(held_, {});
      return;
    case Purpose::Ended:
    case Purpose::Record: return;
  }
}

void Conversation::acknowledge_publish(const GroupMessage& message) {
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
             answers());
}

// What is recorded is released on the drive first: else an id that is given to another message
// could be taken for the old one after a restart.
void Conversation::on_pubrel(std::string_view body, MessageGroup& group) {
  AckPacket packet;
  const ReasonCode reason = decode_ack(body, version_, packet);
  if (reason != ReasonCode::Success) return end_for(reason);
  ReceivedIds& received = its_session_->received;
  const ReceivedIds::State state = received.state(packet.packet_id);
  if (state == ReceivedIds::State::Storing) {
    return end(ReasonCode::ProtocolError, "PUBREL before PUBREC");
  }
  received.set(packet.packet_id, ReceivedIds::State::Unknown);
  const ReasonCode answer = state == ReceivedIds::State::Stored
                                ? ReasonCode::Success
                                : ReasonCode::PacketIdentifierNotFound;
  if (!its_session_->recorded) return complete_release(packet.packet_id, answer);
  GroupMessage& release = group.add_other(Purpose::Release, connection_, session_);
  release.packet_id = packet.packet_id;
  release.reason = answer;
  if (state == ReceivedIds::State::Unknown) return;
  group.add_record(parts_.records.remove(message_key(its_session_->key, packet.packet_id)),
                   MessageGroup::IfRejected::Kept);
}

void Conversation::complete_release(std::uint16_t packet_id, ReasonCode reason) {
  append_ack(PacketType::Pubcomp, packet_id, version_, reason, "", client_packet_max_bytes_,
             answers());
}

}  // namespace edgecase::mqtt
