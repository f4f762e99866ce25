#include "http/http_front.h"

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

namespace edgecase::http {
namespace {

constexpr std::size_t kReceiveBufferBytes = 256u << 10;
constexpr std::size_t kLingerBufferBytes = 64u << 10;
constexpr int kSendBufferBytes = 256 << 10;
// The socket's room for bytes that were never sent.
constexpr int kUnsentBytes = 16 << 10;
// Over the socket of this machine; the kernel takes it twice.
constexpr int kLocalSendBufferBytes = 32 << 10;
constexpr std::uint32_t kReadSlotsMin = 2;  // one may wait for a drive
constexpr int kReceivesPerTurn = 8;         // then others get theirs
constexpr int kAcceptsPerTurn = 8;          // less than are turned away at once
constexpr std::uint64_t kDrainMaxBytes = 64u << 20;
// Connections over the limit that are open only to be told so.
constexpr std::size_t kTurnedAwayMax = 16;
constexpr std::int64_t kNsPerMs = 1'000'000;
// epoll's user data: listeners by index, the wake-up, then connections.
constexpr std::uint64_t kListenersMax = 8;
constexpr std::uint64_t kWakeId = kListenersMax;

}  // namespace

Result<std::unique_ptr<Front>> Front::start(const FrontOptions& options,
                                            std::vector<FrontListener> listeners, Router& router) {
  std::unique_ptr<Front> front(new Front(options, std::move(listeners), router));
  EC_TRY(front->open_poll());
  try {
    front->start_threads();
  } catch (const std::system_error&) {
    std::string why = limit_of_threads();
    front->stop();
    return busy("no thread can be started for HTTP: " + why);
  }
  return front;
}

Front::Front(const FrontOptions& options, std::vector<FrontListener> listeners, Router& router)
    : options_(options),
      listeners_(std::move(listeners)),
      router_(router),
      budget_(options.in_flight_limit_bytes),
      addresses_(options.connections_per_address),
      long_answers_(options.readers > 1 ? options.readers - 1 : 1),
      linger_buffer_(kLingerBufferBytes),
      next_id_(kWakeId + 1),
      buffer_(kReceiveBufferBytes),
      read_slots_(std::max(kReadSlotsMin, std::thread::hardware_concurrency())) {}

Front::~Front() {
  stop();
}

Status Front::open_poll() {
  poll_ = net::Socket(epoll_create1(EPOLL_CLOEXEC));
  wake_ = net::Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool ready = poll_ && wake_ && listeners_.size() <= kListenersMax &&
               net::poll_control(poll_, EPOLL_CTL_ADD, wake_.descriptor(), EPOLLIN, kWakeId);
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const int descriptor = listeners_[i].socket.descriptor();
    ready = ready && net::poll_control(poll_, EPOLL_CTL_ADD, descriptor, EPOLLIN, i);
  }
  return ready ? ok() : io_error("cannot poll: " + std::generic_category().message(errno));
}

void Front::start_threads() {
  poller_ = std::thread([this] { poll_loop(); });
  pthread_setname_np(poller_.native_handle(), "http-poll");
  {
    const MutexLock lock(mutex_);
    readers_.emplace_back([this] { read(); });
    pthread_setname_np(readers_.back().native_handle(), "http-reader");
  }
  // One of each lane at least, and who settles.
  for (std::uint32_t i = 0; i < std::max(options_.threads, 2u) + 2; ++i) {
    workers_.emplace_back([this] { work(); });
    pthread_setname_np(workers_.back().native_handle(), "http-worker");
  }
}

void Front::stop() {
  if (!stopping_.exchange(true)) {
    if (wake_) eventfd_write(wake_.descriptor(), 1);
    if (poller_.joinable()) poller_.join();
    std::vector<std::thread> readers;
    {
      const MutexLock lock(mutex_);
      workers_end_ = true;  // no reader is made any more
      readers.swap(readers_);
    }
    queued_.notify_all();
    read_due_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    for (std::thread& reader : readers) reader.join();
    connections_.clear();
    connection_count_ = 0;
  }
}

