// TLS 1.2 for those who connect, by mbedtls: the peer's certificate must be signed by one that is
// trusted and name the host that was meant. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "edgecase/status.h"
#include "net/channel.h"
#include "tls/tls_server.h"

namespace edgecase::tls {

// What a machine trusts, where nothing else is said.
inline constexpr char kSystemAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";

class TlsClient {
 public:
  // `authorities`: file of certificates; "": kSystemAuthorities. `own`: shown to a server that
  // asks; may be empty. Errors name the file.
  static Result<std::shared_ptr<const TlsClient>> load(const std::string& authorities,
                                                       const TlsFiles& own);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // `socket` is connected or about to be. `judged_at_ns`: the clock cannot tell whether a
  // certificate holds, but it is at least so late (Unix time): one that has ended by then is
  // refused, one that has not begun may have meanwhile. The channel keeps the client alive. Null:
  // no memory.
  static std::unique_ptr<net::Channel> open(const std::shared_ptr<const TlsClient>& client,
                                            net::Socket socket, const std::string& host,
                                            std::optional<std::int64_t> judged_at_ns);
  // Whether a clock is to be trusted is no time.
  static std::unique_ptr<net::Channel> open(const std::shared_ptr<const TlsClient>& client,
                                            net::Socket socket, const std::string& host,
                                            bool judged_at_ns) = delete;

 private:
  struct Parts;
  explicit TlsClient(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace edgecase::tls
