// The server's side of one MQTT connection, without its socket: bytes in, messages into a group,
// answers out. MQTT 3.1.1 and 5; which limits a client meets, and with which reason, is in
// daemon/mqtt/DESIGN.md. Owned by the listener's poller.
//
// Bytes of a packet that is not whole yet are kept, and counted in the budget that all connections
// share. What breaks the protocol ends the conversation: output() says why, where the client's
// version has words for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "auth/token_store.h"
#include "config/settings.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/listener/session_table.h"
#include "mqtt/message_group.h"
#include "mqtt/packet_codec.h"
#include "net/budgets.h"

namespace edgecase::mqtt {

// What all conversations share; borrowed.
struct ConversationParts {
  const std::vector<TopicRule>& rules;
  const config::LimitSettings& limits;
  ingest::IngestPipeline& pipeline;
  SessionTable& sessions;
  const SessionRecords& records;
  net::ByteBudget& budget;
  std::uint32_t packet_max_bytes;                // behind the fixed header; see packet_max_bytes()
  auth::Authenticator* authenticator = nullptr;  // null: whoever connects may publish anything
  bool grants_subscriptions = false;             // though nothing is ever delivered
  observe::Logger* logger = nullptr;             // may be null
  DeviceNames* names = nullptr;                  // null: names are as topics say
};

// Has wills that are due stored with `group`, as messages of who left them. Says how many.
std::size_t add_due_wills(const ConversationParts& parts, MessageGroup& group);

// A message is stored, or kept as rejected, or whatever else waited for its group is done: its
// session remembers that, whether its connection is still there or not.
void note_stored(SessionTable& sessions, const GroupMessage& message);
// Has the records of sessions that have ended removed with `group`.
void add_ended_sessions(SessionTable& sessions, const SessionRecords& records, MessageGroup& group);

class Conversation {
 public:
  static constexpr std::uint32_t kConnectMaxBytes = 64u << 10;
  static constexpr std::size_t kClientIdMaxBytes = 256;
  // Messages of QoS 1 and 2 that wait for the end of their exchange, and MQTT 5 is told so; of
  // clients of 3.1.1 those of QoS 2.
  static constexpr std::uint16_t kReceiveMaximum = ReceivedIds::kMax;
  static constexpr std::uint16_t kTopicAliasMaximum = 16;
  static constexpr std::size_t kFiltersMax = 1'024;  // of one SUBSCRIBE

  enum class Standing : std::uint8_t { Welcome, TurnedAway, AddressTurnedAway };