void Front::poll_loop() {
  epoll_event events[64];
  while (true) {
    const int count = epoll_wait(poll_.descriptor(), events, 64, poll_timeout_ms());
    if (stopping_ && stop_poller()) return;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[i].data.u64;  // not aligned: nothing may refer to it
      const auto found = connections_.find(id);
      if (found != connections_.end()) on_ready(*found->second);
    }
    // What has ended has made room by now.
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[i].data.u64;
      if (id < listeners_.size()) accept_some(static_cast<std::size_t>(id));
    }
    if (now_ns() >= next_sweep_ns_) sweep();
    wipe_stack<kWipedStackBytes / 4>();
  }
}

// Workers set deadlines without waking the poller, so it looks now and then while there is anything
// open; with nothing open it sleeps.
int Front::poll_timeout_ms() const {
  if (stop_by_ns_ != 0) return 20;
  if (connections_.empty() && accept_again_ns_ == 0) return -1;
  return static_cast<int>(std::max<std::int64_t>(options_.sweep_ns / kNsPerMs, 1));
}

// True: nothing is left, or time is up. Called after each wait while stopping.
bool Front::stop_poller() {
  if (stop_by_ns_ == 0) {
    stop_by_ns_ = now_ns() + options_.stop_grace_ns;
    listeners_.clear();
    eventfd_t count = 0;
    eventfd_read(wake_.descriptor(), &count);
  }
  end_waiting(INT64_MAX);
  std::vector<std::uint64_t> done;
  bool serving = false;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, connection] : connections_) {
      const bool busy = connection->stage == Stage::Serving || connection->stage == Stage::Flushing;
      if (!busy) done.push_back(id);
      serving = serving || busy;
    }
  }
  for (const std::uint64_t id : done) close_connection(id);
  if (!serving) return true;
  if (now_ns() < stop_by_ns_) return false;
  router_.cut_streams();
  // Workers that wait for readers wake up and fail; what they hold is freed after they ended.
  for (const auto& [id, connection] : connections_) {
    shutdown(connection->channel->descriptor(), SHUT_RDWR);
  }
  return true;
}

// Clients that come as fast as they are answered must not keep the poller from all others.
void Front::accept_some(std::size_t listener) {
  if (stopping_) return;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    net::Socket accepted(accept4(listeners_[listener].socket.descriptor(), nullptr, nullptr,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted) {
      admit(std::move(accepted), listeners_[listener]);
      continue;
    }
    if (errno == EAGAIN) return;
    // Out of descriptors or memory: waiting connections stay in the backlog until there is room.
    const bool starved = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (starved && !make_room()) return pause_accepting();
  }
}

void Front::admit(net::Socket accepted, const FrontListener& listener) {
  const int descriptor = accepted.descriptor();
  // Left to itself the kernel would buffer megabytes for each slow reader, and calls nothing back.
  const bool is_tcp = listener.kind == net::ListenerKind::Tcp;
  const int send_bytes = is_tcp ? kSendBufferBytes : kLocalSendBufferBytes;
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
  if (is_tcp) {
    const int yes = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
  }
  auth::Principal from = net::principal_of(descriptor, listener.kind);
  // All come from there; each is limited by itself: answer().
  const bool is_limited = is_tcp && !router_.sites()->is_proxy(from.name);
  const bool address_full = is_limited && is_address_full(from.name);
  if (address_full && addresses_.open(from.name) >= addresses_.most() + kTurnedAwayMax) return;
  const bool full = connections_.size() >= options_.connections && !make_room();
  if (full && connections_.size() >= options_.connections + kTurnedAwayMax) return;
  const std::uint64_t id = next_id_++;
  std::unique_ptr<net::Channel> channel = listener.channels.open(std::move(accepted));
  if (!channel) return;
  auto connection =
      std::make_unique<Connection>(id, std::move(channel), std::move(from), is_limited, *this);
  if (!take_channel_bytes(*connection, listener.channels.channel_bytes)) return;
  if (!net::poll_control(poll_, EPOLL_CTL_ADD, descriptor, 0, id)) return;
  Connection& admitted = *connections_.emplace(id, std::move(connection)).first->second;
  connection_count_ = connections_.size();
  if (full) return refuse(admitted, overloaded("too many connections are open"));
  if (address_full) {
    return refuse(admitted, address_overloaded());
  }
  await(admitted, Stage::Reading);
}

