// The way to a daemon that speaks HTTPS: the HTTP library connects in clear to a Unix socket of
// this process, and what passes there goes to the daemon through TLS, as daemon/tls has it. An end
// of either side ends the other. The socket has a name of the kernel's choice and no file, so that
// nothing is left however the process ends; connections of other processes are closed.
//
// One connection at a time; one thread, "tls-door".
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "net/channel.h"
#include "tls/tls_ends.h"

namespace edgecase::cli {

// Why a connection came to nothing.
struct DoorFailure {
  enum class Kind : unsigned char { None, NotReached, NoTls };
  Kind kind = Kind::None;
  std::string why;  // of NoTls, in words
};

class TlsDoor {
 public:
  // `place` is "host:port", "[::1]:port", or without a port, which is then 443. `authorities`: a
  // file of certificates; "": what this machine trusts. InvalidArgument, NotAllowed: the file, the
  // place.
  static Result<std::unique_ptr<TlsDoor>> open(const std::string& place,
                                               const std::string& authorities);
  ~TlsDoor();
  TlsDoor(const TlsDoor&) = delete;
  TlsDoor& operator=(const TlsDoor&) = delete;

  // Where to connect instead: the abstract name of a Unix socket, which begins with a zero byte.
  const std::string& name() const { return name_; }
  // Why the last connection failed; asked for once.
  DoorFailure take_failure() EC_EXCLUDES(mutex_);

 private:
  TlsDoor(std::shared_ptr<const tls::TlsClient> client, std::string host, std::string port);
  Status listen();
  void run();
  net::Socket connect_daemon() const;
  void forward(net::Channel& inside, net::Channel& daemon);
  void note(DoorFailure failure) EC_EXCLUDES(mutex_);

  const std::shared_ptr<const tls::TlsClient> client_;
  const std::string host_;
  const std::string port_;
  std::string name_;
  net::Socket listener_;
  net::Socket wake_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  DoorFailure failure_ EC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edgecase::cli
