#include "forward/http_target.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "wire/authority.h"
#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

constexpr std::size_t kSecretMaxBytes = 4'096;

// The first line of a file, which may have been replaced since.
Result<std::string> read_secret(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (!file || !std::getline(file, text))
    return invalid_argument("token-file: cannot read a line from " + path);
  if (!text.empty() && text.back() == '\r') text.pop_back();
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (text.empty() || text.size() > kSecretMaxBytes || !is_plain)
    return invalid_argument("token-file: the first line of " + path + " is no token");
  return text;
}

std::string environment(const char* name, const char* other) {
  const char* value = std::getenv(name);
  if (value == nullptr) value = std::getenv(other);
  return value == nullptr ? "" : value;
}

Result<HttpClient::Options> options_of(const config::ForwardSettings& settings,
                                       const config::ForwardTarget& target) {
  HttpClient::Options options;
  options.host = target.host;
  options.port = target.port;
  if (!target.is_secure) return options;
  auto client = tls::TlsClient::load(settings.tls_ca, {settings.tls_cert, settings.tls_key});
  if (!client.ok())
    return client.status().with_context(settings.tls_cert.empty() ? "tls-ca: " : "tls-cert: ");
  options.tls = *std::move(client);
  auto proxy = proxy_of(environment("https_proxy", "HTTPS_PROXY"),
                        environment("no_proxy", "NO_PROXY"), target.host);
  if (!proxy.ok()) return proxy.status().with_context("to: ");
  options.proxy = *std::move(proxy);
  return options;
}

// The beginning of what it says of itself, in one line that a log can show.
std::string said_by(const HttpAnswer& answer) {
  constexpr std::size_t kSaidMaxBytes = 200;
  if (answer.content_type.starts_with("text/html")) return " (an HTML page)";
  std::string said = answer.body.substr(0, kSaidMaxBytes);
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  std::replace_if(
      said.begin(), said.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return said.empty() ? "" : ": " + said;
}

std::optional<std::int64_t> retry_after_of(const HttpAnswer& answer) {
  const std::string& text = answer.retry_after;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::min(seconds, HttpTarget::kRetryAfterMaxNs / wire::kNanosecondsPerSecond) *
         wire::kNanosecondsPerSecond;
}

}  // namespace

Status check_target(const config::ForwardSettings& settings, const config::ForwardTarget& target) {
  EC_TRY(read_secret(settings.token_file).status());
  return options_of(settings, target).status();
}

Result<std::unique_ptr<HttpTarget>> HttpTarget::create(const config::ForwardSettings& settings,
                                                       const config::ForwardTarget& target,
                                                       Clock& clock) {
  EC_TRY(read_secret(settings.token_file).status());
  EC_ASSIGN_OR_RETURN(HttpClient::Options options, options_of(settings, target));
  return std::unique_ptr<HttpTarget>(new HttpTarget(settings, target, std::move(options), clock));
}

HttpTarget::HttpTarget(const config::ForwardSettings& settings, const config::ForwardTarget& target,
                       HttpClient::Options options, Clock& clock)
    : settings_(settings),
      target_(target),
      client_(std::move(options), clock),
      coding_(target.kind == config::ForwardKind::EdgeCase ? wire::Coding::Zstd
                                                           : wire::Coding::Gzip) {}

std::string HttpTarget::path_of(const std::string& database) const {
  if (target_.kind == config::ForwardKind::EdgeCase) return target_.path + wire::routes::kReadings;
  if (!settings_.bucket.empty()) {
    return target_.path + wire::routes::kInfluxWriteV2 +
           "?precision=ns&bucket=" + wire::percent_encode(settings_.bucket) +
           "&org=" + wire::percent_encode(settings_.org);
  }
  return target_.path + wire::routes::kInfluxWrite +
         "?precision=ns&db=" + wire::percent_encode(database);
}

// A line of the head; empty: nobody asks.
Result<std::string> HttpTarget::authorization() const {
  EC_ASSIGN_OR_RETURN(const std::string secret, read_secret(settings_.token_file));
  std::string line;
  if (!settings_.username.empty()) {
    line = "Authorization: Basic ";
    wire::append_base64(settings_.username + ":" + secret, line);
    line += "\r\n";
  } else if (!secret.empty()) {
    line = std::string("Authorization: ") + (settings_.bucket.empty() ? "Bearer " : "Token ") +
           secret + "\r\n";
  }
  return line;
}

Answer HttpTarget::ask(const std::string& method, const std::string& path, HttpAnswer& http) {
  const Result<std::string> who = authorization();
  if (!who.ok()) return {.verdict = Verdict::Denied, .why = who.status().message()};
  return judge_question(
      client_.ask(method, target_.path + path, "User-Agent: edgecase\r\n" + origin_ + *who), http);
}

Answer HttpTarget::put_summaries(std::string_view lines, HttpAnswer& http) {
  const Result<std::string> who = authorization();
  if (!who.ok()) return {.verdict = Verdict::Denied, .why = who.status().message()};
  const std::string headers =
      "User-Agent: edgecase\r\nContent-Type: application/x-ndjson\r\n" + origin_ + *who;
  return judge_question(client_.ask("PUT", target_.path + wire::routes::kForward, headers, lines),
                        http);
}