// Idle and slow connections give way.
bool Front::take_channel_bytes(Connection& connection, std::uint64_t bytes) {
  while (!connection.channel_share.grow(bytes)) {
    if (!make_room()) return false;
  }
  return true;
}

// Its idle and slow connections give way.
bool Front::is_address_full(const std::string& address) {
  return addresses_.open(address) >= addresses_.most() && !make_room(wire::network_of(address));
}

// Closes a connection, of this network or of all: the one that has been idle longest, as clients
// expect of any server; else the one that has been slow longest.
bool Front::make_room(const std::string& network) {
  const Connection* victim = nullptr;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, connection] : connections_) {
      if (connection->stage != Stage::Reading) continue;
      const net::AddressShare* const share = connection->address_share.get();
      if (!network.empty() && (share == nullptr || share->network() != network)) continue;
      // The request of a connection that has not asked yet may be here and not read.
      const bool is_between = connection->phase == Phase::Idle && connection->has_asked;
      if (!is_between && !is_slow(*connection)) continue;
      if (victim == nullptr || gives_way_before(*connection, *victim)) victim = connection.get();
    }
  }
  if (victim == nullptr) return false;
  Connection& leaving = *connections_.at(victim->id);
  if (leaving.phase != Phase::Idle) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    leaving.output += refusal_of(leaving.reader.target(), too_slow(leaving, ", and others wait"));
    // As much as the socket takes at once.
    static_cast<void>(send_output(*leaving.channel, leaving.output));
    leaving.channel->finish();
  }
  close_connection(leaving.id);
  return true;
}

// It lives on the grace that deadlines give: its head, or any of it, is not there after a while, or
// its body comes below the pace.
bool Front::is_slow(const Connection& connection) const {
  const std::int64_t taken_ns = now_ns() - connection.phase_began_ns;
  if (taken_ns < options_.slow_ns) return false;
  if (connection.phase != Phase::Body) return true;
  const auto taken_ms = static_cast<std::uint64_t>(taken_ns / kNsPerMs);
  return connection.reader.body_bytes() <= taken_ms * options_.slow_bytes_per_second / 1'000;
}

bool Front::gives_way_before(const Connection& one, const Connection& other) {
  const bool is_idle = one.phase == Phase::Idle;
  if (is_idle != (other.phase == Phase::Idle)) return is_idle;
  return one.phase_began_ns < other.phase_began_ns;
}

Refusal Front::too_slow(const Connection& connection, const char* why) {
  const bool in_body = connection.phase == Phase::Body;
  return {408, invalid_argument(std::string("the request's ") + (in_body ? "body" : "head") +
                                " came too slowly" + why)};
}

void Front::pause_accepting() {
  accept_again_ns_ = now_ns() + options_.sweep_ns;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    net::poll_control(poll_, EPOLL_CTL_MOD, listeners_[i].socket.descriptor(), 0, i);
  }
}

void Front::on_ready(Connection& connection) {
  Stage stage = Stage::Serving;
  {
    const MutexLock lock(mutex_);
    stage = connection.stage;
  }
  switch (stage) {
    case Stage::Reading: return receive(connection);
    case Stage::Flushing: return flush(connection);
    case Stage::Draining: return drain(connection);
    case Stage::Cut: return close_connection(connection.id);
    case Stage::Serving: return;
  }
}

