#include "mqtt/listener/mqtt_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/machine.h"
#include "wire/authority.h"

namespace edgecase::mqtt {
namespace {

// Received at once, so how far a group may grow beyond its limit.
constexpr std::size_t kReceiveBytes = 64u << 10;
// Answers that wait for their reader; then nothing more is read from it.
constexpr std::size_t kOutputMaxBytes = 64u << 10;
constexpr int kSendBufferBytes = 128 << 10;
// Connections over the limit that are open only to be told so.
constexpr std::uint32_t kTurnedAwayMax = 16;
constexpr int kEventsAtOnce = 64;
constexpr int kAcceptsPerTurn = 8;  // less than are turned away at once; others get their turn
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kLongestWaitMs = 24 * 3600 * 1'000;
constexpr std::uint64_t kListenerId = 0;
constexpr std::uint64_t kWakeId = 1;

// A peer that vanished without a word is found by the kernel, also where there is no keep-alive.
void set_options(int descriptor) {
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
}

}  // namespace

MqttListener::Poller::Poller(const ListenerOptions& options, const ListenerParts& parts,
                             std::unique_ptr<SessionRecords> records,
                             std::vector<net::Socket> listeners)
    : options_(options),
      parts_(parts),
      records_(std::move(records)),
      budget_(options.in_flight_limit_bytes),
      addresses_(options.connections_per_address),
      rules_(parts.rules),
      conversation_parts_{
          .rules = rules_,
          .limits = parts.limits,
          .pipeline = parts.pipeline,
          .sessions = sessions_,
          .records = *records_,
          .budget = budget_,
          .packet_max_bytes = packet_max_bytes(parts.limits, options.in_flight_limit_bytes),
          .authenticator = parts.authenticator,
          .grants_subscriptions = options.grant_subscriptions,
          .logger = parts.logger,
          .names = parts.names},
      listeners_(std::move(listeners)),
      port_(net::tcp_port_of(listeners_.front())),
      buffer_(kReceiveBytes),
      next_id_(kWakeId + 1) {
  const bool six = options.host.find(':') != std::string::npos;
  status_.address = (six ? "[" + options.host + "]" : options.host) + ":" + std::to_string(port_);
}

MqttListener::Poller::~Poller() {
  stop();
}

Status MqttListener::Poller::start() {
  EC_TRY(load_sessions());
  poll_ = net::Socket(epoll_create1(EPOLL_CLOEXEC));
  wake_ = net::Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool ready = poll_ && wake_ &&
               net::poll_control(poll_, EPOLL_CTL_ADD, wake_.descriptor(), EPOLLIN, kWakeId);
  for (const net::Socket& listener : listeners_) {
    ready = ready &&
            net::poll_control(poll_, EPOLL_CTL_ADD, listener.descriptor(), EPOLLIN, kListenerId);
  }
  if (!ready) return io_error("cannot poll: " + std::generic_category().message(errno));
  try {
    committer_ = std::make_unique<MessageCommitter>(
        CommitterParts{.pipeline = parts_.pipeline,
                       .rejected = parts_.rejected,
                       .clock = parts_.clock,
                       .logger = parts_.logger,
                       .source = {auth::PrincipalKind::Mqtt, "mqtt listener"}},
        [this] { wake(); });
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return busy("no thread can be started for MQTT: " + limit_of_threads());
  }
  pthread_setname_np(thread_.native_handle(), "mqtt-poll");
  return ok();
}

void MqttListener::Poller::stop() {
  if (stopping_.exchange(true)) return;
  if (wake_) wake();
  if (thread_.joinable()) thread_.join();
  connections_.clear();
}

void MqttListener::Poller::wake() {
  eventfd_write(wake_.descriptor(), 1);
}

void MqttListener::Poller::run() {
  epoll_event events[kEventsAtOnce];
  now_ns_ = parts_.clock.boot_ns();
  forget_ended();
  while (!stopping_) {
    const int count = epoll_wait(poll_.descriptor(), events, kEventsAtOnce, timeout_ms());
    now_ns_ = parts_.clock.boot_ns();
    bool knocked = false;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[i].data.u64;
      if (id == kListenerId) {
        knocked = true;  // let in when those who have left made room
      } else if (id == kWakeId) {
        eventfd_t ignored = 0;
        eventfd_read(wake_.descriptor(), &ignored);
        take_rules();
        collect();
        resume_paused();
      } else if (Connection* const connection = find(id)) {
        on_ready(*connection, events[i].events);
      }
    }
    if (next_paid_ns_ != 0 && now_ns_ >= next_paid_ns_) resume_paid();
    if (knocked) {
      for (const net::Socket& listener : listeners_) accept_some(listener);
    }
    send_touched();
    if (now_ns_ >= next_sweep_ns_) sweep();
    publish_wills();
    forget_ended();
    wipe_stack<kWipedStackBytes / 4>();
  }
  // As a broker does: clients that are there come again, and say so.
  sessions_.end_wills();
  publish_wills();
  // What the drive still takes is acknowledged.
  committer_->stop();
  collect();
  std::vector<std::uint64_t> open;
  for (const auto& [id, connection] : connections_) open.push_back(id);
  for (const std::uint64_t id : open) {
    end(*find(id), ReasonCode::ServerShuttingDown, "the daemon stops");
  }
  send_touched();
}

