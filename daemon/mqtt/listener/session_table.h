// The listener's table of its clients, beyond their connections: which messages of QoS 2 it has
// taken, and which of QoS 1 without a time of their own were stored last. A client is known by the
// key of its session (SessionRecords::key_of).
//
// And their wills, of clients that are connected, or have gone and may come back before their
// will's delay is over (MQTT 5, 3.1.2.5): they are due when their client is lost, or its session
// ends; a client that is there again has no old will. Wills live in memory alone.
//
// A session belongs to at most one connection; another one of the same client takes it over, unless
// it was to end with its connection. One without a connection is kept until its expiry, the
// kKeptMax used last of them.
//
// Sessions that are `recorded` come back after a restart of the daemon (SessionRecords); the
// records of one that has ended are to be removed: take_ended(). Not thread-safe: the listener's
// poller owns the table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "auth/authorize.h"
#include "auth/hashing.h"
#include "edgecase/engine.h"
#include "ingest/ingest_request.h"
#include "mqtt/repeat_filter.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

// Messages of QoS 2 between PUBLISH and PUBREL, by packet id.
class ReceivedIds {
 public:
  enum class State : std::uint8_t {
    Unknown,
    Storing,  // not durable yet: nothing was answered
    Stored,   // PUBREC was sent, or will be when it is asked for again
  };

  static constexpr std::size_t kMax = 1'024;  // whoever adds keeps to it

  struct Entry {
    std::uint16_t packet_id = 0;
    State state = State::Unknown;
    std::uint64_t fingerprint = 0;  // of the message: SessionRecords::fingerprint()
  };

  State state(std::uint16_t packet_id) const { return get(packet_id).state; }
  // Unknown: no such id.
  Entry get(std::uint16_t packet_id) const;
  void set(std::uint16_t packet_id, State state);
  void begin(std::uint16_t packet_id, std::uint64_t fingerprint);  // Storing
  std::size_t size() const { return ids_.size(); }
  std::vector<std::uint16_t> all() const;

 private:
  std::vector<Entry>::const_iterator find(std::uint16_t packet_id) const;

  std::vector<Entry> ids_;  // by packet id
};

struct Will {
  std::string topic;
  std::string payload;
  std::int64_t delay_ns = 0;
  auth::Principal principal;  // of whoever left it

  std::size_t bytes() const { return sizeof(Will) + topic.size() + payload.size(); }
};

struct Session {
  static constexpr std::size_t kRememberedMessages = 256;

  std::uint64_t number = 0;      // never given twice
  std::string key;               // its client
  bool recorded = false;         // it has records, or they are on their way to the drive
  std::uint64_t connection = 0;  // 0: none
  std::int64_t expiry_ns = 0;    // how long it outlives its connection
  std::int64_t ends_ns = 0;      // boot clock, while it has none
  std::uint64_t last_used = 0;   // counts up: which was left alone longest
  ReceivedIds received;          // QoS 2
  RedeliveryFilter redelivery{kRememberedMessages};  // QoS 1
  std::unique_ptr<Will> will;                        // null: none
  std::int64_t will_due_ns = 0;                      // boot clock, while it has no connection
};

class SessionTable {
 public:
  static constexpr std::size_t kKeptMax = 512;
  static constexpr std::int64_t kForever = INT64_MAX;
  static constexpr std::size_t kWillBytesMax = 4u << 20;  // all of them

  struct Attached {
    Session* session = nullptr;
    bool was_present = false;
    std::uint64_t taken_from = 0;  // the connection that had it; 0: none
  };
  // The session of the client, anew if `clean` or if there is none.
  Attached attach(std::string_view key, bool clean, std::uint64_t connection, std::int64_t now_ns);
  // The session's connection is gone. Does nothing when another one has taken it over.
  void detach(std::uint64_t session, std::uint64_t connection, std::int64_t now_ns);
  Session* find(std::uint64_t session);

  bool has_room_for(std::size_t will_bytes) const {
    return will_bytes_ + will_bytes <= kWillBytesMax;
  }
  // In place of the one it had, which nobody gets.
  void set_will(Session& session, std::unique_ptr<Will> will);
  void drop_will(Session& session) { set_will(session, nullptr); }
  // Every will is due: nobody waits for these clients any more.
  void end_wills();
  // Wills that are due now, in the order in which they were.
  std::vector<std::unique_ptr<Will>> take_due_wills() { return std::exchange(due_wills_, {}); }
  bool has_due_wills() const { return !due_wills_.empty(); }

  void remove_expired(std::int64_t now_ns);
  // When the next of those without a connection ends, or its will is due; kForever: none does.
  std::int64_t next_end_ns() const;
  std::size_t size() const { return by_number_.size(); }

