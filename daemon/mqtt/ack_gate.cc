#include "mqtt/ack_gate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "edgecase/machine.h"

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

void send_at_once(int descriptor) {
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

std::string error_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace

AckGate::AckGate(Parts parts) : parts_(std::move(parts)), buffer_(kBufferBytes, '\0') {}

Result<std::unique_ptr<AckGate>> AckGate::open(Parts parts) {
  std::unique_ptr<AckGate> gate(new AckGate(std::move(parts)));
  EC_TRY(gate->listen());
  try {
    gate->thread_ = std::thread([self = gate.get()] { self->run(); });
  } catch (const std::system_error&) {
    return busy("no thread can be started for the gate to the broker: " + limit_of_threads());
  }
  pthread_setname_np(gate->thread_.native_handle(), "mqtt-gate");
  return gate;
}

Status AckGate::listen() {
  wake_ = net::Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return io_error("no event for the gate to the broker: " + error_text(errno));
  const std::string host = net::loopback_host();
  EC_ASSIGN_OR_RETURN(listener_, net::listen_on_tcp(host, 0));
  EC_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> found,
                      resolve_broker({host, net::tcp_port_of(listener_)}));
  address_ = found.front();
  return ok();
}

AckGate::~AckGate() {
  stopping_ = true;
  if (wake_) wake();
  if (thread_.joinable()) thread_.join();
}

void AckGate::aim(const ResolvedAddress& broker, ProtocolVersion version,
                  std::optional<std::int64_t> judged_at_ns) {
  const MutexLock lock(mutex_);
  broker_ = broker;
  version_ = version;
  judged_at_ns_ = judged_at_ns;
  failure_.clear();
  ending_ = {};
}

std::string AckGate::take_failure() {
  const MutexLock lock(mutex_);
  return std::exchange(failure_, {});
}

AckGate::Ending AckGate::take_ending() {
  const MutexLock lock(mutex_);
  return std::exchange(ending_, {});
}

void AckGate::wake() {
  eventfd_write(wake_.descriptor(), 1);
}

void AckGate::cut() {
  cut_ = true;
  wake();
}

void AckGate::end(std::int64_t timeout_ns) {
  cut();
  const MutexLock lock(mutex_);
  const CondVar::Deadline deadline = CondVar::deadline_in(timeout_ns);
  while (status_.connected && changed_.wait_until(mutex_, deadline)) {
  }
}

bool AckGate::close_inlet(std::int64_t timeout_ns) {
  const MutexLock lock(mutex_);
  inlet_closed_ = true;
  const std::uint64_t request = ++request_;
  wake();
  const CondVar::Deadline deadline = CondVar::deadline_in(timeout_ns);
  while (status_.connected && answered_request_ < request) {
    if (!changed_.wait_until(mutex_, deadline))
      return !status_.connected || answered_request_ >= request;
  }
  return true;
}

bool AckGate::flush(std::int64_t timeout_ns) {
  const MutexLock lock(mutex_);
  const std::uint64_t request = ++request_;
  wake();
  const CondVar::Deadline deadline = CondVar::deadline_in(timeout_ns);
  while (status_.connected && (answered_request_ < request || !is_flushed_)) {
    if (!changed_.wait_until(mutex_, deadline))
      return !status_.connected || (answered_request_ >= request && is_flushed_);
  }
  return true;
}

bool AckGate::leave(std::int64_t timeout_ns) {
  leave_until_ns_ = parts_.clock.boot_ns() + timeout_ns;
  wake();
  const MutexLock lock(mutex_);
  const CondVar::Deadline deadline = CondVar::deadline_in(timeout_ns);
  while (status_.connected) {
    if (!changed_.wait_until(mutex_, deadline)) return !status_.connected;
  }
  return true;
}

BrokerTerms AckGate::terms() const {
  const MutexLock lock(mutex_);
  return terms_;
}

GateStatus AckGate::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void AckGate::fail(std::string why) {
  const MutexLock lock(mutex_);
  failure_ = std::move(why);
}

