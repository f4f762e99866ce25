// Sockets that listen or were accepted (Socket), and bytes over a connected one that does not block
// (Channel): plain here, TLS in tls/tls_ends.h. No call of a channel waits or raises SIGPIPE. And
// how long to wait before a peer is tried again (Backoff). One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/authorize.h"
#include "edgecase/machine.h"
#include "edgecase/status.h"

namespace edgecase::net {

// Closes its file descriptor; -1 is none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// Tells epoll what to look for at a descriptor (epoll_ctl), and by which id it is told of.
bool poll_control(const Socket& poll, int operation, int descriptor, std::uint32_t events,
                  std::uint64_t id);

// Group members may connect, others not (0660). A socket file that nobody answers on is replaced;
// AlreadyExists when somebody does, or when `path` is something else.
Result<Socket> listen_on_unix_socket(const std::string& path);
// The number of the file at `path`, by which remove_unix_socket() tells its own from another's.
std::uint64_t inode_of(const std::string& path);
// Removes `path` if it still is that file.
void remove_unix_socket(const std::string& path, std::uint64_t inode);

// `host`: an address or a name of this machine. Port 0: the system chooses.
Result<Socket> listen_on_tcp(const std::string& host, std::uint16_t port);
// The same, but `localhost` is 127.0.0.1 and ::1 on one port, whatever the hosts file says of it;
// one of them alone where this machine has no other. At least one socket.
Result<std::vector<Socket>> listen_on_all(const std::string& host, std::uint16_t port);
// A loopback address that this machine has: 127.0.0.1, or ::1 where that is the only one.
std::string loopback_host();
std::uint16_t tcp_port_of(const Socket& listener);

enum class ListenerKind : unsigned char { UnixSocket, Tcp };
// "uid 1000" on the Unix socket, the address otherwise.
auth::Principal principal_of(int connection, ListenerKind kind);

enum class Outcome : unsigned char {
  Done,
  Blocked,  // nothing now: wait for what blocked_on_send() says
  Closed,   // the peer sends nothing more
  Failed,   // the connection is of no use any more
};

struct Transfer {
  Outcome outcome = Outcome::Done;
  std::size_t bytes = 0;  // of a Done transfer, at least 1
};

class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int descriptor() const { return socket_.descriptor(); }

  // `size` is at least 1.
  virtual Transfer receive(char* buffer, std::size_t size);
  // Takes a part of `bytes`, which are at least one. After Blocked the next call must begin with
  // the same bytes.
  virtual Transfer send(std::string_view bytes);
  // Nothing more will be sent; what the peer still sends can be received.
  virtual void finish();

  // After Failed: why, in words, where that is known.
  virtual std::string failure() const { return {}; }

  // Once bytes were received: what a certificate that the peer has shown, and that is good, calls
  // it.
  virtual std::vector<std::string> peer_names() const { return {}; }

  // True: receive() has bytes, though the socket may not become readable.
  virtual bool holds_received() const { return false; }
  // What the last receive(), or send(), that was Blocked waits for: true, until the socket takes
  // bytes; false, until it has some. Both can differ from what was called while TLS agrees on keys.
  virtual bool receive_awaits_send() const { return false; }
  virtual bool send_awaits_receive() const { return false; }

 private:
  Socket socket_;
};

// What has come into a buffer that is used again and again. It is wiped when this goes: a value
// that is erased later is not found there.
class Received {
 public:
  // `room` is at least one byte; borrowed.
  Received(Channel& channel, std::span<char> room)
      : room_(room), transfer_(channel.receive(room.data(), room.size())) {}
  ~Received();
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  Outcome outcome() const { return transfer_.outcome; }
  std::string_view bytes() const { return {room_.data(), transfer_.bytes}; }

 private:
  const std::span<char> room_;
  const Transfer transfer_;
};

// The first `count` bytes go, and nothing of them stays behind the end: a buffer that is empty is
// kept for later.
void drop_front(std::string& bytes, std::size_t count);

// Sends what is taken of `output` and removes it. Done: all of it. Never Closed.
Outcome send_some(Channel& channel, std::string& output);

std::unique_ptr<Channel> open_plain(Socket socket);

// How a listener makes channels of the sockets it accepts. Null: it cannot, and the socket is
// closed.
struct ChannelMaker {
  std::function<std::unique_ptr<Channel>(Socket)> open = open_plain;
  std::uint64_t channel_bytes = 0;  // that a channel takes beside its socket
};

// The wait before the next attempt to reach a broker or a target: full jitter, so that many clients
// of one that comes back do not all arrive at once. Not thread-safe.

class Backoff {
 public:
  static constexpr std::int64_t kFirstNs = 500'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;
  static constexpr std::int64_t kLocalMaxNs = 1'000'000'000;  // of one on this machine
  static constexpr std::int64_t kLeastNs = 20'000'000;        // never a busy loop

  explicit Backoff(Random& random) : random_(random) {}

  // Uniform between kLeastNs and a bound that starts at kFirstNs and doubles up to kMaxNs, and is
  // never over `max_ns`.
  std::int64_t next_ns(std::int64_t max_ns = kMaxNs) {
    const std::int64_t bound = std::min(bound_ns_, max_ns);
    bound_ns_ = std::min(bound_ns_ * 2, kMaxNs);
    const auto span = static_cast<std::uint64_t>(bound - kLeastNs);
    return kLeastNs + static_cast<std::int64_t>(random_.next() % (span + 1));
  }
  void reset() { bound_ns_ = kFirstNs; }

 private:
  Random& random_;
  std::int64_t bound_ns_ = kFirstNs;
};

}  // namespace edgecase::net
