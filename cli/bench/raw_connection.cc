#include "bench/raw_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

// tidy: allow include: HTTP over TLS is measured with the end that the daemon has itself
#include "tls/tls_ends.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::size_t kPieceMaxBytes = 64u << 10;

Status socket_error(const char* what) {
  return unavailable(std::string(what) + ": " + std::generic_category().message(errno));
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

}  // namespace

// --- RawConnection ---

RawConnection::RawConnection() = default;

RawConnection::~RawConnection() {
  close();
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), channel_(std::move(other.channel_)) {}

RawConnection& RawConnection::operator=(RawConnection&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(channel_, other.channel_);
  return *this;
}

Status RawConnection::open(const Endpoint& endpoint) {
  close();
  const bool local = !endpoint.socket_path.empty();
  socket_ = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return socket_error("cannot open a socket");
  int result = -1;
  if (local) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.socket_path.size() >= sizeof address.sun_path) {
      return invalid_argument(endpoint.socket_path + " is too long for a socket");
    }
    std::memcpy(address.sun_path, endpoint.socket_path.data(), endpoint.socket_path.size());
    result = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(endpoint.port);
    result = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (result == 0) return endpoint.tls ? open_tls(endpoint) : ok();
  const Status status = socket_error("cannot connect");
  close();
  return status;
}

void RawConnection::close() {
  if (!channel_ && socket_ >= 0) ::close(socket_);
  channel_.reset();
  socket_ = -1;
}

Status RawConnection::open_tls(const Endpoint& endpoint) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  channel_ = tls::TlsClient::open(endpoint.tls, net::Socket(socket_), "localhost", std::nullopt);
  if (channel_) return ok();
  socket_ = -1;
  return unavailable("no memory for TLS");
}

bool RawConnection::wait_for(bool sending) const {
  pollfd wait{socket_, static_cast<short>(sending ? POLLOUT : POLLIN), 0};
  return poll(&wait, 1, -1) > 0 || errno == EINTR;
}

Result<std::size_t> RawConnection::receive_tls(char* buffer, std::size_t size) {
  while (true) {
    const net::Transfer got = channel_->receive(buffer, size);
    if (got.outcome == net::Outcome::Done) return got.bytes;
    if (got.outcome == net::Outcome::Closed) return std::size_t{0};
    if (got.outcome == net::Outcome::Failed || !wait_for(channel_->receive_awaits_send()))
      return unavailable("cannot receive over TLS: " + channel_->failure());
  }
}

Status RawConnection::send(std::string_view bytes) {
  while (channel_ && !bytes.empty()) {
    const net::Transfer sent = channel_->send(bytes);
    bytes.remove_prefix(sent.bytes);
    if (sent.outcome == net::Outcome::Done) continue;
    if (sent.outcome != net::Outcome::Blocked || !wait_for(!channel_->send_awaits_receive()))
      return unavailable("cannot send over TLS: " + channel_->failure());
  }
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return socket_error("cannot send");
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return ok();
}

