#include "http/request_head.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "http/router.h"
#include "wire/contract.h"
#include "wire/encoding.h"

namespace edgecase::http {
namespace {

bool is_token_character(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool list_holds(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (equal_ignoring_case(trim(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// `q=0.5` behind a coding, in thousandths; one that cannot be read is none.
std::uint16_t weight_of(std::string_view parameter) {
  constexpr std::uint16_t kWhole = 1'000;
  parameter = trim(parameter);
  if (parameter.empty()) return kWhole;
  if (!equal_ignoring_case(parameter.substr(0, 2), "q=")) return 0;
  parameter.remove_prefix(2);
  if (parameter.empty() || (parameter[0] != '0' && parameter[0] != '1')) return 0;
  std::uint16_t weight = parameter[0] == '1' ? kWhole : 0;
  if (weight == kWhole || parameter.size() == 1) return weight;
  if (parameter[1] != '.' || parameter.size() > 5) return 0;
  std::uint16_t step = kWhole / 10;
  for (const char digit : parameter.substr(2)) {
    if (digit < '0' || digit > '9') return 0;
    weight = static_cast<std::uint16_t>(weight + (digit - '0') * step);
    step /= 10;
  }
  return weight;
}

// "*" is the old coding: who names none may know no newer one.
AcceptedCodings accepted_codings(std::string_view list) {
  AcceptedCodings accepted;
  std::optional<std::uint16_t> gzip, any;
  while (!list.empty()) {
    const std::string_view element = list.substr(0, list.find(','));
    list.remove_prefix(std::min(element.size() + 1, list.size()));
    const std::size_t semicolon = std::min(element.find(';'), element.size());
    const std::string_view name = trim(element.substr(0, semicolon));
    const std::uint16_t weight = weight_of(element.substr(std::min(semicolon + 1, element.size())));
    if (equal_ignoring_case(name, "gzip") || equal_ignoring_case(name, "x-gzip")) gzip = weight;
    if (equal_ignoring_case(name, "zstd")) accepted.zstd = weight;
    if (name == "*") any = weight;
  }
  accepted.gzip = gzip.value_or(any.value_or(0));
  return accepted;
}

std::string form_decoded(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return wire::percent_decode(spaced);
}

// What must be known of all headers before the body's shape is decided.
struct Seen {
  bool content_length = false;
  bool transfer_encoding = false;
  bool host = false;
  bool content_encoding = false;
  bool connection_close = false;
  bool connection_keep_alive = false;
};

class HeadParser {
 public:
  HeadParser(RequestHead& head, Refusal& refusal, std::size_t headers_max)
      : head_(head), refusal_(refusal), headers_max_(headers_max) {}

  bool request_line(std::string_view line);
  bool header(std::string_view line);
  bool finish();

 private:
  bool known_header(std::string_view name, std::string_view value);
  bool content_length(std::string_view value);
  bool transfer_encoding(std::string_view value);
  bool content_encoding(std::string_view value);
  bool keep(std::string& where, std::string_view value) {
    where = value;
    return true;
  }
  bool add_forwarded(std::string& list, std::string_view value) {
    head_.is_forwarded = true;
    if (!list.empty()) list += ',';
    list += value;
    return true;
  }
  bool refuse(int http_status, std::string message) {
    refusal_ = {http_status, invalid_argument(std::move(message))};
    return false;
  }

  RequestHead& head_;
  Refusal& refusal_;
  Seen seen_;
  const std::size_t headers_max_;
  std::size_t headers_ = 0;
};

bool HeadParser::request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return refuse(400, "the request line is not METHOD TARGET VERSION");
  }
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return refuse(400, "the method is malformed");
  if (target.size() > kTargetMaxBytes) {
    head_.target = target.substr(0, 64);
    return refuse(414, "the target has more than " + std::to_string(kTargetMaxBytes) + " bytes");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool is_http = version.starts_with("HTTP/");
    return refuse(is_http ? 505 : 400, is_http ? "only HTTP/1.0 and HTTP/1.1 are spoken"
                                               : "the HTTP version is malformed");
  }
  // Absolute form, as sent to proxies: the path is what counts here.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find('/', scheme.size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  if (target == "*" && method == "OPTIONS") target = "/";
  if (!target.starts_with('/')) return refuse(400, "the target does not begin with '/'");
  for (const char c : target) {
    if (is_control(c) || c == ' ' || c == '\t') return refuse(400, "the target is malformed");
  }
  constexpr std::string_view kMethods[] = {"GET",    "HEAD",    "POST", "PUT",
                                           "DELETE", "OPTIONS", "PATCH"};
  if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods)) {
    return refuse(501, "the method is not known");
  }
  head_.method = method;
  head_.target = target;
  head_.http_1_1 = version == "HTTP/1.1";
  return true;
}

bool HeadParser::header(std::string_view line) {
  if (++headers_ > headers_max_) {
    return refuse(431, "more headers than http.headers = " + std::to_string(headers_max_));
  }
  if (line.front() == ' ' || line.front() == '\t') {
    return refuse(400, "a header is folded over several lines");
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return refuse(400, "a header is malformed");
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), is_control)) {
    return refuse(400, "a header's value holds a control character");
  }
  return known_header(line.substr(0, colon), value);
}

bool HeadParser::known_header(std::string_view name, std::string_view value) {
  const auto is = [name](std::string_view other) { return equal_ignoring_case(name, other); };
  if (is("content-length")) return content_length(value);
  if (is("transfer-encoding")) return transfer_encoding(value);
  if (is("content-encoding")) return content_encoding(value);
  if (is("host")) {
    if (seen_.host) return refuse(400, "Host is given twice");
    seen_.host = true;
    return keep(head_.host, value);
  }
  if (is("authorization")) {
    if (!head_.authorization.empty()) return refuse(400, "Authorization is given twice");
    return keep(head_.authorization, value);
  }
  if (is("connection")) {
    seen_.connection_close = seen_.connection_close || list_holds(value, "close");
    seen_.connection_keep_alive = seen_.connection_keep_alive || list_holds(value, "keep-alive");
    return true;
  }
  if (is("expect")) {
    if (!equal_ignoring_case(value, "100-continue")) {
      return refuse(417, "only 100-continue can be expected");
    }
    head_.expects_continue = true;
    return true;
  }
  if (is("accept-encoding")) {
    head_.accepts = accepted_codings(value);
    return true;
  }
  if (is("if-none-match")) return keep(head_.if_none_match, value);
  if (is("accept")) return keep(head_.accept, value);
  if (is("content-type")) return keep(head_.content_type, value);
  if (is("origin")) return keep(head_.origin, value);
  if (is("referer")) return keep(head_.referer, value);
  if (is("user-agent")) return keep(head_.user_agent, value);
  if (is("x-edgecase-report")) {
    head_.reports_inline = value == wire::routes::kReportInline;
    return true;
  }
  if (is("x-edgecase-page")) return keep(head_.page, value);
  if (is("x-edgecase-origin")) return keep(head_.forwarder, value);
  if (is("sec-fetch-site")) return keep(head_.sec_fetch_site, value);
  if (is("forwarded")) return add_forwarded(head_.forwarded, value);
  if (is("x-forwarded-for")) return add_forwarded(head_.x_forwarded_for, value);
  constexpr std::string_view kForwarded = "x-forwarded-";
  head_.is_forwarded = head_.is_forwarded || is("via") ||
                       equal_ignoring_case(name.substr(0, kForwarded.size()), kForwarded);
  return true;
}

bool HeadParser::content_length(std::string_view value) {
  std::uint64_t length = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, length);
  if (error == std::errc::result_out_of_range && stop == end) {
    return refuse(413, "Content-Length is beyond every limit");
  }
  if (error != std::errc{} || stop != end) return refuse(400, "Content-Length is malformed");
  if (seen_.content_length && length != head_.content_length) {
    return refuse(400, "Content-Length is given twice");
  }
  seen_.content_length = true;
  head_.content_length = length;
  return true;
}