void Front::receive(Connection& connection) {
  RequestReader& reader = connection.reader;
  for (int i = 0; i < kReceivesPerTurn; ++i) {
    const std::size_t wanted = std::min(reader.wanted_bytes(), buffer_.size());
    const net::Received got(*connection.channel, {buffer_.data(), wanted});
    if (got.outcome() == net::Outcome::Blocked) break;
    if (got.outcome() != net::Outcome::Done) return close_connection(connection.id);
    if (!std::exchange(connection.is_named, true))
      connection.principal.certificate = connection.channel->peer_names();
    const std::uint64_t bytes_before = reader.body_bytes();
    const RequestReader::Progress progress = reader.feed(got.bytes());
    note_large_body(bytes_before, reader);
    if (progress != RequestReader::Progress::NeedMore) return proceed(connection, progress);
    // A short read emptied the socket, or a record; asking again would mostly only say so.
    if (got.bytes().size() < wanted) break;
  }
  if (reader.claim_continue()) {
    connection.output += kContinue;
    return flush(connection);
  }
  await(connection, Stage::Reading);
}

void Front::note_large_body(std::uint64_t bytes_before, const RequestReader& reader) {
  if (bytes_before >= kLargeBodyBytes || reader.body_bytes() < kLargeBodyBytes) return;
  if (!options_.on_large_body || now_ns() < large_body_again_ns_) return;
  large_body_again_ns_ = now_ns() + options_.large_body_ns;
  options_.on_large_body();
}

void Front::proceed(Connection& connection, RequestReader::Progress progress) {
  switch (progress) {
    case RequestReader::Progress::NeedMore: return await(connection, Stage::Reading);
    case RequestReader::Progress::Complete: return enqueue(connection);
    case RequestReader::Progress::Refused: return refuse(connection, connection.reader.refusal());
  }
}

void Front::refuse(Connection& connection, const Refusal& refusal) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  connection.output += refusal_of(connection.reader.target(), refusal);
  connection.close_after_output = true;
  flush(connection);
}

void Front::flush(Connection& connection) {
  if (drop_revoked(connection)) return close_connection(connection.id);
  switch (send_output(*connection.channel, connection.output)) {
    case net::Outcome::Closed:
    case net::Outcome::Failed: return close_connection(connection.id);
    case net::Outcome::Blocked: return await(connection, Stage::Flushing);
    case net::Outcome::Done: break;
  }
  connection.parts.clear();
  if (!connection.close_after_output) return proceed(connection, connection.reader.next());
  // Closing with unread input would reset the connection and could take the answer with it.
  connection.channel->finish();
  await(connection, Stage::Draining);
}

void Front::drain(Connection& connection) {
  for (int i = 0; i < kReceivesPerTurn; ++i) {
    const net::Received got(*connection.channel, buffer_);
    if (got.outcome() == net::Outcome::Blocked) break;
    if (got.outcome() != net::Outcome::Done) return close_connection(connection.id);
    connection.drained_bytes += got.bytes().size();
    if (connection.drained_bytes > kDrainMaxBytes) return close_connection(connection.id);
  }
  // The deadline stands: what comes in between does not extend it.
  net::poll_control(poll_, EPOLL_CTL_MOD, connection.channel->descriptor(), EPOLLIN | EPOLLONESHOT,
                    connection.id);
}

void Front::expire(Connection& connection) {
  if (connection.stage != Stage::Reading || connection.phase == Phase::Idle) {
    return close_connection(connection.id);
  }
  refuse(connection, too_slow(connection, ""));
}

