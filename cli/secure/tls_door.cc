#include "secure/tls_door.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "edgecase/machine.h"
#include "wire/authority.h"

namespace edgecase::cli {
namespace {

constexpr std::size_t kBufferBytes = 64u << 10;  // each way
constexpr int kConnectMs = 10'000;
constexpr int kBacklog = 4;

// What goes one way.
struct Stream {
  std::string bytes;
  bool ended = false;
};
enum class Step : unsigned char { Blocked, Moved, Over };

Step move(net::Channel& from, net::Channel& to, Stream& stream) {
  bool moved = false;
  if (!stream.ended && stream.bytes.size() < kBufferBytes) {
    const std::size_t held = stream.bytes.size();
    stream.bytes.resize(kBufferBytes);
    const net::Transfer transfer = from.receive(stream.bytes.data() + held, kBufferBytes - held);
    stream.bytes.resize(held + transfer.bytes);
    // What came before the connection broke still reaches the other side.
    stream.ended =
        transfer.outcome == net::Outcome::Closed || transfer.outcome == net::Outcome::Failed;
    moved = transfer.bytes > 0;
  }
  if (!stream.bytes.empty()) {
    const std::size_t held = stream.bytes.size();
    if (net::send_some(to, stream.bytes) == net::Outcome::Failed) return Step::Over;
    moved = moved || stream.bytes.size() < held;
  }
  if (stream.ended && stream.bytes.empty()) return Step::Over;
  return moved ? Step::Moved : Step::Blocked;
}

pollfd awaited(const net::Channel& channel, const Stream& from, const Stream& to) {
  int events = 0;
  if (!from.ended && from.bytes.size() < kBufferBytes) {
    events |= channel.receive_awaits_send() ? POLLOUT : POLLIN;
  }
  if (!to.bytes.empty()) events |= channel.send_awaits_receive() ? POLLIN : POLLOUT;
  // The end of a channel that nothing is wanted from would wake poll() for ever.
  return {events == 0 ? -1 : channel.descriptor(), static_cast<short>(events), 0};
}

bool connect_within_limit(int descriptor, const addrinfo& to) {
  if (::connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready = {descriptor, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return poll(&ready, 1, kConnectMs) > 0 &&
         getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// The name is no file: whoever is on this machine finds it, and may not come in.
bool is_of_this_process(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == getpid();
}

}  // namespace

TlsDoor::TlsDoor(std::shared_ptr<const tls::TlsClient> client, std::string host, std::string port)
    : client_(std::move(client)), host_(std::move(host)), port_(std::move(port)) {}

Result<std::unique_ptr<TlsDoor>> TlsDoor::open(const std::string& place,
                                               const std::string& authorities) {
  auto at = wire::parse_authority(place);
  if (!at.ok()) return invalid_argument("\"https://" + place + "\" " + at.status().message());
  constexpr std::uint16_t kHttps = 443;
  EC_ASSIGN_OR_RETURN(auto client, tls::TlsClient::load(authorities, {}));
  std::unique_ptr<TlsDoor> door(new TlsDoor(std::move(client), std::move(at->host),
                                            std::to_string(at->port.value_or(kHttps))));
  EC_TRY(door->listen());
  try {
    door->thread_ = std::thread([self = door.get()] { self->run(); });
  } catch (const std::system_error&) {
    return busy("no thread can be started: " + limit_of_threads());
  }
  pthread_setname_np(door->thread_.native_handle(), "tls-door");
  return door;
}

Status TlsDoor::listen() {
  wake_ = net::Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return io_error(std::string("no event: ") + std::strerror(errno));
  listener_ = net::Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An address that ends after its family asks the kernel for a name that nobody has.
  socklen_t size = offsetof(sockaddr_un, sun_path);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener_ || ::bind(listener_.descriptor(), generic, size) != 0 ||
      ::listen(listener_.descriptor(), kBacklog) != 0) {
    return io_error(std::string("no socket for TLS: ") + std::strerror(errno));
  }
  size = sizeof address;
  if (getsockname(listener_.descriptor(), generic, &size) != 0) {
    return io_error(std::string("no socket for TLS: ") + std::strerror(errno));
  }
  name_.assign(address.sun_path, size - offsetof(sockaddr_un, sun_path));
  return ok();
}

TlsDoor::~TlsDoor() {
  stopping_ = true;
  if (wake_) eventfd_write(wake_.descriptor(), 1);
  if (thread_.joinable()) thread_.join();
}

void TlsDoor::run() {
  while (!stopping_) {
    pollfd ready[] = {{listener_.descriptor(), POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (stopping_) return;
    net::Socket accepted(
        accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted || !is_of_this_process(accepted.descriptor())) continue;
    net::Socket socket = connect_daemon();
    if (!socket) {
      note({DoorFailure::Kind::NotReached, {}});
      continue;
    }
    const auto daemon = tls::TlsClient::open(client_, std::move(socket), host_, std::nullopt);
    if (!daemon) continue;
    net::Channel inside(std::move(accepted));
    forward(inside, *daemon);
  }
}

net::Socket TlsDoor::connect_daemon() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found) != 0) return {};
  net::Socket connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    net::Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket || !connect_within_limit(socket.descriptor(), *each)) continue;
    const int yes = 1;
    setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    connected = std::move(socket);
  }
  freeaddrinfo(found);
  return connected;
}

void TlsDoor::forward(net::Channel& inside, net::Channel& daemon) {
  Stream out;
  Stream in;
  while (!stopping_) {
    const Step sent = move(inside, daemon, out);
    const Step got = move(daemon, inside, in);
    if (sent == Step::Over || got == Step::Over) break;
    if (sent == Step::Moved || got == Step::Moved) continue;
    pollfd ready[] = {awaited(inside, out, in), awaited(daemon, in, out),
                      pollfd{wake_.descriptor(), POLLIN, 0}};
    if (poll(ready, 3, -1) < 0 && errno != EINTR) break;
  }
  // Said before our end goes: who asks because of that finds it.
  if (std::string why = daemon.failure(); !why.empty()) {
    note({DoorFailure::Kind::NoTls, std::move(why)});
  }
  daemon.finish();
}

void TlsDoor::note(DoorFailure failure) {
  const MutexLock lock(mutex_);
  failure_ = std::move(failure);
}

DoorFailure TlsDoor::take_failure() {
  const MutexLock lock(mutex_);
  return std::exchange(failure_, {});
}

}  // namespace edgecase::cli