int MqttListener::Poller::timeout_ms() const {
  const std::int64_t sweep_ms = std::max<std::int64_t>(options_.sweep_ns / kNsPerMs, 1);
  if (connections_.empty() && accept_again_ns_ == 0) {
    const std::int64_t end_ns = sessions_.next_end_ns();
    if (end_ns == SessionTable::kForever) return -1;
    const std::int64_t wait_ms = (end_ns - now_ns_) / kNsPerMs + 1;
    return static_cast<int>(std::clamp(wait_ms, sweep_ms, kLongestWaitMs));
  }
  const std::int64_t paid_ms = (next_paid_ns_ - now_ns_) / kNsPerMs + 1;
  return static_cast<int>(next_paid_ns_ == 0 ? sweep_ms
                                             : std::clamp<std::int64_t>(paid_ms, 0, sweep_ms));
}

MqttListener::Poller::Connection* MqttListener::Poller::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

// ---- Coming and going

void MqttListener::Poller::watch_listeners(std::uint32_t events) {
  for (const net::Socket& listener : listeners_) {
    net::poll_control(poll_, EPOLL_CTL_MOD, listener.descriptor(), events, kListenerId);
  }
}

void MqttListener::Poller::accept_some(const net::Socket& listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    net::Socket accepted(
        accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted) {
      admit(std::move(accepted));
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    // Out of descriptors or memory: who waits stays in the backlog until there is room.
    if (close_oldest_stranger()) continue;
    accept_again_ns_ = now_ns_ + options_.sweep_ns;
    watch_listeners(0);
    return;
  }
}

void MqttListener::Poller::admit(net::Socket accepted) {
  const int descriptor = accepted.descriptor();
  set_options(descriptor);
  auth::Principal from = net::principal_of(descriptor, net::ListenerKind::Tcp);
  const std::uint32_t of_address = addresses_.open(from.name);
  const bool address_full =
      of_address >= addresses_.most() && !close_oldest_stranger(wire::network_of(from.name));
  const bool full = connections_.size() >= options_.connections && !close_oldest_stranger();
  if ((full && connections_.size() >= options_.connections + kTurnedAwayMax) ||
      (address_full && of_address >= addresses_.most() + kTurnedAwayMax)) {
    const MutexLock lock(mutex_);
    ++status_.refused;
    return;
  }
  const std::uint64_t id = next_id_++;
  std::unique_ptr<net::Channel> channel = parts_.channels.open(std::move(accepted));
  if (!channel) return;
  auto connection =
      std::make_unique<Connection>(id, std::move(channel), std::move(from), conversation_parts_,
                                   full           ? Conversation::Standing::TurnedAway
                                   : address_full ? Conversation::Standing::AddressTurnedAway
                                                  : Conversation::Standing::Welcome,
                                   addresses_);
  while (!connection->channel_share.grow(parts_.channels.channel_bytes)) {
    if (close_oldest_stranger()) continue;
    const MutexLock lock(mutex_);
    ++status_.refused;
    return;
  }
  connection->opened_ns = connection->heard_ns = connection->written_ns = now_ns_;
  connection->events = EPOLLIN;
  if (!net::poll_control(poll_, EPOLL_CTL_ADD, descriptor, EPOLLIN, id)) return;
  connections_.emplace(id, std::move(connection));
  const MutexLock lock(mutex_);
  status_.connections = connections_.size();
}