Answer HttpTarget::judge_question(Result<HttpAnswer> answer, HttpAnswer& http) const {
  if (!answer.ok()) {
    const bool is_stopped = answer.status().code() == StatusCode::Cancelled;
    return {.verdict = is_stopped ? Verdict::Stopped : Verdict::Away,
            .why = answer.status().message()};
  }
  http = *std::move(answer);
  if (http.status != 401 && http.status != 429 && http.status < 500) return {.status = http.status};
  // What it says may name what was asked for: that is not told.
  Answer judged{.verdict = http.status == 401 ? Verdict::Denied : Verdict::Later,
                .status = http.status,
                .why = "it answers " + std::to_string(http.status) + " to a question"};
  if (http.status != 401) judged.retry_after_ns = retry_after_of(http);
  return judged;
}

Answer HttpTarget::carry(const std::string& database, std::string_view lines, std::size_t count) {
  const Result<std::string> who = authorization();
  if (!who.ok()) return {.verdict = Verdict::Denied, .why = who.status().message()};
  const bool is_edgecase = target_.kind == config::ForwardKind::EdgeCase;
  std::string headers = "User-Agent: edgecase\r\nContent-Encoding: ";
  headers.append(wire::name_of(coding_)).append("\r\nContent-Type: ");
  headers += is_edgecase ? "application/x-ndjson\r\n" : "text/plain; charset=utf-8\r\n";
  headers += origin_ + *who;
  if (!wire::pack_once(coding_, lines, packed_))
    return {.verdict = Verdict::Later, .why = "no memory for packing"};
  sent_bytes_ += packed_.size();
  const Result<HttpAnswer> answer = client_.post(path_of(database), headers, packed_);
  packed_.clear();
  constexpr int kUnknownCoding = 415;
  if (answer.ok() && answer->status == kUnknownCoding && coding_ == wire::Coding::Zstd) {
    coding_ = wire::Coding::Gzip;  // an older one, or what stands before it
    return carry(database, lines, count);
  }
  if (answer.ok()) return judge(*answer, count);
  const bool is_stopped = answer.status().code() == StatusCode::Cancelled;
  return {.verdict = is_stopped ? Verdict::Stopped : Verdict::Away,
          .why = answer.status().message()};
}

Answer HttpTarget::carry_rules(std::string_view lines, std::uint64_t& refused) {
  const Result<std::string> who = authorization();
  if (!who.ok()) return {.verdict = Verdict::Denied, .why = who.status().message()};
  const std::string headers =
      "User-Agent: edgecase\r\nContent-Type: application/x-ndjson\r\n" + origin_ + *who;
  const Result<HttpAnswer> answer =
      client_.put(target_.path + wire::routes::kRetention, headers, lines);
  if (!answer.ok()) {
    const bool is_stopped = answer.status().code() == StatusCode::Cancelled;
    return {.verdict = is_stopped ? Verdict::Stopped : Verdict::Away,
            .why = answer.status().message()};
  }
  sent_bytes_ += lines.size();
  const auto json = nlohmann::json::parse(answer->body, nullptr, false);
  const bool is_done = answer->status == 200 && json.is_object() && json.contains("refused") &&
                       json["refused"].is_number_unsigned();
  if (!is_done) {
    return {.verdict = answer->status == 401 ? Verdict::Denied : Verdict::Later,
            .status = answer->status,
            .why = "it answers " + std::to_string(answer->status) +
                   " to rules of retention; to do: a newer version there, or retention = false",
            .retry_after_ns = retry_after_of(*answer)};
  }
  refused = json["refused"].get<std::uint64_t>();
  return {.status = 200};
}

Answer HttpTarget::judge(const HttpAnswer& http, std::size_t count) const {
  Answer answer{.status = http.status};
  const std::string said = "it answers " + std::to_string(http.status) + said_by(http);
  const auto wrong = [&](const std::string& what) {
    answer.verdict = Verdict::Wrong;
    answer.why = what;
    return answer;
  };
  switch (http.status) {
    case 204:
      if (target_.kind == config::ForwardKind::Influx) return answer;
      return wrong("it answers 204, as no EdgeCase does; to do: look at forward.to");
    case 200: {
      if (target_.kind == config::ForwardKind::Influx)
        return wrong(
            "it answers 200 where a write is answered with 204; to do: look at the path "
            "in forward.to");
      const auto json = nlohmann::json::parse(http.body, nullptr, false);
      if (!json.is_object() || !json.contains("stored") || !json["stored"].is_number_unsigned())
        return wrong("it answers 200, but not as EdgeCase does; to do: look at forward.to");
      const auto stored = json["stored"].get<std::uint64_t>();
      answer.not_kept = count - std::min<std::uint64_t>(stored, count);
      answer.is_apart = json.contains("apart") && json["apart"] == true;
      return answer;
    }
    case 400:
    case 413:
    case 422:
      answer.verdict = Verdict::Refused;
      answer.why = said;
      return answer;
    case 401:
    case 403:
      answer.verdict = Verdict::Denied;
      answer.why = said + "; to do: look at forward.token-file, and what the token may do there";
      return answer;
    case 404:
      return wrong(said +
                   "; to do: look at the path in forward.to, and whether the database is "
                   "there");
    case 429:
    case 503:
      answer.verdict = Verdict::Later;
      answer.why = said;
      answer.retry_after_ns = retry_after_of(http);
      return answer;
    // Somebody before the target says that it is not there, or was not in time.
    case 502:
    case 504:
      answer.verdict = Verdict::Away;
      answer.why = said;
      return answer;
    default: break;
  }
  if (http.status >= 300 && http.status < 400)
    return wrong("it sends elsewhere (" + std::to_string(http.status) + " to " + http.location +
                 "); to do: write that into forward.to, if it is meant");
  if (http.status < 500) return wrong(said + "; to do: look at forward.to");
  answer.verdict = Verdict::Later;
  answer.why = said;
  answer.retry_after_ns = retry_after_of(http);
  return answer;
}

}  // namespace edgecase::forward