Result<std::size_t> RawConnection::receive(std::string& buffer, std::size_t size_max) {
  // To make `buffer` larger first would write zeros over all that it might take, for each answer.
  thread_local std::array<char, kPieceMaxBytes> piece;
  const std::size_t wanted = std::min(size_max, piece.size());
  if (channel_) {
    EC_ASSIGN_OR_RETURN(const std::size_t received, receive_tls(piece.data(), wanted));
    buffer.append(piece.data(), received);
    return received;
  }
  ssize_t got = -1;
  do {
    got = ::recv(socket_, piece.data(), wanted, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return socket_error("cannot receive");
  buffer.append(piece.data(), static_cast<std::size_t>(got));
  return static_cast<std::size_t>(got);
}

bool RawConnection::readable(int milliseconds) const {
  if (channel_ && channel_->holds_received()) return true;
  pollfd wait{socket_, POLLIN, 0};
  return poll(&wait, 1, milliseconds) > 0;
}

// --- HttpClient ---

class HttpClient::BodySink {
 public:
  explicit BodySink(const std::function<void(std::string_view)>& next)
      : next_(next), start_(std::chrono::steady_clock::now()) {}
  void take(std::string_view piece) {
    if (piece.empty()) return;
    if (bytes == 0) first_ns = (std::chrono::steady_clock::now() - start_).count();
    bytes += piece.size();
    if (next_) next_(piece);
  }
  std::uint64_t bytes = 0;
  std::int64_t first_ns = 0;

 private:
  const std::function<void(std::string_view)>& next_;
  std::chrono::steady_clock::time_point start_;
};

std::string http_request(std::string_view method, std::string_view path_and_query,
                         std::string_view headers, std::string_view body) {
  std::string request(method);
  request.append(" ").append(path_and_query).append(" HTTP/1.1\r\nHost: localhost\r\n");
  request.append(headers);
  if (!body.empty() || method != "GET") {
    request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  }
  return request.append("\r\n").append(body);
}

Status HttpClient::need(std::size_t bytes) {
  while (buffer_.size() < bytes) {
    EC_ASSIGN_OR_RETURN(const std::size_t got, connection_.receive(buffer_));
    if (got == 0) return unavailable("the server closed the connection");
  }
  return ok();
}

Result<std::string> HttpClient::take_line() {
  std::size_t end = std::string::npos;
  while ((end = buffer_.find("\r\n")) == std::string::npos) EC_TRY(need(buffer_.size() + 1));
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

Result<HttpClient::Head> HttpClient::read_head() {
  Head head;
  EC_ASSIGN_OR_RETURN(std::string line, take_line());
  if (line.size() < 12 || !line.starts_with("HTTP/1.")) return io_error("no HTTP answer: " + line);
  std::from_chars(line.data() + 9, line.data() + 12, head.status);
  for (;;) {
    EC_ASSIGN_OR_RETURN(line, take_line());
    if (line.empty()) return head;
    const std::size_t colon = line.find(':');
    const std::string_view name = std::string_view(line).substr(0, colon);
    std::string_view value = std::string_view(line).substr(std::min(line.size(), colon + 1));
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (equals_ignoring_case(name, "content-length")) {
      std::from_chars(value.data(), value.data() + value.size(), head.length);
    } else if (equals_ignoring_case(name, "transfer-encoding")) {
      head.chunked = equals_ignoring_case(value, "chunked");
    } else if (equals_ignoring_case(name, "connection")) {
      head.close = equals_ignoring_case(value, "close");
    }
  }
}

Status HttpClient::read_length(std::uint64_t length, BodySink& sink) {
  while (length > 0) {
    if (buffer_.empty()) EC_TRY(need(1));
    const std::size_t take = std::min<std::uint64_t>(length, buffer_.size());
    sink.take(std::string_view(buffer_).substr(0, take));
    buffer_.erase(0, take);
    length -= take;
  }
  return ok();
}

Status HttpClient::read_chunks(BodySink& sink) {
  for (;;) {
    EC_ASSIGN_OR_RETURN(const std::string line, take_line());
    std::uint64_t size = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (parsed.ec != std::errc()) return io_error("no chunk: " + line);
    EC_TRY(read_length(size, sink));
    EC_ASSIGN_OR_RETURN(const std::string end, take_line());
    if (size == 0) return ok();
  }
}

Result<HttpAnswer> HttpClient::exchange(std::string_view request,
                                        const std::function<void(std::string_view)>& sink) {
  // A server may close an idle connection at any time: the first failure of an old one is no news.
  for (bool fresh = !connection_.is_open();; fresh = true) {
    if (fresh) {
      buffer_.clear();
      EC_TRY(connection_.open(endpoint_));
    }
    BodySink body(sink);
    Status sent = connection_.send(request);
    auto head = sent.ok() ? read_head() : Result<Head>(std::move(sent));
    if (!head.ok()) {
      connection_.close();
      if (fresh) return head.status();
      continue;
    }
    if (head->chunked) {
      EC_TRY(read_chunks(body));
    } else {
      EC_TRY(read_length(head->length, body));
    }
    if (head->close) connection_.close();
    return HttpAnswer{head->status, body.bytes, body.first_ns};
  }
}

Result<std::string> HttpClient::get(const std::string& path_and_query) {
  std::string body;
  EC_ASSIGN_OR_RETURN(const HttpAnswer answer,
                      exchange(http_request("GET", path_and_query, "", ""),
                               [&body](std::string_view piece) { body.append(piece); }));
  if (answer.status / 100 != 2) {
    return unavailable("HTTP " + std::to_string(answer.status) + ": " + body.substr(0, 200));
  }
  return body;
}

}  // namespace edgecase::cli::bench
