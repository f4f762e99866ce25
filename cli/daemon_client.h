// Requests to the daemon, over its Unix socket or TCP. Answers stream: what the daemon sends is
// handed on piece by piece and never held as a whole.
//
// Use: DaemonClient client(arguments); client.get(path, receive). Every method returns Ok or the
// daemon's own error with its code and message. What went wrong between here and the daemon is
// Unavailable (nobody answers: exit code 5) or IoError (the answer broke off: exit code 1).
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answers.h"
#include "command_options.h"
#include "edgecase/status.h"
#include "wire/authority.h"
#include "wire/encoding.h"

namespace edgecase::cli {

// "/api/v1/query?ns=default&select=%2A": values percent-encoded.
std::string path_with(std::string_view path, const Parameters& parameters);
using wire::percent_encode;

class DaemonClient {
 public:
  explicit DaemonClient(const ConnectionArguments& connection);
  ~DaemonClient();
  DaemonClient(DaemonClient&&) noexcept;

  // For who asks often: the connection stays open between requests.
  void keep_connection();

  Status get(const std::string& path, const Receive& receive);
  // How the daemon refused the last post(), put() or remove().
  const std::string& refusal() const;
  // A header of the last answer to get() or get_small(); empty where it had none.
  std::string answer_header(const char* name) const;
  // This one and the next three: the answer's body, at most kSmallAnswerMaxBytes (else IoError).
  Result<std::string> get_small(const std::string& path);
  Result<std::string> post(const std::string& path, const std::string& body,
                           const std::string& content_type);
  Result<std::string> put(const std::string& path, const std::string& body,
                          const std::string& content_type);
  Result<std::string> remove(const std::string& path);

  static constexpr std::size_t kSmallAnswerMaxBytes = 256u << 20;

 private:
  struct State;
  Result<std::string> send(const char* method, const std::string& path, const std::string& body,
                           const std::string& content_type);

  std::unique_ptr<State> state_;
};

// Says on stderr what went wrong and returns the exit code: 5 when nobody answered.
int report_failure(const Status& status);

}  // namespace edgecase::cli
