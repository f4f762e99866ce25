#include "http/router.h"

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/token_store.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// One line a scheme: browsers read the first scheme of a line alone, and of all lines the first
// that they know. For Basic they ask for a name and a password, which is the token.
void add_challenges(bool was_shown_one, Response& response) {
  for (const char* challenge :
       {"Basic realm=\"EdgeCase\", charset=\"UTF-8\"",
        was_shown_one
            ? "Bearer realm=\"EdgeCase\", error=\"invalid_token\""  // RFC 6750, section 3.1
            : "Bearer realm=\"EdgeCase\"",
        "Token realm=\"EdgeCase\""}) {
    response.add_header("WWW-Authenticate", challenge);
  }
}

bool is_long(const Response& response) {
  return response.pieces || response.body.size() > kOutputKeptBytes;
}

}  // namespace

RevokedTest watch_of(query::GivenReadings given) {
  return [given = std::move(given)]() mutable { return given.is_revoked(); };
}

void Call::watch(query::GivenReadings given) {
  if (!given.empty()) exchange.stream.begin_part(watch_of(std::move(given)));
}

std::string Call::parameter(std::string_view name) const {
  const auto found = request.parameters.lower_bound(name);
  return found == request.parameters.end() || found->first != name ? std::string() : found->second;
}

void Call::answer_json(int http_status, std::string json) {
  response.status = http_status;
  response.body = std::move(json);
  response.set_header("Content-Type", "application/json");
}

void Call::answer_text(int http_status, const char* content_type, std::string text) {
  response.status = http_status;
  response.body = std::move(text);
  response.set_header("Content-Type", content_type);
}

void Call::answer_error(const Status& status) {
  answer_json(wire::http_status_of(status.code()), error_body(request.path, status));
}

void Router::add(const Route& route, Handler handler) {
  const std::string_view fixed = fixed_part(route.path);
  std::string path(fixed);
  if (fixed.size() < route.path.size()) path += '*';
  insert(route.method, std::move(path), {&route, route.effect, route.access, std::move(handler)});
}

void Router::add(std::string_view method, std::string path, Effect effect, Handler handler,
                 Access access) {
  insert(method, std::move(path), {nullptr, effect, access, std::move(handler)});
}

void Router::insert(std::string_view method, std::string path, Entry entry) {
  auto& table = path.ends_with('*') ? prefixes_ : exact_;
  if (path.ends_with('*')) path.pop_back();
  table[std::move(path)][std::string(method)] = std::move(entry);
}

void Router::on_answer(std::function<void(int)> observer) {
  observer_ = std::move(observer);
}

void Router::on_authenticate(std::function<Result<auth::Principal>(const Exchange&)> authenticate) {
  authenticate_ = std::move(authenticate);
}

void Router::set_sites(Sites sites) {
  auto fresh = std::make_shared<const Sites>(std::move(sites));
  const MutexLock lock(sites_mutex_);
  sites_.swap(fresh);
}

std::shared_ptr<const Sites> Router::sites() const {
  const MutexLock lock(sites_mutex_);
  return sites_;
}

void Router::on_date(std::function<std::string()> date) {
  date_ = std::move(date);
}

void Router::on_run(RunHooks hooks) {
  hooks_ = std::move(hooks);
}

bool Router::answer(Exchange& exchange) {
  Call call{exchange, exchange.head};
  try {
    dispatch(call);
  } catch (const std::exception&) {
    call.response = {};
    call.answer_error(busy("no memory for this request"));
  }
  if (exchange.waits) return true;
  complete_headers(call.response);
  pack_response(exchange.head, call.response);
  const bool is_whole =
      send_response(exchange.head, call.response, exchange.closes, exchange.stream, is_cut_);
  if (observer_) observer_(call.response.status);
  return is_whole && !exchange.stream.failed();
}

void Router::complete_headers(Response& response) const {
  response.set_header("X-Content-Type-Options", "nosniff");
  if (const std::string date = date_ ? date_() : std::string(); !date.empty()) {
    response.set_header("Date", date);
  }
  if (response.status == 503 && !response.has_header("Retry-After")) {
    response.set_header("Retry-After", std::to_string(kRetryAfterSeconds));
  }
}

void Router::dispatch(Call& call) {
  const RequestHead& request = call.request;
  const Methods* const methods = find(request.path);
  if (methods == nullptr) return call.answer_error(not_found("there is no " + request.path));
  const bool is_head = request.method == "HEAD";
  if (const auto route = methods->find(is_head ? "GET" : std::string_view(request.method));
      route != methods->end()) {
    return run(route->second, call);
  }
  std::string allowed = "OPTIONS";
  for (const auto& [method, route] : *methods) {
    allowed += ", " + method;
    if (method == "GET") allowed += ", HEAD";
  }
  call.response.set_header("Allow", allowed);
  if (request.method == "OPTIONS") {
    call.response.status = 204;
    return;
  }
  call.answer_json(405,
                   error_body(request.path, invalid_argument(request.path + " takes " + allowed)));
}

