#include "net/channel.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "wire/authority.h"

namespace edgecase::net {
namespace {

Outcome outcome_of(int error) {
  return error == EAGAIN || error == EWOULDBLOCK ? Outcome::Blocked : Outcome::Failed;
}

}  // namespace

Transfer Channel::receive(char* buffer, std::size_t size) {
  while (true) {
    const ssize_t n = recv(descriptor(), buffer, size, 0);
    if (n > 0) return {Outcome::Done, static_cast<std::size_t>(n)};
    if (n == 0) return {Outcome::Closed, 0};
    if (errno != EINTR) return {outcome_of(errno), 0};
  }
}

Transfer Channel::send(std::string_view bytes) {
  while (true) {
    const ssize_t n = ::send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return {Outcome::Done, static_cast<std::size_t>(n)};
    if (errno != EINTR) return {outcome_of(errno), 0};
  }
}

void Channel::finish() {
  shutdown(descriptor(), SHUT_WR);
}

Received::~Received() {
  ::explicit_bzero(room_.data(), transfer_.bytes);
}

void drop_front(std::string& bytes, std::size_t count) {
  if (count == 0) return;
  const std::size_t before = bytes.size();
  bytes.erase(0, count);
  const std::size_t left = bytes.size();
  // Within what the string has, without its growing.
  bytes.resize(before);
  ::explicit_bzero(bytes.data() + left, before - left);
  bytes.resize(left);
}

Outcome send_some(Channel& channel, std::string& output) {
  std::size_t sent = 0;
  Outcome outcome = Outcome::Done;
  while (sent < output.size() && outcome == Outcome::Done) {
    const Transfer transfer = channel.send(std::string_view(output).substr(sent));
    outcome = transfer.outcome;
    sent += transfer.bytes;
  }
  drop_front(output, sent);
  return outcome;
}

std::unique_ptr<Channel> open_plain(Socket socket) {
  return std::make_unique<Channel>(std::move(socket));
}

namespace {

constexpr int kBacklog = 128;
constexpr mode_t kSocketMode = 0660;
// A port that the system chose for one loopback address may be taken at the other.
constexpr int kPortsTried = 64;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

Status failed(const std::string& address, std::string_view what, int error) {
  std::string message = address + ": " + std::string(what) + ": " + error_text(error);
  if (error == EADDRINUSE) return already_exists(std::move(message));
  if (error == EACCES || error == EPERM) return not_allowed(std::move(message));
  // The machine has no such address, or nothing of its kind at all.
  if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT) {
    return invalid_argument(std::move(message));
  }
  return io_error(std::move(message));
}

// The functions of sockets take the general type, which every family's begins like.
const sockaddr* general(const void* address) {
  return static_cast<const sockaddr*>(address);
}

// Only a socket on which connecting is refused is stale; any doubt leaves it alone.
Status remove_stale_socket(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    return errno == ENOENT ? ok() : failed(path, "cannot look at it", errno);
  }
  if (!S_ISSOCK(found.st_mode)) return already_exists(path + ": exists and is not a socket");
  const Socket probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return failed(path, "cannot make a socket", errno);
  if (connect(probe.descriptor(), general(&address), sizeof(address)) == 0 || errno == EAGAIN) {
    return already_exists(path + ": another daemon answers on this socket");
  }
  if (errno != ECONNREFUSED) return failed(path, "cannot tell whether it is in use", errno);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, "cannot replace it", errno);
  return ok();
}

bool is_loopback_address(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof(v4));
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &peer, sizeof(v6));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return v6.sin6_addr.s6_addr[12] == 127;
  return peer.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace

bool poll_control(const Socket& poll, int operation, int descriptor, std::uint32_t events,
                  std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(poll.descriptor(), operation, descriptor, &event) == 0;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Socket> listen_on_unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return invalid_argument(path + ": a socket's path has at most " +
                            std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  EC_TRY(remove_stale_socket(path, address));
  Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return failed(path, "cannot make a socket", errno);
  if (bind(listener.descriptor(), general(&address), sizeof(address)) != 0) {
    return failed(path, "cannot listen", errno);
  }
  // Nobody can connect before listen(), so the mode is right from the first connection on.
  if (chmod(path.c_str(), kSocketMode) != 0 || listen(listener.descriptor(), kBacklog) != 0) {
    return failed(path, "cannot listen", errno);
  }
  return listener;
}

std::uint64_t inode_of(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

void remove_unix_socket(const std::string& path, std::uint64_t inode) {
  if (inode != 0 && inode_of(path) == inode) unlink(path.c_str());
}

Result<Socket> listen_on_tcp(const std::string& host, std::uint16_t port) {
  const std::string text =
      (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return invalid_argument(text + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  Status last = invalid_argument(text + ": no such address");
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket listener(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (listener &&
        setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        bind(listener.descriptor(), address->ai_addr, address->ai_addrlen) == 0 &&
        listen(listener.descriptor(), kBacklog) == 0) {
      return listener;
    }
    last = failed(text, "cannot listen", errno);
  }
  return last;
}

Result<std::vector<Socket>> listen_on_all(const std::string& host, std::uint16_t port) {
  std::vector<Socket> listeners;
  if (!wire::is_localhost(host)) {
    EC_ASSIGN_OR_RETURN(Socket only, listen_on_tcp(host, port));
    listeners.push_back(std::move(only));
    return listeners;
  }
  for (int tried = 0; tried < kPortsTried; ++tried) {
    Result<Socket> four = listen_on_tcp("127.0.0.1", port);
    // A family that this machine does not have; in use, or not allowed, is an error of the other.
    const bool has_four = four.ok() || four.status().code() != StatusCode::InvalidArgument;
    if (has_four && !four.ok()) return four.status();
    Result<Socket> six = listen_on_tcp("::1", four.ok() ? tcp_port_of(*four) : port);
    const StatusCode code = six.status().code();
    if (!six.ok() && port == 0 && four.ok() && code == StatusCode::AlreadyExists) continue;
    const bool has_six = six.ok() || code != StatusCode::InvalidArgument;
    if (!six.ok() && (has_six || !four.ok())) return six.status();
    if (four.ok()) listeners.push_back(*std::move(four));
    if (six.ok()) listeners.push_back(*std::move(six));
    return listeners;
  }
  return already_exists("localhost:0: no port is free at both 127.0.0.1 and ::1");
}

std::string loopback_host() {
  return listen_on_tcp("127.0.0.1", 0).ok() ? "127.0.0.1" : "::1";
}

std::uint16_t tcp_port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener.descriptor(), static_cast<sockaddr*>(static_cast<void*>(&address)),
                  &size) != 0) {
    return 0;
  }
  // The port lies at the same place in both families.
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof(v4));
  return ntohs(v4.sin_port);
}

auth::Principal principal_of(int connection, ListenerKind kind) {
  if (kind == ListenerKind::UnixSocket) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    const bool known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    return {auth::PrincipalKind::LocalSocket,
            known ? "uid " + std::to_string(peer.uid) : std::string("local")};
  }
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  auto* const address = static_cast<sockaddr*>(static_cast<void*>(&peer));
  if (getpeername(connection, address, &size) != 0) return {auth::PrincipalKind::Remote, "unknown"};
  char name[NI_MAXHOST] = "unknown";
  getnameinfo(address, size, name, sizeof(name), nullptr, 0, NI_NUMERICHOST);
  return {is_loopback_address(peer) ? auth::PrincipalKind::Loopback : auth::PrincipalKind::Remote,
          name};
}

}  // namespace edgecase::net
