// Both ends of TLS 1.2, by mbedtls: those who listen (TlsServer), those who connect (TlsClient).
//
// A server has certificate and key from files, forward secrecy and authenticated ciphers only,
// session tickets. With `client_authorities` a client may show a certificate: one that is good
// names it (Channel::peer_names()), one that is not ends the connection. There are no session
// tickets then, which would outlive a revocation.
//
// The files are looked at again every kReloadNs, when a connection comes: a renewed certificate
// holds for connections from then on. Files that are wrong by then are reported, and the old ones
// stay. Thread-safe; the channels it made are one thread's at a time, and may outlive it.
//
// A channel takes kTlsChannelBytes of memory, most of it two buffers of a record each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "net/channel.h"

namespace edgecase::tls {

inline constexpr std::uint64_t kTlsChannelBytes = 54u << 10;

struct TlsFiles {
  std::string certificate;  // PEM, the server's own first, then what signed it; or DER
  std::string key;          // PEM or DER, without a password
  std::string client_authorities =
      {};  // certificates that sign those of clients; "": none is asked
  std::string client_revocations = {};  // list of those that hold no more; "": all hold
};

class TlsServer {
 public:
  static constexpr std::int64_t kReloadNs = 60'000'000'000;
  // Called with what went wrong when files have changed and cannot be used.
  using Complain = std::function<void(const std::string& what)>;

  // InvalidArgument and NotAllowed name the file: it cannot be read, is no certificate or key, the
  // two do not belong together, others may read the key.
  static Result<std::shared_ptr<TlsServer>> load(TlsFiles files, Complain complain);

  // `now_ns`: Clock::boot_ns(). `judged_at_ns`: as TlsClient::open() says, of clients'
  // certificates. Null: no memory.
  std::unique_ptr<net::Channel> accept(net::Socket socket, std::int64_t now_ns,
                                       std::optional<std::int64_t> judged_at_ns = {})
      EC_EXCLUDES(mutex_);

  // Loads these files at once, for connections from then on. Errors as load(): nothing changes.
  Status change(TlsFiles files) EC_EXCLUDES(mutex_);

  // When the certificate at hand ends, ns since 1970; for status and for a warning in time.
  std::int64_t expires_ns() const EC_EXCLUDES(mutex_);

 private:
  class Identity;
  TlsServer(TlsFiles files, Complain complain, std::shared_ptr<const Identity> identity,
            std::string version);
  void reload() EC_REQUIRES(mutex_);

  const Complain complain_;
  mutable Mutex mutex_;
  TlsFiles files_ EC_GUARDED_BY(mutex_);
  std::shared_ptr<const Identity> identity_ EC_GUARDED_BY(mutex_);
  std::string version_ EC_GUARDED_BY(mutex_);  // of the files
  std::int64_t looked_ns_ EC_GUARDED_BY(mutex_) = 0;
};

// What a machine trusts, where nothing else is said.
inline constexpr char kSystemAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";

// For those who connect: the peer's certificate must be signed by one that is trusted and name the
// host that was meant. Thread-safe.
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

// A certificate that a machine makes itself, for connections within it. For the name "localhost",
// on P-256, signed by itself; the key may be read by its owner alone.
Status write_own_certificate(const std::string& certificate_path, const std::string& key_path);

}  // namespace edgecase::tls
