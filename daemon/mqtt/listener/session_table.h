// What the listener keeps of its clients by client id, beyond their connections: which messages of
// QoS 2 it has taken, and which of QoS 1 without a time of their own were stored last. In memory:
// after a restart of the daemon no session is present, and a client begins anew.
//
// A session belongs to at most one connection; another one that names its client id takes it over.
// One without a connection is kept until its expiry, the kKeptMax longest kept of them. Not
// thread-safe: the listener's poller owns the table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mqtt/redelivery_filter.h"

namespace edgecase::mqtt {

// Messages of QoS 2 between PUBLISH and PUBREL, by packet id.
class ReceivedIds {
 public:
  enum class State : std::uint8_t {
    Unknown,
    Storing,  // not durable yet: nothing was answered
    Stored,   // PUBREC was sent, or will be when it is asked for again
  };

  State state(std::uint16_t packet_id) const;
  void set(std::uint16_t packet_id, State state);
  std::size_t size() const { return ids_.size(); }

 private:
  struct Entry {
    std::uint16_t packet_id;
    State state;
  };
  std::vector<Entry>::const_iterator find(std::uint16_t packet_id) const;

  std::vector<Entry> ids_;  // by packet id
};

struct Session {
  static constexpr std::size_t kRememberedMessages = 256;

  std::uint64_t number = 0;  // never given twice
  std::string client_id;
  std::uint64_t connection = 0;                      // 0: none
  std::int64_t expiry_ns = 0;                        // how long it outlives its connection
  std::int64_t ends_ns = 0;                          // boot clock, while it has none
  std::uint64_t last_used = 0;                       // counts up: which was left alone longest
  ReceivedIds received;                              // QoS 2
  RedeliveryFilter redelivery{kRememberedMessages};  // QoS 1
};

class SessionTable {
 public:
  static constexpr std::size_t kKeptMax = 512;
  static constexpr std::int64_t kForever = INT64_MAX;

  struct Attached {
    Session* session = nullptr;
    bool was_present = false;
    std::uint64_t taken_from = 0;  // the connection that had it; 0: none
  };
  // The session of `client_id`, anew if `clean` or if there is none.
  Attached attach(std::string_view client_id, bool clean, std::uint64_t connection,
                  std::int64_t now_ns);
  // Its connection is gone. Does nothing when another one has taken it over.
  void detach(std::uint64_t session, std::uint64_t connection, std::int64_t now_ns);
  Session* find(std::uint64_t session);
  void remove_expired(std::int64_t now_ns);
  std::size_t size() const { return by_number_.size(); }

 private:
  void remove(std::uint64_t session);
  void remove_surplus();

  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> by_number_;
  std::unordered_map<std::string, std::uint64_t> by_client_id_;
  std::uint64_t next_number_ = 1;
  std::uint64_t uses_ = 0;
  std::size_t kept_ = 0;  // without a connection
};

}  // namespace edgecase::mqtt
