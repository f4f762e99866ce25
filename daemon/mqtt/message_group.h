// Messages that are stored together, with one sync: what each brings (MessageGroup), and counters
// of what became of them. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "mqtt/packet_codec.h"
#include "mqtt/payload_decoder.h"
#include "mqtt/rejected_messages.h"
#include "mqtt/topic_names.h"
#include "mqtt/topic_rule.h"

namespace edgecase::mqtt {

// Counters of what became of the messages of one way in.
struct SinkCounters {
  std::uint64_t messages = 0;        // all that came and were stored, kept or passed over
  std::uint64_t readings = 0;        // durable
  std::uint64_t rejected = 0;        // kept in `_rejected`
  std::uint64_t rejected_lost = 0;   // could not be kept there: a limit of the catalog
  std::uint64_t ignored = 0;         // nothing to store, on purpose
  std::uint64_t skipped_values = 0;  // JSON nulls and the like
  // Messages whose time gave way to that of their arrival: no clock says it, or it cannot be read;
  // the series has another value of that time; the device was last heard before the newest of the
  // series.
  std::uint64_t times_unbelievable = 0;
  std::uint64_t times_repeated = 0;
  std::uint64_t times_stale = 0;
  std::uint64_t redelivered = 0;  // with the DUP flag
  std::uint64_t repeats_dropped =
      0;                           // redelivered, retained or copies: recognised as stored before
  std::uint64_t withheld = 0;      // of the broker's client: acknowledgements that were dropped
  std::uint64_t lost_at_qos0 = 0;  // the same: came while it stopped
  std::int64_t waiting_since_ns = 0;  // boot clock; 0: no message waits for the drive
  std::string waiting_for;            // why, while it waits

  // Adds what both ways in tell to an object of the status, which keeps its members' order.
  template <typename Json>
  void add_to(Json& json) const {
    if (!waiting_for.empty()) json["waiting_for"] = waiting_for;
    json["messages"] = messages;
    json["readings"] = readings;
    json["rejected"] = rejected;
    json["rejected_lost"] = rejected_lost;
    json["ignored"] = ignored;
    json["skipped_values"] = skipped_values;
    json["times_unbelievable"] = times_unbelievable;
    json["times_repeated"] = times_repeated;
    json["times_stale"] = times_stale;
    json["redelivered"] = redelivered;
    json["repeats_dropped"] = repeats_dropped;
  }
};

// What waits for a group to be durable.
enum class Purpose : std::uint8_t {
  Publish,  // a message
  Release,  // PUBREL
  Connect,  // what its client's last session left behind goes first
  Ended,    // a session, whose key is `topic`: nobody waits for it
  Record,   // a change of a session's record; nobody does either
};

// Views lie in the group's batch.
struct GroupMessage {
  std::uint64_t connection = 0;
  std::uint64_t session = 0;
  std::uint64_t content_hash = 0;  // to be remembered once it is stored; 0: not
  std::string_view topic;
  std::string_view payload;
  std::string_view reason_text;  // why it was kept as rejected
  std::string_view left_out;     // which part of it has no readings; it is kept as well
  std::string_view publisher;    // a principal's name
  std::string_view token;        // its id
  std::uint32_t first_reading = 0;
  std::uint32_t readings = 0;
  std::int64_t arrival_ns = 0;  // as many nanoseconds from here on are its own as it has readings
  std::uint32_t dated = 0;      // readings that got one of these
  std::int64_t owed_ns = 0;     // once it is stored: how long its device owes readings
  std::uint16_t packet_id = 0;
  std::uint8_t qos = 0;
  ReasonCode reason = ReasonCode::Success;
  Purpose purpose = Purpose::Publish;
};

struct IncomingPublish {
  std::uint64_t connection = 0;
  std::uint64_t session = 0;
  std::string_view topic;
  std::string_view payload;
  std::uint16_t packet_id = 0;
  std::uint8_t qos = 0;
  bool duplicate = false;
  const auth::Principal* principal = nullptr;  // what its readings are checked against; null: not
  const auth::Principal* publisher = nullptr;  // who is said to have brought it; null: nobody
  bool retained = false;                       // a broker kept it, and says nothing of since when
};

// The largest packet taken: a payload of `limits.message_limit`, the longest topic, properties; but
// no more than `budget_bytes`. Behind the fixed header.
std::uint32_t packet_max_bytes(const config::LimitSettings& limits, std::uint64_t budget_bytes);
// What is kept of a larger message: enough to say which one it was.
inline constexpr std::uint32_t kOversizedHeadBytes =
    2 + kTopicMaxBytes + 2 + static_cast<std::uint32_t>(kRejectedPayloadMaxBytes);

class MessageGroup {
 public:
  // At these nothing more is read until the committer has taken the group. What was received by
  // then is still added.
  static constexpr std::size_t kMessagesMax = 16'384;
  static constexpr std::size_t kBytesMax = 2u << 20;

