// A target as it is spoken to: which request takes lines, who asks, and what the answer means. One
// thread; stop() is for others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "config/settings.h"
#include "edgecase/machine.h"
#include "forward/courier.h"
#include "forward/eraser.h"
#include "forward/http_client.h"
#include "wire/encoding.h"

namespace edgecase::forward {

// The files and the proxy that a target needs can be used. Errors begin with the key.
Status check_target(const config::ForwardSettings& settings, const config::ForwardTarget& target);

class HttpTarget final : public Carrier, public Asked {
 public:
  static constexpr std::int64_t kRetryAfterMaxNs = 3'600'000'000'000;

  // Errors as of check_target().
  static Result<std::unique_ptr<HttpTarget>> create(const config::ForwardSettings& settings,
                                                    const config::ForwardTarget& target,
                                                    Clock& clock);

  Answer carry(const std::string& database, std::string_view lines, std::size_t count) override;
  // Rules of retention, a line each, to an EdgeCase. Taken: it did what it may; `refused` of them.
  Answer carry_rules(std::string_view lines, std::uint64_t& refused);
  // Summaries of hours (summaries.h), a line each, to an EdgeCase. As of ask().
  Answer put_summaries(std::string_view lines, HttpAnswer& http);
  // Another request, without a body; `path` is behind that of forward.to. Taken: `http` is what was
  // answered, whatever it is but 401, 429 and 5xx.
  Answer ask(const std::string& method, const std::string& path, HttpAnswer& http) override;
  // The line of each request's head that says who sends, from now on (Lineage); empty: nothing is
  // said.
  void set_origin(std::string line) { origin_ = std::move(line); }
  void stop() { client_.stop(); }
  // Bytes of requests' bodies, as they were sent.
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  std::uint64_t lost_connections() const { return client_.lost_connections(); }

 private:
  HttpTarget(const config::ForwardSettings& settings, const config::ForwardTarget& target,
             HttpClient::Options options, Clock& clock);
  std::string path_of(const std::string& database) const;
  Result<std::string> authorization() const;
  Answer judge_question(Result<HttpAnswer> answer, HttpAnswer& http) const;
  Answer judge(const HttpAnswer& answer, std::size_t count) const;

  const config::ForwardSettings settings_;
  const config::ForwardTarget target_;
  HttpClient client_;
  wire::Coding coding_;  // zstd until it says that it takes none
  std::string packed_, origin_;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace edgecase::forward
