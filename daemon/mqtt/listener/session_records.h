// Records of sessions that survive a restart of the daemon, so that a message of QoS 2 is stored
// once although its exchange is cut by it. They lie in `_mqtt` (record_namespace.h):
//
//   key      'Q'  client, 16 bytes                     a session that outlives its connection
//            'Q'  client, 16 bytes  packet id, 2        a message it has sent and not released
//            The client is a pseudonym of its client id (auth/pseudonyms.h): erasures find no name.
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
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "auth/pseudonyms.h"
#include "edgecase/engine.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/listener/session_table.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

inline constexpr std::size_t kSessionKeyBytes = 1 + 16;
inline constexpr std::uint32_t kSessionExpiryMaxSeconds = 7 * 24 * 3600;

std::string message_key(std::string_view session_key, std::uint16_t packet_id);
std::string session_value(std::uint32_t expiry_seconds);
std::string message_value(std::uint64_t fingerprint);
// False: not of this version, or not of its size.
bool decode_session_value(ByteView value, std::uint32_t& expiry_seconds);
bool decode_message_value(ByteView value, std::uint64_t& fingerprint);

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