  // A recorded session of an earlier run, which has no connection and whose expiry begins anew.
  // More than kKeptMax may come back, and stay until their clients have come.
  Session& restore(std::string_view key, std::int64_t expiry_ns, std::int64_t now_ns);

  struct Ended {
    std::string key;
    std::vector<std::uint16_t> packet_ids;
    bool with_session = true;  // false: these messages alone, of a session that goes on
  };
  // Recorded sessions that have ended, whose records must go: before anything of a session that
  // comes after them is written.
  std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }
  bool has_ended() const { return !ended_.empty(); }
  void add_ended(Ended ended);
  // Whether records of an ended session of this client may still be there.
  bool is_ending(std::string_view key) const { return ending_.contains(std::string(key)); }
  // The records of one session are gone.
  void note_gone(std::string_view key);

 private:
  void remove(std::uint64_t session);
  void make_due(Session& session);
  void remove_surplus();
  void release_kept();

  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> by_number_;
  std::unordered_map<std::string, std::uint64_t> by_key_;
  std::vector<Ended> ended_;
  std::unordered_map<std::string, std::size_t> ending_;  // by key: how often it has ended
  std::vector<std::unique_ptr<Will>> due_wills_;
  std::size_t will_bytes_ = 0;  // of those that are not due
  std::uint64_t next_number_ = 1;
  std::uint64_t uses_ = 0;
  std::size_t kept_ = 0;  // without a connection
  std::size_t kept_max_ = kKeptMax;
};

inline constexpr std::size_t kSessionKeyBytes = 1 + 16;
inline constexpr std::uint32_t kSessionExpiryMaxSeconds = 7 * 24 * 3600;

std::string message_key(std::string_view session_key, std::uint16_t packet_id);
std::string session_value(std::uint32_t expiry_seconds);
std::string message_value(std::uint64_t fingerprint);
// False: not of this version, or not of its size.
bool decode_session_value(ByteView value, std::uint32_t& expiry_seconds);
bool decode_message_value(ByteView value, std::uint64_t& fingerprint);

// Records of sessions that survive a restart of the daemon, so that a message of QoS 2 is stored
// once although its exchange is cut by it. They lie in `_mqtt` (topic_names.h):
//
//   key      'Q'  client, 16 bytes                     a session that outlives its connection
//            'Q'  client, 16 bytes  packet id, 2        a message it has sent and not released
//            The client is a pseudonym of its client id (auth/hashing.h): erasures find no name.
//            Packet ids are big-endian.
//
//   value    offset  size  field
//                 0     1  version, 1
//                 1     4  of a session: its expiry in seconds, little-endian
//                 1     8  of a message: its fingerprint, little-endian
//
// A session is recorded with its first message of QoS 2, a message in the batch that holds its
// readings, before PUBREC is sent. PUBREL removes the message's record before PUBCOMP is sent, and
// the end of the session removes all of them.
//
// The fingerprint is keyed like the pseudonyms, and tells a redelivered message from another one
// under an id that its client, having lost its own state, uses anew.
//
// Immutable after load(); any thread.
class SessionRecords {
 public:
  // Errors: the engine's; Corruption of the key of pseudonyms.
  static Result<std::unique_ptr<SessionRecords>> open(Engine& engine, Random& random);

  struct Loaded {
    std::size_t sessions = 0;
    std::size_t messages = 0;
    std::size_t unreadable = 0;  // and messages without a session
    std::size_t surplus = 0;     // over `sessions_max`, or over ReceivedIds::kMax of one
  };
  // Fills `table` with up to `sessions_max` sessions. What cannot be read, what is too much and
  // what has ended with its connection is left to SessionTable::take_ended(): such a message counts
  // as new when it comes again. Writes nothing. Errors: the engine's.
  Result<Loaded> load(SessionTable& table, std::size_t sessions_max, std::int64_t now_ns) const;

  // How the client is known.
  std::string key_of(std::string_view client_id) const;
  std::uint64_t fingerprint(std::string_view topic, std::string_view payload) const;
  // The bytes of key and value are borrowed.
  ingest::RecordChange put(ByteView key, ByteView value) const {
    return {ingest::RecordChange::Kind::Put, namespace_id_, key, value};
  }
  ingest::RecordChange remove(ByteView key) const {
    return {ingest::RecordChange::Kind::Remove, namespace_id_, key, {}};
  }

 private:
  SessionRecords(Engine& engine, NamespaceId namespace_id, auth::Pseudonyms pseudonyms)
      : engine_(engine), namespace_id_(namespace_id), pseudonyms_(std::move(pseudonyms)) {}

  Engine& engine_;
  const NamespaceId namespace_id_;
  const auth::Pseudonyms pseudonyms_;
};

}  // namespace edgecase::mqtt