const Router::Methods* Router::find(const std::string& path) const {
  if (const auto found = exact_.find(path); found != exact_.end()) return &found->second;
  for (const auto& [prefix, methods] : prefixes_) {
    if (path.starts_with(prefix)) return &methods;
  }
  return nullptr;
}

// Finds out who asks. False: it was answered that it may not.
bool Router::admit(const Entry& entry, Call& call) {
  // Whatever keeps addresses, keeps what is in them.
  for (const auto& [name, value] : call.request.parameters) {
    if (!auth::looks_like_token(value)) continue;
    call.answer_error(invalid_argument(
        "a token in a URL ends up in logs: send it in the header Authorization, and revoke it"));
    return false;
  }
  if (entry.access == Access::Open || !authenticate_) return true;
  auto principal = authenticate_(call.exchange);
  if (principal.ok()) {
    call.exchange.principal = std::move(principal).value();
    return true;
  }
  const bool too_many = principal.status().code() == StatusCode::Busy;
  call.answer_json(too_many ? 429 : 401,
                   error_body(call.request.path, not_allowed(principal.status().message())));
  if (too_many) {
    call.response.set_header("Retry-After", std::to_string(auth::Authenticator::kRefillNs /
                                                           wire::kNanosecondsPerSecond));
  } else {
    add_challenges(!call.exchange.head.authorization.empty(), call.response);
  }
  return false;
}

void Router::run(const Entry& entry, Call& call) {
  call.route = entry.route;
  call.exchange.principal = asker(call.exchange.head, call.exchange.connection, *sites());
  handle(entry, call);
  if (hooks_.after && !call.exchange.waits) hooks_.after(call);
}

void Router::handle(const Entry& entry, Call& call) {
  if (const Status status = check_site(call.exchange.head, entry.effect, *sites()); !status.ok()) {
    return call.answer_error(status);
  }
  if (!admit(entry, call)) return;
  if (hooks_.before) {
    if (const Status status = hooks_.before(call); !status.ok()) {
      return call.answer_error(status);
    }
  }
  if (entry.route != nullptr) {
    if (const Status status = check_parameters(*entry.route, call.request.parameters);
        !status.ok()) {
      return call.answer_error(status);
    }
  }
  entry.handler(call);
  if (!is_long(call.response)) return;
  // Its reader may be slow, and then a worker waits: not all of them at once.
  Exchange& exchange = call.exchange;
  if (exchange.long_answer.bytes() > 0 || exchange.long_answer.grow(1)) return;
  call.response.pieces = nullptr;
  // A request that only reads comes to the same once more.
  const bool only_read = entry.effect == Effect::Reads || call.only_read;
  exchange.waits = exchange.may_wait && only_read;
  if (exchange.waits) return;
  call.answer_error(busy("too many long answers are being sent"));
}

// Looking things up in the table of routes.

namespace {

bool knows(const Route& route, std::string_view name) {
  for (std::string_view rest = route.parameters; !rest.empty();) {
    const std::string_view key = next_word(rest);
    if (key == "*" || key.substr(0, key.find_first_of("@!")) == name) return true;
  }
  return false;
}

Status unknown_parameter(const Route& route, const std::string& name) {
  std::string message = "unknown parameter \"" + name + "\", ";
  std::vector<std::string_view> known;
  std::string all;
  for (std::string_view rest = route.parameters; !rest.empty();) {
    const std::string_view key = next_word(rest);
    known.push_back(key.substr(0, key.find_first_of("@!")));
    all += " " + std::string(known.back());
  }
  if (known.empty()) return invalid_argument(message + "there is none here");
  const std::string_view near = wire::nearest_word(name, known);
  return invalid_argument(
      message + (near.empty() ? "one of" + all : "did you mean " + std::string(near) + "?"));
}

}  // namespace

const Route* find_route(std::string_view method, std::string_view path) {
  const std::string_view asked = method == "HEAD" ? "GET" : method;
  for (const Route& route : route_table()) {
    if (route.method != asked) continue;
    const std::string_view fixed = fixed_part(route.path);
    const bool is_whole = fixed.size() == route.path.size();
    if (is_whole ? path == fixed : path.starts_with(fixed)) return &route;
  }
  return nullptr;
}

std::string_view fixed_part(std::string_view path) {
  return path.substr(0, path.find('{'));
}

Status check_parameters(const Route& route, const Parameters& parameters) {
  for (const auto& [name, value] : parameters) {
    if (!knows(route, name)) return unknown_parameter(route, name);
  }
  return ok();
}

std::string_view next_word(std::string_view& list, char separator) {
  const std::string_view word = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(word.size() + 1, list.size()));
  return word;
}

}  // namespace edgecase::http
