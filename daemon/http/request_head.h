// The request line and the headers, strictly: what two parsers could read differently is refused
// (Refusal).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "wire/encoding.h"

namespace edgecase::http {

// A request that is answered with an error before, or instead of, running its route.
inline constexpr int kRetryAfterSeconds = 1;

// Instead of an HTTP status: whoever asks speaks TLS, and gets an alert of it.
inline constexpr int kAlert = 1;

struct Refusal {
  int http_status = 0;  // 0: none
  Status status;
};

Refusal bad_request(std::string message);
Refusal too_large(std::string message);
Refusal overloaded(std::string message);

// Whether clients of Influx ask here: their errors are strings.
bool is_influx_path(std::string_view path);

// The body of an error answer (http/API.md) on `path`.
std::string error_body(std::string_view path, const Status& status);

// A whole answer that ends the connection. `target` may be what was sent, however malformed.
// `date` as in the header of that name; "": none.
std::string refusal_text(std::string_view target, const Refusal& refusal,
                         const std::string& date = {});

inline constexpr std::size_t kTargetMaxBytes = 8'000;

// Settings: http.head-limit, http.headers.
struct HeadLimits {
  std::size_t bytes = 16u << 10;
  std::size_t headers = 100;
};

enum class BodyFraming : unsigned char { Length, Chunked };

// What Accept-Encoding says of the codings there are: weights in thousandths, 0: not taken.
struct AcceptedCodings {
  std::uint16_t gzip = 0, zstd = 0;

  // zstd where both are as welcome: it takes half the time.
  wire::Coding best() const;
};

// By name; a name may come more than once.
using Parameters = std::multimap<std::string, std::string, std::less<>>;

struct RequestHead {
  std::string method;
  std::string target;     // "/path?query": visible ASCII and bytes above
  std::string path;       // of it, percent-decoded
  Parameters parameters;  // the same
  bool http_1_1 = true;
  bool keep_alive = true;
  bool expects_continue = false;
  bool reports_inline = false;  // what the answer does not hold, behind its body (wire/contract.h)
  BodyFraming framing = BodyFraming::Length;
  wire::Coding coding = wire::Coding::Identity;
  std::uint64_t content_length = 0;
  // Empty when the header was not sent.
  std::string host, origin, referer, user_agent, accept, content_type, sec_fetch_site;
  std::string page;           // kPageHeader
  std::string forwarder;      // kOriginHeader
  std::string if_none_match;  // what the client has of the page
  AcceptedCodings accepts;
  std::string authorization;  // holds a secret: never logged
  // A proxy handed it on: Forwarded, Via, or a header that begins with X-Forwarded-.
  bool is_forwarded = false;
  std::string forwarded, x_forwarded_for;  // of several such headers all, with commas between
};

// The parameters of a query, or of a form: `a=1&b=2`, percent-encoded, with + for a space. What is
// no hexadecimal number behind a % stays as it is; a nameless parameter is none.
void add_parameters(std::string_view text, Parameters& parameters);

enum class HeadOutcome : unsigned char { NeedMore, Complete, Refused };

// Looks for a whole head at the start of `bytes`. Complete: `head` is filled and `used` tells its
// length. Refused: `refusal` says why, and `head.target` holds what was read of it.
HeadOutcome parse_request_head(std::string_view bytes, RequestHead& head, std::size_t& used,
                               Refusal& refusal, const HeadLimits& limits = {});

}  // namespace edgecase::http
