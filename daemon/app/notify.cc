#include "app/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace edgecase::app {
namespace {

std::int64_t whole_number(const char* text) {
  std::int64_t value = 0;
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end && value > 0 ? value : 0;
}

}  // namespace

Notifier Notifier::from_environment() {
  const char* socket_path = std::getenv("NOTIFY_SOCKET");
  std::int64_t microseconds = whole_number(std::getenv("WATCHDOG_USEC"));
  // The variables may have been meant for our parent.
  const std::int64_t pid = whole_number(std::getenv("WATCHDOG_PID"));
  if (pid != 0 && pid != getpid()) microseconds = 0;
  return {socket_path == nullptr ? "" : socket_path, microseconds * 1000 / 2};
}

void Notifier::send(std::string_view message) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path_.size());
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  // Nobody to tell when systemd does not listen.
  [[maybe_unused]] const ssize_t sent = sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
                                               reinterpret_cast<const sockaddr*>(&storage), size);
  close(fd);
}

}  // namespace edgecase::app