  // `connection` is a number never given twice. A client that is turned away gets that for an
  // answer. `peer`: as net::principal_of() says.
  Conversation(const ConversationParts& parts, std::uint64_t connection, Standing standing,
               auth::Principal peer = {auth::PrincipalKind::Loopback, "127.0.0.1"});
  ~Conversation() { leave(now_ns_); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // What the client's certificate calls it, before it sends CONNECT.
  void show_certificate(std::vector<std::string> names) {
    principal_.certificate = std::move(names);
  }
  // Takes all of `bytes`. What they complete is answered, or added to `group`. False: it has ended;
  // close once output() is sent.
  bool receive(std::string_view bytes, MessageGroup& group, std::int64_t now_ns);
  // A message of this connection is stored, or kept as rejected, or what else it had wait for a
  // group is durable.
  void acknowledge(const GroupMessage& message);
  // The connection is gone: leaves the session, which may outlive it from now on.
  void leave(std::int64_t now_ns);
  // Ends it from this side.
  void end(ReasonCode reason, std::string_view why);

  std::string& output() { return output_; }
  // The answer to its CONNECT waits for the drive: read nothing more, or what it asks is kept.
  bool is_starting() const { return starting_; }
  bool is_connected() const { return session_ != 0; }
  bool has_ended() const { return ended_; }
  // After a CONNECT: the connection whose session it took over; 0: none. Asking clears it.
  std::uint64_t take_predecessor();
  // When the packet that is not whole yet began; 0: none.
  std::int64_t partial_since_ns() const { return partial_since_ns_; }
  // It was not read for so long.
  void excuse(std::int64_t pause_ns) {
    if (partial_since_ns_ != 0) partial_since_ns_ += pause_ns;
  }
  std::size_t partial_bytes() const { return partial_.size() + skipped_bytes_; }
  std::int64_t keep_alive_ns() const { return keep_alive_ns_; }  // 0: none
  std::uint64_t session() const { return session_; }
  const std::string& client_id() const { return client_id_; }
  // Why it ended, when it was not the client's wish; empty otherwise.
  const std::string& failure() const { return failure_; }

 private:
  void end_for(ReasonCode reason);
  std::string_view take_whole(std::string_view bytes, MessageGroup& group);
  std::string_view take_partial(std::string_view bytes, MessageGroup& group, std::int64_t now_ns);
  std::string_view skip(std::string_view bytes, MessageGroup& group);
  bool admit(const FixedHeader& header);
  void forget_partial();
  void check_rate(MessageGroup& group);
  bool grow_partial(std::size_t bytes);

  void handle(const FixedHeader& header, std::string_view body, MessageGroup& group);
  void on_connect(std::string_view body, MessageGroup& group);
  void note_denied(ReasonCode reason);
  ReasonCode log_in(const ConnectPacket& packet, std::string& why);
  void welcome(const ConnectPacket& packet, MessageGroup& group);
  void keep_will(const ConnectPacket& packet);
  void refuse_connect(ProtocolVersion version, ReasonCode reason, std::string_view why);
  void on_publish(std::uint8_t flags, std::string_view body, MessageGroup& group);
  void on_oversized(MessageGroup& group);
  void take_message(const PublishPacket& packet, MessageGroup& group);
  bool resolve_alias(PublishPacket& packet);
  bool within_receive_maximum(const PublishPacket& packet);
  bool begin_receiving(std::uint16_t packet_id, std::uint64_t fingerprint, MessageGroup& group);
  void record_message(std::uint16_t packet_id, std::uint64_t fingerprint, MessageGroup& group);
  void record_session(MessageGroup& group);
  void acknowledge_publish(const GroupMessage& message);
  void on_pubrel(std::string_view body, MessageGroup& group);
  void complete_release(std::uint16_t packet_id, ReasonCode reason);
  void on_subscribe(PacketType type, std::string_view body);
  void on_disconnect(std::string_view body, MessageGroup& group);
  std::string& answers() { return starting_ ? held_ : output_; }

  const ConversationParts& parts_;
  const std::uint64_t connection_;
  const Standing standing_;
  auth::Principal principal_;  // the peer; from CONNECT on, who it has shown to be
  ProtocolVersion version_ = ProtocolVersion::V311;
  bool ended_ = false;
  bool has_brought_ = false;        // a message
  bool wants_texts_ = true;         // MQTT 5: reasons in words
  std::uint64_t session_ = 0;       // its number; 0 before CONNECT
  Session* its_session_ = nullptr;  // until it has ended: then another connection may have it
  std::uint64_t predecessor_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t keep_alive_ns_ = 0;
  std::uint32_t client_packet_max_bytes_ = 0;
  std::uint32_t waiting_qos1_ = 0;
  std::string client_id_;
  std::string failure_;
  std::string output_;
  bool starting_ = false;
  std::string connack_;  // while it starts, with the answers behind it
  std::string held_;

  // The packet that is not whole yet: so much is wanted of it before it is looked at again.
  std::string partial_;
  std::size_t wanted_bytes_ = 0;
  std::int64_t partial_since_ns_ = 0;
  net::BudgetShare share_;
  // A PUBLISH over the limit (3.1.1) has its beginning kept, the rest passed over.
  std::uint32_t skip_bytes_ = 0;
  std::size_t skipped_bytes_ = 0;

  std::vector<std::string> aliases_;  // by number, from 1
};

}  // namespace edgecase::mqtt
