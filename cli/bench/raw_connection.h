// A stream socket and just enough HTTP to load a server without being a load itself: requests are
// made beforehand and sent as they are. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::net {
class Channel;
}
namespace edgecase::tls {
class TlsClient;
}

namespace edgecase::cli::bench {

// Where a server listens: a path (it has a '/') or a port of the loopback interface, in clear or,
// with `tls`, as "localhost".
struct Endpoint {
  std::string socket_path = {};
  std::uint16_t port = 0;
  std::shared_ptr<const tls::TlsClient> tls = nullptr;
};

class RawConnection {
 public:
  RawConnection();
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&& other) noexcept;

  Status open(const Endpoint& endpoint);
  void close();
  bool is_open() const { return socket_ >= 0; }

  Status send(std::string_view bytes);
  // At least one byte, more if there are; 0 bytes: the other side has closed. Adds to `buffer`.
  Result<std::size_t> receive(std::string& buffer, std::size_t size_max = 256u << 10);
  // Waits at most `milliseconds` for something to read.
  bool readable(int milliseconds) const;

 private:
  Status open_tls(const Endpoint& endpoint);
  Result<std::size_t> receive_tls(char* buffer, std::size_t size);
  bool wait_for(bool sending) const;

  int socket_ = -1;
  std::unique_ptr<net::Channel> channel_;  // over TLS; has the socket
};

struct HttpAnswer {
  int status = 0;
  std::uint64_t body_bytes = 0;
  std::int64_t first_body_ns = 0;  // since the request was sent; 0: no body
};

// One keep-alive HTTP/1.1 connection, opened again when the server closes it.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  // Sends a whole request and reads the whole answer; `sink` gets the body in pieces.
  Result<HttpAnswer> exchange(std::string_view request,
                              const std::function<void(std::string_view)>& sink = nullptr);
  // GET with the body as a string; an error for any status but 2xx.
  Result<std::string> get(const std::string& path_and_query);

 private:
  struct Head {
    int status = 0;
    bool chunked = false;
    bool close = false;
    std::uint64_t length = 0;
  };
  class BodySink;

  Result<Head> read_head();
  Status need(std::size_t bytes);
  Result<std::string> take_line();
  Status read_length(std::uint64_t length, BodySink& sink);
  Status read_chunks(BodySink& sink);

  Endpoint endpoint_;
  RawConnection connection_;
  std::string buffer_;  // received and not yet taken
};

// A request with a body; `headers` end in "\r\n" each.
std::string http_request(std::string_view method, std::string_view path_and_query,
                         std::string_view headers, std::string_view body);

}  // namespace edgecase::cli::bench
