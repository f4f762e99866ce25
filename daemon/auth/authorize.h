// Decides who may do what. The only maker of AuthorizedBatch: an unchecked write does not compile.
//
// A token may do what its scopes say (Grant); without one, a connection may do what its kind
// allows. token_store.h says who needs a token at all. Pure functions; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::auth {

enum class PrincipalKind : unsigned char {
  LocalSocket,  // a member of the socket's group
  Loopback,     // TCP from this machine
  Remote,       // TCP from elsewhere
  Mqtt,         // the broker's messages
  Internal,     // the daemon itself: `_rejected`
};

// What a token may do: to series that one of the selectors matches. Without one something may not
// be done at all.
struct Scopes {
  std::string namespace_name;  // they hold there; empty: in all whose names do not begin with `_`
  std::vector<wire::Selector> read, write, export_all, erase;  // wire::kSelectorsMax at most
  bool admin = false;                                          // everything, everywhere
  std::string purpose;  // what it reads for; empty: said with each request
};

// A token that was shown and found good. Shared by the store and whoever showed it, so that
// revoking it acts at once.
struct Grant {
  static constexpr std::int64_t kNever = INT64_MAX;

  std::string token_id;
  Scopes scopes;
  std::string certificate = {};  // shown instead of it, by name; "": the token itself is
  std::atomic<std::int64_t> ends_ns{kNever};  // expired or revoked from then on
};

struct Principal {
  PrincipalKind kind = PrincipalKind::LocalSocket;
  std::string name;  // "uid 1000", "10.0.0.7", "mqtt sensors/#", "token 1a2b3c4d5e of 10.0.0.7"
  std::shared_ptr<const Grant> grant = nullptr;  // null: no token
  // What a connection's certificate calls the client (net::Channel::peer_names()).
  std::vector<std::string> certificate = {};
};

enum class Operation : unsigned char { Read, Write, Export, Erase };

class AuthorizedBatch {
 public:
  const wire::ReadingBatch& batch() const { return batch_; }
  const Principal& principal() const { return principal_; }

 private:
  friend Result<AuthorizedBatch> authorize_write(const Principal&, const wire::ReadingBatch&);
  AuthorizedBatch(const Principal& principal, const wire::ReadingBatch& batch)
      : principal_(principal), batch_(batch) {}
  const Principal& principal_;
  const wire::ReadingBatch& batch_;
};

// Both arguments must outlive the result. NotAllowed: a namespace beginning with `_`, unless
// Internal; a reading that the token may not write.
Result<AuthorizedBatch> authorize_write(const Principal& principal,
                                        const wire::ReadingBatch& batch);
// The same for one reading.
Status authorize_write(const Principal& principal, const wire::Reading& reading);

// Whether anything that the selector can match is allowed; what it does match is then asked of
// allows(). `namespace_name` empty: all. `_rejected` may be read, by a token where its scopes name
// it; other names beginning with `_` not.
Status authorize(Operation operation, const Principal& principal, std::string_view namespace_name,
                 const wire::Selector& selector);
// The same of a selection: without the selectors of which nothing is allowed, which join `left`. An
// error, that of the first one: nothing of any is.
Result<wire::Selection> authorize(Operation operation, const Principal& principal,
                                  std::string_view namespace_name, wire::Selection selection,
                                  std::vector<wire::LeftSelector>& left);
bool allows(Operation operation, const Principal& principal, std::string_view namespace_name,
            std::string_view device, std::string_view sensor);

// What is read for: what the request states, or the token is for. NotAllowed: both, and they
// differ.
Result<std::string> purpose_of(const Principal& principal, std::string_view stated);

// Whether the names of a namespace may be seen.
bool allows_namespace(const Principal& principal, std::string_view namespace_name);
// Making one: who administers, and who may write into it.
Status authorize_creation(const Principal& principal, std::string_view namespace_name);
// Health and figures of the whole store: who may read anything of it.
Status authorize_status(const Principal& principal);
// Tokens, rules, metadata of devices, whole namespaces: an admin token, or who may reach the daemon
// on its own machine without one.
Status authorize_administration(const Principal& principal);

}  // namespace edgecase::auth
