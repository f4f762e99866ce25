// Who may do what. The only maker of AuthorizedBatch: an unchecked write does not compile.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/result.h"
#include "wire/reading.h"

namespace edgecase::auth {

enum class PrincipalKind : unsigned char {
  LocalSocket,  // a member of the socket's group
  Loopback,     // TCP from this machine
  Remote,       // TCP from elsewhere, let in by http.allow-insecure
  Mqtt,         // the broker's messages
  Internal,     // the daemon itself: `_rejected`
};

struct Principal {
  PrincipalKind kind = PrincipalKind::LocalSocket;
  std::string name;  // for the audit log: "uid 1000", "10.0.0.7", "mqtt sensors/#"
};

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
// Internal.
Result<AuthorizedBatch> authorize_write(const Principal& principal,
                                        const wire::ReadingBatch& batch);
// `namespace_name` empty: all. `_rejected` may be read, other names beginning with `_` not.
Status authorize_read(const Principal& principal, std::string_view namespace_name);

// What destroys whole namespaces: for who may reach the daemon on its own machine.
Status authorize_administration(const Principal& principal);

}  // namespace edgecase::auth
