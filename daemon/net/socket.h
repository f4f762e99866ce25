// Listening sockets, and who is at the other end of an accepted one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "auth/authorize.h"
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

}  // namespace edgecase::net
