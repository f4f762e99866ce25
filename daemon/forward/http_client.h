// Requests to one target over HTTP/1.1, plain or by TLS: one at a time, over a connection that is
// kept. Whatever the other end answers or leaves out takes bounded memory and bounded time.
//
// cpp-httplib, which the command line uses, does not serve here: by its public face it knows TLS
// by OpenSSL alone, and cannot be told to stop while it waits. One thread; stop() is for others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/machine.h"
#include "edgecase/status.h"
#include "net/channel.h"
#include "tls/tls_ends.h"

namespace edgecase::forward {

// A proxy that tunnels to targets by TLS.
struct Proxy {
  std::string host;
  std::uint16_t port = 0;
  std::string login;  // "user:password"; may be empty
};
// By `https_proxy` ("http://user:password@host:port") and `no_proxy` ("example.com,192.0.2.7,*"),
// as their values are: where to go for that host. Nothing: straight to it. InvalidArgument.
Result<std::optional<Proxy>> proxy_of(std::string_view https_proxy, std::string_view no_proxy,
                                      std::string_view host);

struct HttpAnswer {
  int status = 0;
  std::string content_type;
  std::string retry_after;
  std::string location;
  std::string influx_version;  // X-Influxdb-Version
  std::string left_out;        // X-EdgeCase-Left-Out
  std::string body;            // its beginning
  bool is_cut = false;         // of a whole answer that was wanted: it is longer
};

class HttpClient {
 public:
  static constexpr std::int64_t kConnectNs = 10'000'000'000;
  static constexpr std::int64_t kAnswerNs = 30'000'000'000;  // from the request's last byte
  static constexpr std::int64_t kSendNs = 60'000'000'000;    // of a request, at most
  static constexpr std::size_t kHeadMaxBytes = 16u << 10;
  static constexpr std::size_t kBodyMaxBytes = 1u << 20;  // more closes the connection
  static constexpr std::size_t kKeptBodyMaxBytes = 4u << 10;

  struct Options {
    std::string host;
    std::uint16_t port = 0;
    std::shared_ptr<const tls::TlsClient> tls;  // null: plain
    std::optional<Proxy> proxy;                 // with TLS
  };
  HttpClient(Options options, Clock& clock) : options_(std::move(options)), clock_(clock) {}

  // `headers`: whole lines, beside Host and Content-Length. Unavailable: no connection, or it broke
  // off, or nothing came in time; Cancelled: stop(). A request that was sent over a kept connection
  // which had been closed meanwhile is sent again over a new one.
  Result<HttpAnswer> post(const std::string& path, const std::string& headers,
                          std::string_view body) {
    kept_body_bytes_ = kKeptBodyMaxBytes;
    return request("POST", path, headers, body);
  }
  Result<HttpAnswer> put(const std::string& path, const std::string& headers,
                         std::string_view body) {
    kept_body_bytes_ = kKeptBodyMaxBytes;
    return request("PUT", path, headers, body);
  }
  // The same of which the whole answer is wanted, up to kBodyMaxBytes: behind them
  // the connection is closed.
  Result<HttpAnswer> ask(const std::string& method, const std::string& path,
                         const std::string& headers, std::string_view body = {}) {
    kept_body_bytes_ = kBodyMaxBytes;
    return request(method, path, headers, body);
  }
  // How often a connection that had answered before broke off, or was found closed.
  std::uint64_t lost_connections() const { return lost_connections_; }
  void stop() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

 private:
  Result<HttpAnswer> request(const std::string& method, const std::string& path,
                             const std::string& headers, std::string_view body);
  Status connect();
  Status connect_socket(const std::string& host, std::uint16_t port, std::int64_t until_ns);
  Status open_tunnel(std::int64_t until_ns);
  // False: it answers already, or takes nothing more.
  Result<bool> send(std::string_view bytes, std::int64_t until_ns);
  // Which of the events came.
  Result<short> wait_for(short events, std::int64_t until_ns);
  // At least one more byte into received_; false: the other end has closed.
  Result<bool> receive_more(std::int64_t until_ns);
  Result<std::string> receive_head(std::int64_t until_ns);
  Result<HttpAnswer> exchange(std::string_view head, std::string_view body);
  Result<HttpAnswer> receive_answer(std::int64_t until_ns);
  Status receive_body(const std::string& head, HttpAnswer& answer, std::int64_t until_ns);
  Status receive_chunks(HttpAnswer& answer, std::int64_t until_ns);
  Status take_body(std::size_t bytes, HttpAnswer& answer, std::int64_t until_ns);
  Status broken(std::string_view what);
  Status too_long();

  const Options options_;
  Clock& clock_;
  std::atomic<bool> is_stopped_{false};
  std::unique_ptr<net::Channel> channel_;  // null: not connected
  std::string received_;                   // and not looked at yet
  std::size_t kept_body_bytes_ = kKeptBodyMaxBytes;
  std::size_t body_bytes_ = 0;  // of the answer that is being received
  bool is_fresh_ = true;        // nothing was answered over this connection yet
  bool has_answer_begun_ = false;
  std::uint64_t lost_connections_ = 0;
};

}  // namespace edgecase::forward