// A connection that has not said yet who it is, of this network or of all, gives way to those who
// come.
bool MqttListener::Poller::close_oldest_stranger(const std::string& network) {
  std::uint64_t oldest = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection->conversation.is_connected() || connection->conversation.has_ended()) continue;
    if (!network.empty() && connection->address_share.network() != network) continue;
    if (oldest == 0 || id < oldest) oldest = id;
  }
  if (oldest == 0) return false;
  end(*find(oldest), ReasonCode::ServerBusy, "no CONNECT, and others wait");
  close(oldest);
  return true;
}

void MqttListener::Poller::close(std::uint64_t id) {
  if (Connection* const connection = find(id)) connection->conversation.leave(now_ns_);
  connections_.erase(id);
  const MutexLock lock(mutex_);
  status_.connections = connections_.size();
  status_.sessions = sessions_.size();
}

void MqttListener::Poller::end(Connection& connection, ReasonCode reason, std::string_view why) {
  if (connection.conversation.has_ended()) return;
  connection.conversation.end(reason, why);
  note_end(connection);
  touch(connection);
}

// ---- In

void MqttListener::Poller::on_ready(Connection& connection, std::uint32_t events) {
  const net::Channel& channel = *connection.channel;
  std::uint32_t readable = EPOLLIN | EPOLLHUP | EPOLLERR;
  std::uint32_t writable = EPOLLOUT;
  if (channel.receive_awaits_send()) readable |= EPOLLOUT;
  if (channel.send_awaits_receive()) writable |= EPOLLIN;
  if ((events & writable) != 0) touch(connection);
  if ((events & readable) == 0) return;
  if (connection.closing_ns != 0) return drain(connection);
  // A pause ends by itself; a connection that broke meanwhile is read to its end then.
  if (connection.paused_ns != 0 || connection.conversation.has_ended()) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) close(connection.id);
    return;
  }
  receive(connection);
}

void MqttListener::Poller::receive(Connection& connection) {
  std::unique_ptr<MessageGroup> group = committer_->take();
  if (group->full()) {
    committer_->offer(std::move(group));
    connection.paused_ns = now_ns_;
    paused_.push_back(connection.id);
    return watch(connection);
  }
  // The buffer takes more than a record, so that the channel holds nothing back.
  const net::Received got(*connection.channel, buffer_);
  if (got.outcome() == net::Outcome::Done) {
    connection.heard_ns = now_ns_;
    if (!connection.conversation.is_connected())
      connection.conversation.show_certificate(connection.channel->peer_names());
    connection.conversation.receive(got.bytes(), *group, now_ns_);
  }
  committer_->offer(std::move(group));
  switch (got.outcome()) {
    case net::Outcome::Done: return after_receive(connection);
    case net::Outcome::Blocked: return watch(connection);
    case net::Outcome::Closed:
    case net::Outcome::Failed: return close(connection.id);
  }
}

void MqttListener::Poller::after_receive(Connection& connection) {
  Conversation& conversation = connection.conversation;
  if (conversation.is_connected() && !std::exchange(connection.is_counted, true)) {
    const MutexLock lock(mutex_);
    ++status_.connects;
    status_.sessions = sessions_.size();
  }
  if (const std::uint64_t predecessor = conversation.take_predecessor()) {
    if (Connection* const other = find(predecessor)) {
      end(*other, ReasonCode::SessionTakenOver, "its client has connected again");
      const MutexLock lock(mutex_);
      ++status_.taken_over;
      --status_.failed;
    }
  }
  if (conversation.has_ended()) note_end(connection);
  if (conversation.is_starting()) watch(connection);
  if (conversation.has_ended() || !conversation.output().empty()) touch(connection);
}