bool HeadParser::transfer_encoding(std::string_view value) {
  if (seen_.transfer_encoding) return refuse(400, "Transfer-Encoding is given twice");
  if (!equal_ignoring_case(value, "chunked")) {
    return refuse(501, "the only Transfer-Encoding is chunked");
  }
  seen_.transfer_encoding = true;
  head_.framing = BodyFraming::Chunked;
  return true;
}

bool HeadParser::content_encoding(std::string_view value) {
  if (seen_.content_encoding) return refuse(400, "Content-Encoding is given twice");
  seen_.content_encoding = true;
  if (value.empty() || equal_ignoring_case(value, "identity")) return true;
  const std::string_view name = equal_ignoring_case(value, "x-gzip") ? "gzip" : value;
  for (const wire::Coding coding :
       {wire::Coding::Gzip, wire::Coding::Zstd, wire::Coding::Deflate}) {
    if (!equal_ignoring_case(name, wire::name_of(coding))) continue;
    head_.coding = coding;
    return true;
  }
  return refuse(415, "Content-Encoding is none of gzip, zstd, deflate, identity");
}

bool HeadParser::finish() {
  // Both, or chunks in HTTP/1.0: the ways in which a proxy and a server can disagree about where a
  // request ends.
  if (seen_.transfer_encoding && (seen_.content_length || !head_.http_1_1)) {
    return refuse(400, "Transfer-Encoding does not go with Content-Length or HTTP/1.0");
  }
  if (head_.http_1_1 && !seen_.host) return refuse(400, "Host is missing");
  head_.keep_alive = head_.http_1_1 && !seen_.connection_close;
  const std::string_view target = head_.target;
  const std::size_t query = std::min(target.find('?'), target.size());
  head_.path = wire::percent_decode(target.substr(0, query));
  add_parameters(target.substr(std::min(query + 1, target.size())), head_.parameters);
  return true;
}

// Whether a head begins so: a method's name, or the line break that some clients send first.
bool can_begin(char c) {
  return is_token_character(c) || c == '\r' || c == '\n';
}

