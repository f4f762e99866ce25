#include "forward/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "edgecase/machine.h"
#include "wire/authority.h"
#include "wire/contract.h"
#include "wire/encoding.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr int kLookMs = 100;  // how soon a wait sees that it is to stop
// A kept connection that breaks off so soon was closed before.
constexpr std::int64_t kIdleCloseNs = 2'000'000'000;
// Whoever stopped taking the request has answered by then, or will not.
constexpr std::int64_t kEarlyAnswerNs = 2'000'000'000;
constexpr std::size_t kReceiveBytes = 16u << 10;
constexpr short kReadable = POLLIN, kWritable = POLLOUT, kEither = POLLIN | POLLOUT;
constexpr std::size_t kChunkLineMaxBytes = 256;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// The value of a header; empty where there is none.
std::string_view header_of(std::string_view head, std::string_view name) {
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos) {
    std::string_view line = head.substr(at + 2);
    at = line.find("\r\n") == std::string_view::npos ? at : at + 2 + line.find("\r\n");
    line = line.substr(0, line.find("\r\n"));
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && is_same_word(line.substr(0, colon), name)) {
      line.remove_prefix(colon + 1);
      while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
      while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
      return line;
    }
  }
  return {};
}

// What a header may hold of what a log shows.
std::string plain_text(std::string_view text) {
  std::string plain(text.substr(0, 256));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return plain;
}

// "HTTP/1.1 204 No Content"; 0: it is none.
int status_of(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12 || head[8] != ' ') return 0;
  int status = 0;
  const auto [end, error] = std::from_chars(head.data() + 9, head.data() + 12, status);
  return error == std::errc() && end == head.data() + 12 && status >= 100 ? status : 0;
}

std::string error_words(int error) {
  return std::strerror(error);
}

}  // namespace

