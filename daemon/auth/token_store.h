// The tokens of a store: `ec1_<id>_<secret>`, an id of 10 hex digits and a secret of 256 bits in
// 64. The secret is shown once, when a token is made; what is kept is its SHA-256.
//
// Records, in the engine's namespace `_tokens` (Placement::Metadata):
//   'T' id  ->  JSON {"version","hash","namespace","read"?,"write"?,"export"?,"erase"?,"admin"?,
//               "purpose"?,"certificate"?,"created","ends"?,"revoked"?}, times in nanoseconds.
//               A scope is a selector, the version 1; where one has several it is an array of them,
//               and the version 2.
//   'U' id  ->  when it was last used, 8 bytes big-endian; at most kUsedSpacingNs late
//
// A token may stand for a certificate, by its name: nobody is shown its secret then.
//
// A token that was revoked or has expired stays listed; at kTokensMax the one that ended first
// makes room. Thread-safe. `mutex_` is held while the engine makes a change durable, and for
// look-ups.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/authorize.h"
#include "auth/hashing.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"

namespace edgecase::auth {

inline constexpr std::string_view kTokensNamespace = "_tokens";
inline constexpr std::string_view kTokenPrefix = "ec1_";

// A scope as it is shown and kept: null, a selector, or an array of several.
nlohmann::json scope_json(const std::vector<wire::Selector>& scope);

// Whether the text has the form of a token: such text belongs into no URL and no log.
bool looks_like_token(std::string_view text);

struct TokenInfo {
  std::string id;
  Scopes scopes;
  std::string certificate;  // that it stands for; "": none
  std::int64_t created_ns = 0;
  std::optional<std::int64_t> ends_ns;  // expires, or was revoked
  std::optional<std::int64_t> last_used_ns;
  bool is_revoked = false;
  bool has_ended = false;
};

class TokenStore {
 public:
  static constexpr std::size_t kTokensMax = 1'000;
  static constexpr std::int64_t kUsedSpacingNs = 60'000'000'000;
  static constexpr std::size_t kIdDigits = 10;
  static constexpr std::size_t kSecretDigits = 64;
  static constexpr std::size_t kCertificateNameMaxBytes = 256;

  // `random` is a generator that nobody can predict: system_random().
  static Result<std::unique_ptr<TokenStore>> open(Engine& engine, Clock& clock, Random& random);

  struct Created {
    std::string id;
    std::string text;  // the whole token, never to be had again; "": it stands for a certificate
  };
  // Durable on return. `certificate`: a name that it stands for; "": none. Errors: InvalidArgument
  // (no scope at all, an end that has passed, another one stands for the certificate),
  // LimitReached (kTokensMax that have not ended), the engine's.
  Result<Created> create(const Scopes& scopes, std::optional<std::int64_t> ends_ns,
                         const std::string& certificate = {}) EC_EXCLUDES(mutex_);
  // Ends it at `ends_ns`, or at once; durable. NotFound; InvalidArgument: it ends before.
  Status revoke(std::string_view id, std::optional<std::int64_t> ends_ns) EC_EXCLUDES(mutex_);
  // By time of creation.
  std::vector<TokenInfo> list() const EC_EXCLUDES(mutex_);
  // Whether any was ever made: ended ones count.
  // Also where some may be lost: nobody comes in without one because of that.
  bool any() const EC_EXCLUDES(mutex_);

  // The good token that `text` is. NotAllowed says in words why it is none.
  Result<std::shared_ptr<const Grant>> check(std::string_view text) EC_EXCLUDES(mutex_);
  // The good token that stands for the certificate of this name; null: there is none.
  std::shared_ptr<const Grant> of_certificate(std::string_view name) EC_EXCLUDES(mutex_);
  // Whether a token that was good before has ended.
  bool has_ended(const Grant& grant) const { return grant.ends_ns.load() <= now_ns(); }

 private:
  struct Token {
    std::shared_ptr<Grant> grant;
    Digest hash{};
    std::int64_t created_ns = 0;
    bool is_revoked = false;
    std::optional<std::int64_t> last_used_ns;
    std::int64_t used_written_ns = 0;
  };
  using Tokens = std::map<std::string, Token, std::less<>>;

  TokenStore(Engine& engine, Clock& clock, Random& random);
  Status load() EC_EXCLUDES(mutex_);
  Status load_token(std::string_view id, ByteView value) EC_REQUIRES(mutex_);
  Status load_fields(std::string_view id, const nlohmann::json& json) EC_REQUIRES(mutex_);
  Result<std::string> make_room() EC_REQUIRES(mutex_);
  // One that has not ended; null: there is none.
  Token* find_certificate(std::string_view name) EC_REQUIRES(mutex_);
  std::int64_t now_ns() const;
  void note_use(const std::string& id, Token& token, std::int64_t now_ns) EC_REQUIRES(mutex_);

  Engine& engine_;
  Clock& clock_;
  Random& random_;
  NamespaceId records_ = 0;
  mutable Mutex mutex_;
  Tokens tokens_ EC_GUARDED_BY(mutex_);
  bool damaged_ EC_GUARDED_BY(mutex_) = false;  // some records cannot be read; set at the start
};

enum class InsecureAccess : unsigned char { Refused, Allowed };  // http.allow-insecure

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