  bool full() const { return messages_.size() >= kMessagesMax || bytes_ >= kBytesMax; }
  bool empty() const { return messages_.empty(); }

  // Decodes it by the rules. Readings without a time, or with one that no clock says, get that of
  // their arrival. `remember_hash` is noted where there is something to store.
  DecodeResult add(const IncomingPublish& message, const std::vector<TopicRule>& rules,
                   const config::LimitSettings& limits, ingest::IngestPipeline& pipeline,
                   std::uint64_t remember_hash, DeviceNames* names = nullptr);
  // What is only acknowledged: it was stored before.
  void add_repeat(const IncomingPublish& message);
  // Is kept as rejected for that reason.
  void add_rejected(const IncomingPublish& message, ReasonCode reason, std::string_view why);
  // Is kept as rejected: its packet has so many bytes, over what packet_max_bytes() allows, and its
  // payload is the beginning.
  void add_oversized(const IncomingPublish& message, std::uint32_t packet_bytes,
                     const config::LimitSettings& limits);

  // What else waits for this group, and is no message of a publisher.
  GroupMessage& add_other(Purpose purpose, std::uint64_t connection, std::uint64_t session);
  // A record that is durable with the message added last, copied. Where that is kept as rejected
  // the record is written behind it, or not at all.
  enum class IfRejected : std::uint8_t { Kept, Dropped };
  void add_record(const ingest::RecordChange& record, IfRejected if_rejected);
  // Records of messages that are stored, or of those that were rejected, in order.
  std::vector<ingest::RecordChange> stored_records() const;
  std::vector<ingest::RecordChange> rejected_records() const;

  std::vector<GroupMessage>& messages() { return messages_; }
  wire::ReadingBatch& batch() { return batch_; }
  // Readings with a time of their device's, which DeviceTimes::settle() is to decide.
  std::vector<ingest::DeviceTimes::Asked> unsettled();
  void note_replaced(const ingest::DeviceTimes::Replaced& replaced) {
    counters_.times_repeated += replaced.repeated;
    counters_.times_stale += replaced.stale;
  }
  // Counts all but readings and what is rejected, which show when they are stored.
  const SinkCounters& counters() const { return counters_; }
  void clear();

 private:
  struct MessageRecord {
    ingest::RecordChange change;
    std::size_t message = 0;
    IfRejected if_rejected = IfRejected::Kept;
  };
  bool is_of_rejected(const MessageRecord& record) const {
    return messages_[record.message].reason != ReasonCode::Success &&
           messages_[record.message].purpose == Purpose::Publish;
  }

  GroupMessage& append(const IncomingPublish& message);
  Status name_device(const DeviceNames::Named& named, const GroupMessage& added);
  void spread_records(const GroupMessage& added);
  void date(GroupMessage& added, bool is_unreadable, ingest::IngestPipeline& pipeline);
  bool check_scope(const auth::Principal& principal, ingest::IngestPipeline& pipeline,
                   GroupMessage& added);

  wire::ReadingBatch batch_;
  std::vector<GroupMessage> messages_;
  std::vector<MessageRecord> records_;  // in the order of their messages
  std::vector<std::size_t> ended_;      // messages of that purpose
  SinkCounters counters_;
  std::size_t bytes_ = 0;
  bool has_unsettled_ = false;
};

}  // namespace edgecase::mqtt