Result<std::optional<Proxy>> proxy_of(std::string_view https_proxy, std::string_view no_proxy,
                                      std::string_view host) {
  if (https_proxy.empty()) return std::optional<Proxy>();
  while (!no_proxy.empty()) {
    std::string_view each = no_proxy.substr(0, no_proxy.find(','));
    no_proxy.remove_prefix(std::min(each.size() + 1, no_proxy.size()));
    while (each.starts_with(' ') || each.starts_with('.')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (each.empty()) continue;
    const bool is_below = host.size() > each.size() && host[host.size() - each.size() - 1] == '.' &&
                          is_same_word(host.substr(host.size() - each.size()), each);
    if (each == "*" || is_same_word(host, each) || is_below) return std::optional<Proxy>();
  }
  constexpr std::string_view kScheme = "http://";
  const auto wrong = [] {
    return invalid_argument("https_proxy is no proxy, use http://host:port");
  };
  if (https_proxy.starts_with(kScheme)) https_proxy.remove_prefix(kScheme.size());
  if (https_proxy.find("://") != std::string_view::npos) return wrong();
  https_proxy = https_proxy.substr(0, https_proxy.find('/'));
  Proxy proxy;
  if (const std::size_t at = https_proxy.rfind('@'); at != std::string_view::npos) {
    proxy.login = https_proxy.substr(0, at);
    https_proxy.remove_prefix(at + 1);
  }
  const auto authority = wire::parse_authority(https_proxy);
  if (!authority.ok() || authority->port.value_or(0) == 0) return wrong();
  proxy.host = authority->host;
  proxy.port = *authority->port;
  return std::optional<Proxy>(std::move(proxy));
}

Status HttpClient::broken(std::string_view what) {
  std::string text(what);
  if (channel_ != nullptr && !channel_->failure().empty()) text += ": " + channel_->failure();
  channel_.reset();
  return unavailable(std::move(text));
}

Result<short> HttpClient::wait_for(short events, std::int64_t until_ns) {
  while (!is_stopped_) {
    const std::int64_t left_ns = until_ns - clock_.boot_ns();
    if (left_ns <= 0) return broken("nothing came in time");
    pollfd each{channel_->descriptor(), events, 0};
    const auto left_ms = static_cast<int>(std::min<std::int64_t>(left_ns / kNsPerMs + 1, kLookMs));
    const int ready = ::poll(&each, 1, left_ms);
    if (ready > 0) return each.revents;
    if (ready < 0 && errno != EINTR) return broken("cannot wait: " + error_words(errno));
  }
  channel_.reset();
  return Status(StatusCode::Cancelled, "stopped");
}

Status HttpClient::connect_socket(const std::string& host, std::uint16_t port,
                                  std::int64_t until_ns) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
      error != 0) {
    return unavailable("cannot find " + host + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  Status last = unavailable(host + " has no address");
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    net::Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) continue;
    const int descriptor = socket.descriptor();
    int error = ::connect(descriptor, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    channel_ = net::open_plain(std::move(socket));
    if (error == EINPROGRESS) {
      last = wait_for(kWritable, until_ns).status();
      if (last.code() == StatusCode::Cancelled) return last;
      if (!last.ok()) continue;
      socklen_t size = sizeof error;
      if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
    if (error == 0) {
      const int on = 1;
      static_cast<void>(::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
      return ok();
    }
    channel_.reset();
    last = unavailable("cannot connect to " + host + " port " + std::to_string(port) + ": " +
                       error_words(error));
  }
  return last;
}

// The proxy connects, and from its answer on carries bytes as they are.
Status HttpClient::open_tunnel(std::int64_t until_ns) {
  const wire::Authority target{options_.host, options_.port};
  std::string request = "CONNECT " + target.text() + " HTTP/1.1\r\nHost: " + target.text() + "\r\n";
  if (!options_.proxy->login.empty()) {
    request += "Proxy-Authorization: Basic ";
    wire::append_base64(options_.proxy->login, request);
    request += "\r\n";
  }
  EC_TRY(send(request + "\r\n", until_ns).status());
  EC_ASSIGN_OR_RETURN(const std::string head, receive_head(until_ns));
  const int status = status_of(head);
  if (status < 200 || status > 299)
    return broken("the proxy does not connect: it answered " + std::to_string(status));
  return ok();
}

Status HttpClient::connect() {
  const std::int64_t until_ns = clock_.boot_ns() + kConnectNs;
  received_.clear();
  is_fresh_ = true;
  const bool tunnels = options_.tls != nullptr && options_.proxy.has_value();
  EC_TRY(tunnels ? connect_socket(options_.proxy->host, options_.proxy->port, until_ns)
                 : connect_socket(options_.host, options_.port, until_ns));
  if (tunnels) EC_TRY(open_tunnel(until_ns));
  if (options_.tls == nullptr) return ok();
  // The channel owns its socket: TLS gets another number of the same connection.
  net::Socket socket(::fcntl(channel_->descriptor(), F_DUPFD_CLOEXEC, 0));
  channel_.reset();
  if (!socket) return unavailable("no file descriptor is left");
  const std::optional<std::int64_t> judged_at_ns =
      clock_.trust() == ClockTrust::Trusted ? std::nullopt
                                            : std::optional<std::int64_t>(build_time_ns());
  channel_ = tls::TlsClient::open(options_.tls, std::move(socket), options_.host, judged_at_ns);
  if (channel_ == nullptr) return unavailable("no memory for TLS");
  return ok();
}

Result<bool> HttpClient::send(std::string_view bytes, std::int64_t until_ns) {
  while (!bytes.empty()) {
    const net::Transfer sent = channel_->send(bytes);
    if (sent.outcome == net::Outcome::Done) {
      bytes.remove_prefix(sent.bytes);
      continue;
    }
    // What it said before it closed may be there still.
    if (sent.outcome != net::Outcome::Blocked) return false;
    const bool awaits_receive = channel_->send_awaits_receive();
    EC_ASSIGN_OR_RETURN(const short came, wait_for(awaits_receive ? kReadable : kEither, until_ns));
    if (!awaits_receive && (came & kWritable) == 0) return false;
  }
  return true;
}

Result<bool> HttpClient::receive_more(std::int64_t until_ns) {
  char buffer[kReceiveBytes];
  while (true) {
    const net::Received more(*channel_, buffer);
    switch (more.outcome()) {
      case net::Outcome::Done: received_.append(more.bytes()); return true;
      case net::Outcome::Closed: return false;
      case net::Outcome::Blocked:
        EC_TRY(
            wait_for(channel_->receive_awaits_send() ? kWritable : kReadable, until_ns).status());
        break;
      case net::Outcome::Failed: return broken("the connection broke off");
    }
  }
}

Result<std::string> HttpClient::receive_head(std::int64_t until_ns) {
  while (true) {
    const std::size_t end = received_.find(kHeadEnd);
    if (end != std::string::npos) {
      std::string head = received_.substr(0, end + kHeadEnd.size());
      received_.erase(0, head.size());
      return head;
    }
    if (received_.size() > kHeadMaxBytes) return broken("the answer's head has no end");
    EC_ASSIGN_OR_RETURN(const bool more, receive_more(until_ns));
    if (!more) return broken("it closed the connection without an answer");
    has_answer_begun_ = true;
  }
}

// The asker is told where the whole answer was wanted; no other answer is as long.
Status HttpClient::too_long() {
  if (kept_body_bytes_ < kBodyMaxBytes) return broken("its answer has no end");
  channel_.reset();
  return limit_reached("its answer is longer than is taken");
}

Status HttpClient::take_body(std::size_t bytes, HttpAnswer& answer, std::int64_t until_ns) {
  while (bytes > 0) {
    if (received_.empty()) {
      EC_ASSIGN_OR_RETURN(const bool more, receive_more(until_ns));
      if (!more) return broken("its answer broke off");
    }
    const std::size_t part = std::min(bytes, received_.size());
    answer.body.append(
        received_, 0,
        std::min(part, kept_body_bytes_ - std::min(answer.body.size(), kept_body_bytes_)));
    received_.erase(0, part);
    bytes -= part;
    body_bytes_ += part;
    if (body_bytes_ > kBodyMaxBytes) return too_long();
  }
  return ok();
}

Status HttpClient::receive_chunks(HttpAnswer& answer, std::int64_t until_ns) {
  const auto line = [&]() -> Result<std::string> {
    std::size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (received_.size() > kChunkLineMaxBytes) return broken("its answer is malformed");
      EC_ASSIGN_OR_RETURN(const bool more, receive_more(until_ns));
      if (!more) return broken("its answer broke off");
    }
    std::string text = received_.substr(0, end);
    received_.erase(0, end + 2);
    return text;
  };
  while (true) {
    EC_ASSIGN_OR_RETURN(const std::string size_line, line());
    std::size_t bytes = 0;
    const auto [end, error] =
        std::from_chars(size_line.data(), size_line.data() + size_line.size(), bytes, 16);
    if (error != std::errc()) return broken("its answer is malformed");
    if (bytes > kBodyMaxBytes) return too_long();
    if (bytes == 0) break;
    EC_TRY(take_body(bytes, answer, until_ns));
    EC_ASSIGN_OR_RETURN(const std::string after, line());
    if (!after.empty()) return broken("its answer is malformed");
  }
  for (std::size_t trailers = 0; trailers < 16; ++trailers) {
    EC_ASSIGN_OR_RETURN(const std::string trailer, line());
    if (trailer.empty()) return ok();
  }
  return broken("its answer is malformed");
}

Status HttpClient::receive_body(const std::string& head, HttpAnswer& answer,
                                std::int64_t until_ns) {
  body_bytes_ = 0;
  if (answer.status == 204 || answer.status == 304) return ok();
  if (is_same_word(header_of(head, "Transfer-Encoding"), "chunked"))
    return receive_chunks(answer, until_ns);
  const std::string_view length = header_of(head, "Content-Length");
  if (!length.empty()) {
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
    if (error != std::errc() || end != length.data() + length.size())
      return broken("its answer is malformed");
    return take_body(bytes, answer, until_ns);
  }
  // Until it closes.
  while (true) {
    if (!received_.empty()) EC_TRY(take_body(received_.size(), answer, until_ns));
    EC_ASSIGN_OR_RETURN(const bool more, receive_more(until_ns));
    if (more) continue;
    channel_.reset();
    return ok();
  }
}

Result<HttpAnswer> HttpClient::receive_answer(std::int64_t until_ns) {
  HttpAnswer answer;
  std::string head;
  for (int informational = 0;; ++informational) {
    EC_ASSIGN_OR_RETURN(head, receive_head(until_ns));
    answer.status = status_of(head);
    if (answer.status == 0) return broken("it does not speak HTTP/1.1");
    if (answer.status >= 200) break;
    if (informational == 8) return broken("it answers without an end");
  }
  answer.content_type = plain_text(header_of(head, "Content-Type"));
  answer.retry_after = plain_text(header_of(head, "Retry-After"));
  answer.location = plain_text(header_of(head, "Location"));
  answer.influx_version = plain_text(header_of(head, "X-Influxdb-Version"));
  answer.left_out = header_of(head, wire::routes::kLeftOutHeader);
  const Status whole = receive_body(head, answer, until_ns);
  answer.is_cut = whole.code() == StatusCode::LimitReached;
  if (!answer.is_cut) EC_TRY(whole);
  is_fresh_ = false;
  // What came behind the answer belongs to nothing that was asked.
  const bool keeps = channel_ != nullptr && head.starts_with("HTTP/1.1") && received_.empty() &&
                     !is_same_word(header_of(head, "Connection"), "close");
  if (!keeps) channel_.reset();
  return answer;
}

Result<HttpAnswer> HttpClient::request(const std::string& method, const std::string& path,
                                       const std::string& headers, std::string_view body) {
  const std::string host = wire::Authority{options_.host, options_.port}.text();
  const std::string head = method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers +
                           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  while (true) {
    const bool was_kept = channel_ != nullptr && !is_fresh_;
    if (channel_ == nullptr) EC_TRY(connect());
    has_answer_begun_ = false;
    const std::int64_t begun_ns = clock_.boot_ns();
    Result<HttpAnswer> answer = exchange(head, body);
    if (answer.ok() || answer.status().code() != StatusCode::Unavailable || !was_kept)
      return answer;
    ++lost_connections_;
    // Whoever answers closes a connection that was idle for too long.
    if (has_answer_begun_ || clock_.boot_ns() - begun_ns > kIdleCloseNs) return answer;
  }
}

Result<HttpAnswer> HttpClient::exchange(std::string_view head, std::string_view body) {
  const std::int64_t until_ns = clock_.boot_ns() + kSendNs;
  EC_ASSIGN_OR_RETURN(bool is_sent, send(head, until_ns));
  if (is_sent) {
    EC_ASSIGN_OR_RETURN(is_sent, send(body, until_ns));
  }
  auto answer = receive_answer(clock_.boot_ns() + (is_sent ? kAnswerNs : kEarlyAnswerNs));
  // The rest of the request would be taken for another one.
  if (!is_sent) channel_.reset();
  return answer;
}

}  // namespace edgecase::forward