// Where a CR has no LF behind it, or an LF no CR before it. A CR at the end may still get its LF.
std::size_t broken_line_end(std::string_view bytes) {
  for (std::size_t i = bytes.find_first_of("\r\n"); i != std::string_view::npos;
       i = bytes.find_first_of("\r\n", i)) {
    if (bytes[i] == '\n') return i;
    if (i + 1 == bytes.size()) break;
    if (bytes[i + 1] != '\n') return i;
    i += 2;
  }
  return std::string_view::npos;
}

HeadOutcome refuse_all(Refusal& refusal, const char* why) {
  refusal = {400, invalid_argument(why)};
  return HeadOutcome::Refused;
}

}  // namespace

wire::Coding AcceptedCodings::best() const {
  if (gzip == 0 && zstd == 0) return wire::Coding::Identity;
  return zstd >= gzip ? wire::Coding::Zstd : wire::Coding::Gzip;
}

void add_parameters(std::string_view text, Parameters& parameters) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::string name = form_decoded(pair.substr(0, equals));
    if (!name.empty()) {
      parameters.emplace(std::move(name),
                         form_decoded(pair.substr(std::min(equals + 1, pair.size()))));
    }
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
  }
}

HeadOutcome parse_request_head(std::string_view bytes, RequestHead& head, std::size_t& used,
                               Refusal& refusal, const HeadLimits& limits) {
  head = RequestHead{};
  std::size_t begin = 0;
  // Some clients end a body with a line break that they do not count.
  while (bytes.substr(begin, 2) == "\r\n" && begin < 8) begin += 2;
  if (begin < bytes.size() && !can_begin(bytes[begin])) {
    constexpr char kTlsHandshake = 0x16;
    refuse_all(refusal, "this is no HTTP request");
    if (bytes[begin] == kTlsHandshake) refusal.http_status = kAlert;
    return HeadOutcome::Refused;
  }
  const std::size_t end = bytes.find("\r\n\r\n", begin);
  const std::size_t known = end == std::string_view::npos ? bytes.size() : end + 4;
  HeadParser parser(head, refusal, limits.headers);
  const std::size_t line_end = bytes.find("\r\n", begin);
  if (known - begin > limits.bytes) {
    if (line_end == std::string_view::npos || line_end - begin > kTargetMaxBytes + 64) {
      refusal = {414, invalid_argument("the request line is too long")};
    } else {
      refusal = {431, invalid_argument("the head has more bytes than http.head-limit = " +
                                       std::to_string(limits.bytes))};
    }
    return HeadOutcome::Refused;
  }
  // What can never become a head is told at once, not after a deadline.
  if (const std::size_t broken = broken_line_end(bytes.substr(begin, known - begin));
      broken != std::string_view::npos) {
    return refuse_all(refusal, "a line of the head does not end in CR LF");
  }
  if (line_end != std::string_view::npos &&
      !parser.request_line(bytes.substr(begin, line_end - begin))) {
    return HeadOutcome::Refused;
  }
  if (end == std::string_view::npos) return HeadOutcome::NeedMore;
  std::string_view rest = bytes.substr(line_end + 2, end + 2 - (line_end + 2));
  while (!rest.empty()) {
    const std::size_t header_end = rest.find("\r\n");
    if (!parser.header(rest.substr(0, header_end))) return HeadOutcome::Refused;
    rest.remove_prefix(header_end + 2);
  }
  if (!parser.finish()) return HeadOutcome::Refused;
  used = end + 4;
  return HeadOutcome::Complete;
}

Refusal bad_request(std::string message) {
  return {400, invalid_argument(std::move(message))};
}
Refusal too_large(std::string message) {
  return {413, invalid_argument(std::move(message))};
}
Refusal overloaded(std::string message) {
  return {503, busy(std::move(message))};
}

bool is_influx_path(std::string_view path) {
  for (const std::string_view influx :
       {wire::routes::kInfluxWrite, wire::routes::kInfluxWriteV2, wire::routes::kInfluxPing,
        wire::routes::kInfluxHealth, wire::routes::kInfluxReady, wire::routes::kInfluxQuery,
        wire::routes::kInfluxQueryV2, wire::routes::kInfluxBuckets, wire::routes::kInfluxOrgs}) {
    if (path == influx) return true;
  }
  return false;
}

std::string error_body(std::string_view path, const Status& status) {
  if (!is_influx_path(path)) return wire::error_json(status) + "\n";
  const nlohmann::ordered_json body = {{"error", status.message()},
                                       {"code", wire::error_code_name(status.code())},
                                       {"message", status.message()}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string refusal_text(std::string_view target, const Refusal& refusal, const std::string& date) {
  // A record of an alert (RFC 8446, section 6): fatal, handshake_failure.
  if (refusal.http_status == kAlert) return {"\x15\x03\x01\x00\x02\x02\x28", 7};
  Response response;
  response.status = refusal.http_status;
  response.set_header("Content-Type", "application/json");
  if (!date.empty()) response.set_header("Date", date);
  if (refusal.http_status == 503) {
    response.set_header("Retry-After", std::to_string(kRetryAfterSeconds));
  }
  response.body = error_body(target.substr(0, target.find('?')), refusal.status);
  return head_text(response, false, true) + response.body;
}

}  // namespace edgecase::http