void AckGate::run() {
  while (!stopping_) {
    pollfd ready[] = {{listener_.descriptor(), POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (stopping_) return;
    take_wake();
    net::Socket accepted(
        accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted && is_end_of_own_connection(accepted.descriptor())) serve(std::move(accepted));
  }
}

void AckGate::serve(net::Socket accepted) {
  cut_ = false;
  send_at_once(accepted.descriptor());
  const std::unique_ptr<net::Channel> broker = connect_broker();
  if (!broker) return;
  net::Channel inside(std::move(accepted));
  forward(inside, *broker);
}

std::unique_ptr<net::Channel> AckGate::connect_broker() {
  ResolvedAddress to;
  std::optional<std::int64_t> judged_at_ns;
  {
    const MutexLock lock(mutex_);
    to = broker_;
    judged_at_ns = judged_at_ns_;
  }
  const std::int64_t until_ns = parts_.clock.boot_ns() + kConnectNs;
  net::Socket socket(::socket(to.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int descriptor = socket.descriptor();
  const auto* const address = static_cast<const sockaddr*>(static_cast<const void*>(&to.bytes));
  int error = 0;
  if (!socket) {
    error = errno;
  } else if (::connect(descriptor, address, to.size) != 0 && (error = errno) == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait_for(descriptor, POLLOUT, until_ns)) {
      error = ETIMEDOUT;
    } else if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error != 0) {
    fail("cannot connect: " + error_text(error));
    return nullptr;
  }
  send_at_once(descriptor);
  if (!parts_.tls) return net::open_plain(std::move(socket));
  auto channel = tls::TlsClient::open(parts_.tls, std::move(socket), parts_.host, judged_at_ns);
  if (!channel) fail("no memory for TLS");
  return channel;
}

bool AckGate::wait_for(int descriptor, short events, std::int64_t until_ns) {
  while (!stopping_) {
    const std::int64_t left_ns = until_ns - parts_.clock.boot_ns();
    if (left_ns <= 0) return false;
    pollfd ready[] = {{descriptor, events, 0}, {wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, static_cast<int>(left_ns / kNsPerMs + 1)) < 0 && errno != EINTR)
      return false;
    if (ready[0].revents != 0) return true;
    take_wake();
  }
  return false;
}

void AckGate::forward(net::Channel& inside, net::Channel& broker) {
  ProtocolVersion version = ProtocolVersion::V5;
  {
    const MutexLock lock(mutex_);
    version = version_;
  }
  Passage passage{.inside = inside,
                  .broker = broker,
                  .out = {},
                  .in = InwardStream(version, parts_.packet_max_bytes),
                  .acks = HeldAcks(version)};
  while (!stopping_ && !cut_) {
    std::uint64_t request = 0;
    {
      const MutexLock lock(mutex_);
      request = request_;
    }
    keep_alive(passage);
    const Progress sent = move_out(passage);
    const Progress got = move_in(passage);
    note(passage, request);
    if (sent == Progress::Over || got == Progress::Over) break;
    const std::int64_t leave_until_ns = leave_until_ns_;
    if (leave_until_ns != 0 && passage.out.output().empty()) {
      take_leave(passage, leave_until_ns);
      break;
    }
    if (sent == Progress::Moved || got == Progress::Moved) continue;
    if (!wait(passage)) break;
    take_wake();
  }
  note_end(passage);
  if (const std::string why = broker.failure(); !why.empty()) fail("TLS: " + why);
  broker.finish();
}

// A socket that is closed with bytes unread resets its connection, and a broker that sends meets
// that before it has read what was sent to it. So what still comes is read, until it has ended.
void AckGate::take_leave(Passage& passage, std::int64_t until_ns) {
  net::Channel& broker = passage.broker;
  std::string& out = passage.out.output();
  append_leave(out);
  while (net::send_some(broker, out) == net::Outcome::Blocked) {
    if (!wait_for(broker.descriptor(), broker.send_awaits_receive() ? POLLIN : POLLOUT, until_ns))
      return;
  }
  broker.finish();
  while (true) {
    const net::Received got(broker, buffer_);
    if (got.outcome() == net::Outcome::Done) continue;
    if (got.outcome() != net::Outcome::Blocked) return;
    if (!wait_for(broker.descriptor(), broker.receive_awaits_send() ? POLLOUT : POLLIN, until_ns))
      return;
  }
}

AckGate::Progress AckGate::move_out(Passage& passage) {
  OutwardStream& out = passage.out;
  bool moved = false;
  if (!passage.inside_ended && out.output().size() < kBufferBytes) {
    const net::Received got(passage.inside, buffer_);
    if (got.outcome() == net::Outcome::Failed) return Progress::Over;
    passage.inside_ended = got.outcome() == net::Outcome::Closed;
    moved = !got.bytes().empty();
    if (!out.feed(got.bytes())) {
      fail("the MQTT client sent what is no packet of a subscriber");
      return Progress::Over;
    }
    passage.in.expect_answers(out.take_pings());
  }
  passage.acks.release(parts_.ledger.durable(), out.output());
  if (!out.output().empty()) {
    const std::size_t before = out.output().size();
    if (net::send_some(passage.broker, out.output()) == net::Outcome::Failed) return Progress::Over;
    if (out.output().size() < before) {
      passage.sent_ns = parts_.clock.boot_ns();
      moved = true;
    }
  }
  // MQTT knows no half-closed connections.
  if (passage.inside_ended && out.output().empty()) return Progress::Over;
  return moved ? Progress::Moved : Progress::Blocked;
}

AckGate::Progress AckGate::move_in(Passage& passage) {
  InwardStream& in = passage.in;
  bool moved = false;
  if (reads_broker(passage)) {
    const net::Received got(passage.broker, buffer_);
    if (got.outcome() == net::Outcome::Failed) return Progress::Over;
    passage.broker_ended = got.outcome() == net::Outcome::Closed;
    moved = !got.bytes().empty();
    in.feed(got.bytes());
  }
  const std::size_t waited = in.waiting_bytes();
  const bool stop =
      inlet_closed_ || parts_.ledger.full() || passage.out.output().size() >= kBufferBytes;
  if (!in.advance(stop ? InwardStream::Publishes::Wait : InwardStream::Publishes::Take,
                  kBufferBytes)) {
    fail("the broker sent what is no packet");
    return Progress::Over;
  }
  if (in.has_new_terms()) {  // known before paho hears of it
    const BrokerTerms& terms = in.terms();
    // Half of what it allows; paho's own pings come as often as they did.
    passage.ping_every_ns = terms.has_keep_alive ? terms.keep_alive_seconds * kNsPerMs * 500 : 0;
    passage.sent_ns = parts_.clock.boot_ns();
    const MutexLock lock(mutex_);
    terms_ = terms;
  }
  take_messages(passage);
  in.drop_taken();
  moved = moved || in.waiting_bytes() < waited;
  if (!in.output().empty()) {
    const std::size_t before = in.output().size();
    if (net::send_some(passage.inside, in.output()) == net::Outcome::Failed) return Progress::Over;
    moved = moved || in.output().size() < before;
  }
  const bool ended = passage.broker_ended || in.was_ended();
  if (ended && in.output().empty() && !in.is_stopped()) return Progress::Over;
  return moved ? Progress::Moved : Progress::Blocked;
}

bool AckGate::reads_broker(const Passage& passage) {
  const InwardStream& in = passage.in;
  return !passage.broker_ended && (in.waiting_bytes() < kBufferBytes || in.is_message_partial());
}

void AckGate::take_messages(Passage& passage) {
  InwardStream& in = passage.in;
  if (in.take_new_session()) parts_.ledger.new_session();
  passage.out.output() += in.take_answers();
  if (in.messages().empty()) return;
  parts_.ledger.take(in.messages());
  const std::uint64_t position = parts_.ledger.appended();
  const std::int64_t now_ns = parts_.clock.boot_ns();
  for (const IncomingMessage& each : in.messages()) passage.acks.hold(each, position, now_ns);
  const MutexLock lock(mutex_);
  status_.taken += in.messages().size();
  status_.taken_last_ns = parts_.clock.wall_ns();
}

// MQTT 5, 3.2.2.3.14: a client keeps to the broker's Server Keep Alive instead of its own.
void AckGate::keep_alive(Passage& passage) {
  if (passage.ping_every_ns == 0) return;
  const std::int64_t now_ns = parts_.clock.boot_ns();
  if (now_ns - passage.sent_ns < passage.ping_every_ns) return;
  passage.sent_ns = now_ns;
  append_pingreq(passage.out.output());
  passage.in.expect_own_answer();
}

// False: nothing can be waited for.
bool AckGate::wait(const Passage& passage) {
  const auto awaited = [](const net::Channel& channel, bool reads, bool sends) {
    int events = 0;
    if (reads) events |= channel.receive_awaits_send() ? POLLOUT : POLLIN;
    if (sends) events |= channel.send_awaits_receive() ? POLLIN : POLLOUT;
    // The end of a channel that nothing is wanted from would wake poll() for ever.
    const int descriptor = events == 0 ? -1 : channel.descriptor();
    return pollfd{descriptor, static_cast<short>(events), 0};
  };
  const bool reads_inside = !passage.inside_ended && passage.out.output().size() < kBufferBytes;
  pollfd ready[] = {awaited(passage.inside, reads_inside, !passage.in.output().empty()),
                    awaited(passage.broker, reads_broker(passage), !passage.out.output().empty()),
                    pollfd{wake_.descriptor(), POLLIN, 0}};
  int timeout_ms = -1;
  if (passage.ping_every_ns != 0) {
    const std::int64_t left_ns = passage.sent_ns + passage.ping_every_ns - parts_.clock.boot_ns();
    timeout_ms = static_cast<int>(std::max<std::int64_t>(left_ns / kNsPerMs + 1, 1));
  }
  return poll(ready, 3, timeout_ms) >= 0 || errno == EINTR;
}

void AckGate::take_wake() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.descriptor(), &ignored);
}

void AckGate::note(const Passage& passage, std::uint64_t request) {
  const HeldAcks& acks = passage.acks;
  const MutexLock lock(mutex_);
  status_.connected = true;
  status_.held = acks.held();
  status_.held_since_ns = acks.held_since_ns();
  status_.released = released_before_ + acks.released();
  is_flushed_ = passage.out.output().empty() && !acks.holds_up_to(parts_.ledger.durable());
  answered_request_ = request;
  changed_.notify_all();
}

void AckGate::note_end(const Passage& passage) {
  const InwardStream& in = passage.in;
  const MutexLock lock(mutex_);
  released_before_ += passage.acks.released();
  status_.released = released_before_;
  status_.dropped += passage.acks.held();
  status_.held = 0;
  status_.held_since_ns = 0;
  status_.connected = false;
  ending_ = {.was_open = true,
             .answered = in.was_connected(),
             .version_refused = in.version_refused(),
             .said_why = in.was_ended(),
             .taken_over = in.taken_over()};
  if (!in.reason().empty()) failure_ = in.reason();
  changed_.notify_all();
}

}  // namespace edgecase::mqtt
