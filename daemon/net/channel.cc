#include "net/channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

}  // namespace edgecase::net
