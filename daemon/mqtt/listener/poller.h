// The listener's sockets: mqtt_listener.h says what for. All but status(), wake() and stop() belong
// to the poller's thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "edgecase/mutex.h"
#include "mqtt/listener/conversation.h"
#include "mqtt/listener/mqtt_listener.h"
#include "mqtt/listener/session_table.h"
#include "mqtt/message_group.h"
#include "net/budgets.h"
#include "net/channel.h"

namespace edgecase::mqtt {

class MqttListener::Poller {
 public:
  Poller(const ListenerOptions& options, const ListenerParts& parts,
         std::unique_ptr<SessionRecords> records, std::vector<net::Socket> listeners);
  ~Poller();

  Status start();
  void stop();
  void set_rules(std::vector<TopicRule> rules) EC_EXCLUDES(fresh_mutex_);
  std::uint16_t port() const { return port_; }
  ListenerStatus status() const EC_EXCLUDES(mutex_);

 private:
  struct Connection {
    Connection(std::uint64_t number, std::unique_ptr<net::Channel> accepted, auth::Principal peer,
               const ConversationParts& parts, Conversation::Standing standing,
               net::AddressLimit& addresses)
        : id(number),
          channel(std::move(accepted)),
          channel_share(parts.budget),
          address(peer.name),
          address_share(addresses, peer.name),
          conversation(parts, number, standing, std::move(peer)) {}

    const std::uint64_t id;
    const std::unique_ptr<net::Channel> channel;
    net::BudgetShare channel_share;
    const std::string address;
    const net::AddressShare address_share;
    Conversation conversation;
    std::uint32_t events = 0;  // what epoll watches
    std::int64_t opened_ns = 0;
    std::int64_t heard_ns = 0;       // received something
    std::int64_t written_ns = 0;     // an answer made progress, or was put into an empty output
    bool backlog = false;            // an answer waits for its reader
    std::int64_t closing_ns = 0;     // 0: open. Its last answer is out, or on its way
    std::int64_t paused_ns = 0;      // since when it is not read, since the group is full; 0: it is
    std::int64_t owes_until_ns = 0;  // not read before: a device of its messages is over its rate
    bool is_counted = false;         // its CONNECT was taken
    bool touched = false;            // has answers to be sent at the end of this turn
  };

  Status load_sessions();
  void run();
  void forget_ended();
  void publish_wills();
  int timeout_ms() const;
  void watch_listeners(std::uint32_t events);
  void accept_some(const net::Socket& listener);
  void admit(net::Socket accepted);
  bool close_oldest_stranger(const std::string& network = {});
  void on_ready(Connection& connection, std::uint32_t events);
  void receive(Connection& connection);
  void after_receive(Connection& connection);
  void drain(Connection& connection);
  void collect();
  void complete(const GroupMessage& message);
  void touch(Connection& connection);
  void send_touched();
  void flush(Connection& connection);
  void begin_closing(Connection& connection);
  void resume_paused();
  void resume(Connection& connection);
  void hold_back(std::uint64_t id, std::int64_t owed_ns);
  void resume_paid();
  void watch(Connection& connection);
  void sweep();
  bool is_overdue(Connection& connection, std::string& why, ReasonCode& reason) const;
  void end(Connection& connection, ReasonCode reason, std::string_view why);
  void note_end(const Connection& connection);
  void close(std::uint64_t id);
  Connection* find(std::uint64_t id);
  void wake();
  void take_rules() EC_EXCLUDES(fresh_mutex_);

  const ListenerOptions options_;
  const ListenerParts parts_;
  SessionTable sessions_;
  const std::unique_ptr<SessionRecords> records_;
  net::ByteBudget budget_;
  net::AddressLimit addresses_;
  std::vector<TopicRule> rules_;  // of the thread
  const ConversationParts conversation_parts_;
  const std::vector<net::Socket> listeners_;
  const std::uint16_t port_;
  net::Socket poll_;
  net::Socket wake_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  Mutex fresh_mutex_;
  std::optional<std::vector<TopicRule>> fresh_rules_ EC_GUARDED_BY(fresh_mutex_);  // for the thread
  std::vector<std::uint64_t> touched_;
  std::vector<std::uint64_t> paused_;
  std::vector<std::uint64_t> owing_;  // connections that are not read for that
  std::vector<char> buffer_;
  std::uint64_t next_id_;
  std::int64_t now_ns_ = 0;
  std::int64_t next_sweep_ns_ = 0;
  std::int64_t next_paid_ns_ = 0;     // of owing_, the first; 0: none
  std::int64_t accept_again_ns_ = 0;  // 0: accepting

  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ListenerStatus status_ EC_GUARDED_BY(mutex_);
  std::unique_ptr<MessageCommitter> committer_;
  std::thread thread_;
};

}  // namespace edgecase::mqtt