void Front::sweep() {
  const std::int64_t now = now_ns();
  next_sweep_ns_ = now + options_.sweep_ns;
  end_waiting(now);
  drop_revoked();
  std::vector<std::uint64_t> expired;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, connection] : connections_) {
      if (connection->stage == Stage::Serving || now < connection->deadline_ns) continue;
      expired.push_back(id);
    }
  }
  // A worker never takes a connection from another stage, so these are still the poller's.
  for (const std::uint64_t id : expired) expire(*connections_.at(id));
  if (accept_again_ns_ != 0 && now >= accept_again_ns_) {
    accept_again_ns_ = 0;
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      net::poll_control(poll_, EPOLL_CTL_MOD, listeners_[i].socket.descriptor(), EPOLLIN, i);
    }
  }
}

// Ends the wait of those that are due: they are asked again, to be answered or refused.
void Front::end_waiting(std::int64_t due_by_ns) {
  const MutexLock lock(mutex_);
  while (!waiting_.empty() && waiting_.front()->waits_until_ns <= due_by_ns) {
    Connection& connection = *waiting_.front();
    waiting_.pop_front();
    queues_[static_cast<std::size_t>(Lane::Reads)].push_back(&connection);
    wake_reader();
  }
}

// Drops what was revoked from answers that wait for their reader.
void Front::drop_revoked() {
  std::vector<std::uint64_t> flushing;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, connection] : connections_)
      if (connection->stage == Stage::Flushing) flushing.push_back(id);
  }
  for (const std::uint64_t id : flushing)
    if (drop_revoked(*connections_.at(id))) close_connection(id);
}

// Sets the deadline and has the poller told of what `stage` waits for.
void Front::await(Connection& connection, Stage stage) {
  const net::Channel& channel = *connection.channel;
  std::uint32_t events = EPOLLIN;
  const MutexLock lock(mutex_);
  switch (stage) {
    case Stage::Reading:
      connection.deadline_ns = reading_deadline(connection);
      // A socket takes bytes at nearly any time: what the channel holds is read in the next turn.
      if (channel.receive_awaits_send() || channel.holds_received()) events |= EPOLLOUT;
      break;
    case Stage::Flushing:
      connection.deadline_ns = now_ns() + options_.write_grace_ns;
      events = channel.send_awaits_receive() ? EPOLLIN : EPOLLOUT;
      break;
    case Stage::Draining: connection.deadline_ns = now_ns() + options_.close_ns; break;
    case Stage::Cut:
      // A client that reads nothing leaves its socket neither readable nor writable for good: the
      // end of what comes in makes it readable at once.
      connection.deadline_ns = now_ns();
      static_cast<void>(::shutdown(channel.descriptor(), SHUT_RD));
      break;
    case Stage::Serving: break;
  }
  connection.stage = stage;
  net::poll_control(poll_, EPOLL_CTL_MOD, channel.descriptor(), events | EPOLLONESHOT,
                    connection.id);
}

std::int64_t Front::reading_deadline(Connection& connection) const {
  const RequestReader& reader = connection.reader;
  const Phase phase = reader.is_idle() ? Phase::Idle : reader.in_body() ? Phase::Body : Phase::Head;
  const bool answered = connection.stage != Stage::Reading;
  if (phase != connection.phase || answered || connection.phase_began_ns == 0) {
    connection.phase = phase;
    connection.phase_began_ns = now_ns();
    connection.progress_ns = connection.phase_began_ns;
    connection.progress_bytes = 0;
  }
  switch (phase) {
    case Phase::Idle: return connection.phase_began_ns + options_.idle_ns;
    case Phase::Head: return connection.phase_began_ns + options_.head_ns;
    case Phase::Body: break;
  }
  if (reader.body_bytes() != connection.progress_bytes) {
    connection.progress_ns = now_ns();
    connection.progress_bytes = reader.body_bytes();
  }
  // Somebody who sends, however slowly, is waited for; not who stopped, and not for ever.
  const std::uint64_t seconds = reader.body_bytes() / options_.body_bytes_per_second_min;
  return options_.body_grace_ns +
         std::min(connection.progress_ns,
                  connection.phase_began_ns + static_cast<std::int64_t>(seconds) * kSecondNs);
}

}  // namespace edgecase::http
