// Messages on their way into the store: those that are stored together, with one sync
// (MessageGroup), the thread that stores them (MessageCommitter), and those that no rule took, kept
// for people (RejectedMessages).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/packet_codec.h"
#include "mqtt/topic_names.h"
#include "mqtt/topic_rule.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

// Messages that no rule took or no decoder understood, kept for people to look at: in the namespace
// `_rejected`, series mqtt/message, one JSON text a message, at the time it arrived:
//
//   {"topic":"…","reason":"…","payload":"…"}           "payload_base64" when it is not UTF-8;
//                                                      "payload_bytes":n when it was cut
//
// At most limits.rejected_messages are kept; the oldest goes when a new one comes. Thread-safe: a
// lock orders those who keep and is held while they wait for the drive.
inline constexpr std::string_view kRejectedDevice = "mqtt";
inline constexpr std::string_view kRejectedSensor = "message";
inline constexpr std::size_t kRejectedPayloadMaxBytes = 4'096;  // of each payload, the rest is cut

struct RejectedMessage {
  std::string_view topic;
  std::string_view reason;
  std::string_view payload;
};

class RejectedMessages {
 public:
  // Finds what is already kept. `limit` 0 keeps nothing. Errors: the engine's.
  static Result<std::unique_ptr<RejectedMessages>> open(Engine& engine, catalog::Catalog& catalog,
                                                        ingest::IngestPipeline& pipeline,
                                                        std::uint64_t limit);

  // Durable on return, with one sync: all, or the last of them where they are more than the limit,
  // and `records`. Errors: the pipeline's; then none is kept, and no record written.
  Status keep(std::span<const RejectedMessage> messages,
              std::span<const ingest::RecordChange> records = {}) EC_EXCLUDES(mutex_);

 private:
  RejectedMessages(catalog::Catalog& catalog, ingest::IngestPipeline& pipeline, std::uint64_t limit)
      : catalog_(catalog), pipeline_(pipeline), limit_(limit) {}
  Status load(Engine& engine) EC_EXCLUDES(mutex_);
  Status make_room(std::size_t count) EC_REQUIRES(mutex_);

  catalog::Catalog& catalog_;
  ingest::IngestPipeline& pipeline_;
  const std::uint64_t limit_;
  Mutex mutex_;
  std::deque<std::int64_t> times_ns_ EC_GUARDED_BY(mutex_);  // of what is kept, in order of arrival
};

// The JSON text above.
std::string rejected_message_json(std::string_view topic, std::string_view reason,
                                  std::string_view payload);

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

// What happens when a message is stored whose device is over limits.device-rate: whoever brought it
// is told, or nothing is handed back until the device owes nothing, for all of them came one way.
enum class WhileOwed : std::uint8_t { Tell, Hold };

// References are borrowed for the committer's life; `logger` may be null.
struct CommitterParts {
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  observe::Logger* logger = nullptr;
  const char* thread_name = "mqtt-commit";
  auth::Principal source;  // who brings what no author is named of
  WhileOwed while_owed = WhileOwed::Tell;
};

// Whether the same batch can succeed later: a drive, not the batch or a limit of the catalog.
bool may_succeed_later(const Status& status);

// Stores groups of messages, one after another, in a thread of its own, and hands them back to be
// acknowledged. While one is stored the next one fills.
//
// While the drive refuses (full, failing, missing, WAL limit) the group is tried again, at the
// latest a second apart, until it is stored: nothing is acknowledged meanwhile, and once the next
// group is full nothing more should be read. A message that can never be stored, or that a limit of
// the catalog refuses, is found without writing anything, and kept as rejected: the rest is still
// stored with one sync, however many such messages a client mixes in. A message with several
// readings has those stored that can be, and is kept as rejected for the others.
//
// take() and offer() are for the one thread that brings messages; the rest is thread-safe.
class MessageCommitter {
 public:
  // `wake` is called, from the committer's thread, when a group is done, and when the one that was
  // full has been taken.
  MessageCommitter(CommitterParts parts, std::function<void()> wake);
  ~MessageCommitter();
  MessageCommitter(const MessageCommitter&) = delete;
  MessageCommitter& operator=(const MessageCommitter&) = delete;

  // The group that fills, out of the committer's reach until it is offered again.
  std::unique_ptr<MessageGroup> take() EC_EXCLUDES(mutex_);
  void offer(std::unique_ptr<MessageGroup> group) EC_EXCLUDES(mutex_);
  // Groups that are stored, in the order they were. Hand them back to be used again.
  std::vector<std::unique_ptr<MessageGroup>> take_done() EC_EXCLUDES(mutex_);
  void reuse(std::unique_ptr<MessageGroup> group) EC_EXCLUDES(mutex_);

  // Tries what is there once more and ends; what the drive refuses is not acknowledged. Idempotent.
  void stop() EC_EXCLUDES(mutex_);

  SinkCounters counters() const EC_EXCLUDES(mutex_);

 private:
  void run() EC_EXCLUDES(mutex_);
  bool commit(MessageGroup& group) EC_EXCLUDES(mutex_);
  bool store(MessageGroup& group);
  void sift(MessageGroup& group);
  static void reject(MessageGroup& group, GroupMessage& message, const Status& status);
  bool keep_rejected(MessageGroup& group) EC_EXCLUDES(mutex_);
  Status hand_over(const wire::ReadingBatch& batch, std::span<const ingest::Author> authors,
                   std::span<const ingest::RecordChange> records);
  template <typename Attempt>
  Status persist(Attempt attempt);
  void note_owed(MessageGroup& group) EC_EXCLUDES(mutex_);
  bool wait(const std::string& why, std::int64_t since_ns, std::int64_t pause_ns)
      EC_EXCLUDES(mutex_);
  bool wait_before_retry(const Status& status, std::int64_t since_ns, std::int64_t pause_ns);

  const CommitterParts parts_;
  const std::function<void()> wake_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool full_ EC_GUARDED_BY(mutex_) =
      false;  // whoever brings messages waits for the group at hand to be taken
  std::unique_ptr<MessageGroup> ready_ EC_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<MessageGroup>> done_ EC_GUARDED_BY(mutex_);
  std::unique_ptr<MessageGroup> spare_ EC_GUARDED_BY(mutex_);
  SinkCounters counters_ EC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edgecase::mqtt