// What a client still sends behind its end, so that closing does not take the last answer from it.
void MqttListener::Poller::drain(Connection& connection) {
  const net::Outcome outcome = net::Received(*connection.channel, buffer_).outcome();
  if (outcome == net::Outcome::Closed || outcome == net::Outcome::Failed) {
    close(connection.id);
  }
}

void MqttListener::Poller::resume_paused() {
  for (const std::uint64_t id : std::exchange(paused_, {})) {
    if (Connection* const connection = find(id)) resume(*connection);
  }
}

// ---- Out

void MqttListener::Poller::collect() {
  for (std::unique_ptr<MessageGroup>& group : committer_->take_done()) {
    for (const GroupMessage& message : group->messages()) complete(message);
    committer_->reuse(std::move(group));
  }
}

void MqttListener::Poller::complete(const GroupMessage& message) {
  if (message.owed_ns > 0) hold_back(message.connection, message.owed_ns);
  if (message.qos == 0 && message.purpose == Purpose::Publish) return;
  note_stored(sessions_, message);
  Connection* const connection = find(message.connection);
  if (connection == nullptr) return;
  connection->conversation.acknowledge(message);
  if (message.purpose == Purpose::Connect) connection->heard_ns = now_ns_;
  touch(*connection);
}

// Answers are sent once at the end of a turn.
void MqttListener::Poller::touch(Connection& connection) {
  if (std::exchange(connection.touched, true)) return;
  touched_.push_back(connection.id);
}

void MqttListener::Poller::send_touched() {
  for (const std::uint64_t id : std::exchange(touched_, {})) {
    Connection* const connection = find(id);
    if (connection == nullptr) continue;
    connection->touched = false;
    flush(*connection);
  }
}

void MqttListener::Poller::flush(Connection& connection) {
  std::string& output = connection.conversation.output();
  if (!connection.backlog) connection.written_ns = now_ns_;
  const std::size_t waiting = output.size();
  if (net::send_some(*connection.channel, output) == net::Outcome::Failed) {
    return close(connection.id);
  }
  if (output.size() < waiting) connection.written_ns = now_ns_;
  connection.backlog = !output.empty();
  if (output.empty()) {
    if (output.capacity() > kOutputMaxBytes) output = std::string();
    if (connection.conversation.has_ended()) begin_closing(connection);
  }
  watch(connection);
}

void MqttListener::Poller::begin_closing(Connection& connection) {
  if (connection.closing_ns != 0) return;
  connection.closing_ns = now_ns_;
  connection.channel->finish();
}

void MqttListener::Poller::watch(Connection& connection) {
  const std::size_t waiting = connection.conversation.output().size();
  const bool reads = connection.closing_ns != 0 ||
                     (connection.paused_ns == 0 && !connection.conversation.has_ended() &&
                      !connection.conversation.is_starting() && waiting < kOutputMaxBytes);
  const net::Channel& channel = *connection.channel;
  std::uint32_t events = 0;
  if (reads) events |= channel.receive_awaits_send() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (waiting > 0) events |= channel.send_awaits_receive() ? EPOLLIN : EPOLLOUT;
  if (events == connection.events) return;
  connection.events = events;
  net::poll_control(poll_, EPOLL_CTL_MOD, channel.descriptor(), events, connection.id);
}

ListenerStatus MqttListener::Poller::status() const {
  ListenerStatus status;
  {
    const MutexLock lock(mutex_);
    status = status_;
  }
  status.counters = committer_->counters();
  if (status.counters.waiting_since_ns != 0) {
    status.lag_ns = parts_.clock.boot_ns() - status.counters.waiting_since_ns;
  }
  return status;
}

}  // namespace edgecase::mqtt
