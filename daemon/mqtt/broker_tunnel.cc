#include "mqtt/broker_tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

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

BrokerTunnel::BrokerTunnel(std::shared_ptr<const tls::TlsClient> client, std::string host,
                           Clock& clock)
    : client_(std::move(client)), host_(std::move(host)), clock_(clock) {}

Result<std::unique_ptr<BrokerTunnel>> BrokerTunnel::open(
    std::shared_ptr<const tls::TlsClient> client, std::string host, Clock& clock) {
  std::unique_ptr<BrokerTunnel> tunnel(new BrokerTunnel(std::move(client), std::move(host), clock));
  EC_TRY(tunnel->listen());
  try {
    tunnel->thread_ = std::thread([self = tunnel.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return unavailable(std::string("cannot start the thread of the broker's tunnel: ") +
                       error.what());
  }
  pthread_setname_np(tunnel->thread_.native_handle(), "mqtt-tunnel");
  return tunnel;
}

Status BrokerTunnel::listen() {
  wake_ = net::Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return io_error("no event for the broker's tunnel: " + error_text(errno));
  EC_ASSIGN_OR_RETURN(listener_, net::listen_on_tcp("127.0.0.1", 0));
  EC_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> found,
                      resolve_broker({"127.0.0.1", net::tcp_port_of(listener_)}));
  address_ = found.front();
  return ok();
}

BrokerTunnel::~BrokerTunnel() {
  stopping_ = true;
  if (wake_) eventfd_write(wake_.descriptor(), 1);
  if (thread_.joinable()) thread_.join();
}

void BrokerTunnel::aim(const ResolvedAddress& broker) {
  const std::lock_guard lock(mutex_);
  broker_ = broker;
  failure_.clear();
}

std::string BrokerTunnel::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

void BrokerTunnel::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(why);
}

void BrokerTunnel::run() {
  while (!stopping_) {
    pollfd ready[] = {{listener_.descriptor(), POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (stopping_) return;
    net::Socket accepted(
        accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted && is_end_of_own_connection(accepted.descriptor())) serve(std::move(accepted));
  }
}

void BrokerTunnel::serve(net::Socket accepted) {
  send_at_once(accepted.descriptor());
  const std::unique_ptr<net::Channel> broker = connect_broker();
  if (!broker) return;
  net::Channel inside(std::move(accepted));
  forward(inside, *broker);
}

std::unique_ptr<net::Channel> BrokerTunnel::connect_broker() {
  ResolvedAddress to;
  {
    const std::lock_guard lock(mutex_);
    to = broker_;
  }
  const std::int64_t until_ns = clock_.boot_ns() + kConnectNs;
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
  const bool any_time = clock_.trust() == ClockTrust::Untrusted;
  auto channel = tls::TlsClient::open(client_, std::move(socket), host_, any_time);
  if (!channel) fail("no memory for TLS");
  return channel;
}

bool BrokerTunnel::wait_for(int descriptor, short events, std::int64_t until_ns) {
  while (!stopping_) {
    const std::int64_t left_ns = until_ns - clock_.boot_ns();
    if (left_ns <= 0) return false;
    pollfd ready[] = {{descriptor, events, 0}, {wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, static_cast<int>(left_ns / kNsPerMs + 1)) < 0 && errno != EINTR)
      return false;
    if (ready[0].revents != 0) return true;
  }
  return false;
}

void BrokerTunnel::forward(net::Channel& inside, net::Channel& broker) {
  Stream out;
  Stream in;
  while (!stopping_) {
    const Progress sent = move(inside, broker, out);
    const Progress got = move(broker, inside, in);
    if (sent == Progress::Over || got == Progress::Over) break;
    if (sent == Progress::Moved || got == Progress::Moved) continue;
    if (!wait(inside, out, broker, in)) break;
  }
  if (const std::string why = broker.failure(); !why.empty()) fail("TLS: " + why);
  broker.finish();
}

BrokerTunnel::Progress BrokerTunnel::move(net::Channel& from, net::Channel& to, Stream& stream) {
  bool moved = false;
  if (!stream.ended && stream.bytes.size() < kBufferBytes) {
    const std::size_t held = stream.bytes.size();
    stream.bytes.resize(kBufferBytes);
    const net::Transfer transfer = from.receive(stream.bytes.data() + held, kBufferBytes - held);
    stream.bytes.resize(held + transfer.bytes);
    if (transfer.outcome == net::Outcome::Failed) return Progress::Over;
    stream.ended = transfer.outcome == net::Outcome::Closed;
    moved = transfer.bytes > 0;
  }
  if (!stream.bytes.empty()) {
    const std::size_t held = stream.bytes.size();
    if (net::send_some(to, stream.bytes) == net::Outcome::Failed) return Progress::Over;
    moved = moved || stream.bytes.size() < held;
  }
  // MQTT knows no half-closed connections.
  if (stream.ended && stream.bytes.empty()) return Progress::Over;
  return moved ? Progress::Moved : Progress::Blocked;
}

// False: nothing can be waited for.
bool BrokerTunnel::wait(const net::Channel& inside, const Stream& out, const net::Channel& broker,
                        const Stream& in) {
  const auto awaited = [](const net::Channel& channel, const Stream& from, const Stream& to) {
    const bool reads = !from.ended && from.bytes.size() < kBufferBytes;
    const bool sends = !to.bytes.empty();
    int events = 0;
    if (reads) events |= channel.receive_awaits_send() ? POLLOUT : POLLIN;
    if (sends) events |= channel.send_awaits_receive() ? POLLIN : POLLOUT;
    // Of one that nothing is wanted from, an end would wake poll() for ever.
    const int descriptor = events == 0 ? -1 : channel.descriptor();
    return pollfd{descriptor, static_cast<short>(events), 0};
  };
  pollfd ready[] = {awaited(inside, out, in), awaited(broker, in, out),
                    pollfd{wake_.descriptor(), POLLIN, 0}};
  return poll(ready, 3, -1) >= 0 || errno == EINTR;
}

}  // namespace edgecase::mqtt
