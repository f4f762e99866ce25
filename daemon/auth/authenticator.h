// Finds out who asks: from a connection, and the token that it shows, to a Principal.
//
// A token that is shown is used, whichever way it came: its scopes hold, and a wrong one is
// refused. Without one a certificate of the connection is used that a token stands for. Without
// either:
//   the Unix socket      may do everything: its group says who may connect
//   TCP, this machine    may do everything until the first token is made, and nothing from then on
//   TCP, another one     the same with http.allow-insecure; without, nothing
//
// Failures are counted by address, kAddressesMax of them; kBurst at once and one every kRefillNs
// are answered, those beyond refused as too many. A good token is taken from any address, always:
// 256 bits are not guessed, and nobody is kept out by what a neighbour tries. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "auth/token_store.h"
#include "edgecase/mutex.h"

namespace edgecase::auth {

// What counts as one address: whoever has one of IPv6 has the 2^64 of its network.
std::string network_of(const std::string& address);

enum class InsecureAccess : unsigned char { Refused, Allowed };  // http.allow-insecure

class Authenticator {
 public:
  static constexpr std::size_t kAddressesMax = 4'096;
  static constexpr int kBurst = 10;
  static constexpr std::int64_t kRefillNs = 6'000'000'000;

  Authenticator(TokenStore& tokens, Clock& clock, InsecureAccess insecure)
      : tokens_(tokens), clock_(clock), insecure_(insecure) {}

  // `connection` as net::principal_of() says; `token` empty: none is shown. NotAllowed: no token,
  // or none that is good. Busy: too many failures from this address.
  Result<Principal> authenticate(const Principal& connection, std::string_view token);
  // Whether it still may what it might: its token may have ended since, or the first one been made.
  bool is_current(const Principal& principal) const;

  TokenStore& tokens() { return tokens_; }
  std::uint64_t failures() const { return failures_.load(); }
  std::uint64_t throttled() const { return throttled_.load(); }

 private:
  struct Bucket {
    std::string address;
    double left = kBurst;
    std::int64_t at_ns = 0;
  };

  Status fail(const Principal& connection, Status why);
  bool take_attempt(const std::string& address) EC_EXCLUDES(mutex_);

  TokenStore& tokens_;
  Clock& clock_;
  const InsecureAccess insecure_;
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> throttled_{0};
  Mutex mutex_;
  std::list<Bucket> buckets_ EC_GUARDED_BY(mutex_);  // the one that failed last comes first
  std::unordered_map<std::string_view, std::list<Bucket>::iterator> by_address_
      EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::auth
