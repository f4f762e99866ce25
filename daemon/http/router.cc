#include "http/router.h"

#include <array>
#include <utility>

#include "auth/authenticator.h"
#include "http/refusal.h"
#include "wire/errors.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// A request of the library has no place for user data, but a client-side callback that servers
// never call: it carries the exchange through to the hook.
struct ExchangeCarrier {
  Exchange* exchange;
  bool operator()(std::uint64_t, std::uint64_t) const { return true; }
};

// One line a scheme: browsers read the first scheme of a line alone, and of all lines the first
// that they know. For Basic they ask for a name and a password, which is the token.
void add_challenges(bool was_shown_one, httplib::Response& response) {
  const std::array<std::string, 3> challenges = {
      "Basic realm=\"EdgeCase\", charset=\"UTF-8\"",
      std::string("Bearer realm=\"EdgeCase\"") +
          (was_shown_one ? ", error=\"invalid_token\"" : ""),  // RFC 6750, section 3.1
      "Token realm=\"EdgeCase\""};
  constexpr char kName[] = "WWW-Authenticate";
  for (const std::string& each : challenges) response.headers.emplace(kName, each);
  // Some versions of the library keep lines of one name the other way round.
  if (response.headers.find(kName)->second == challenges.front()) return;
  response.headers.erase(kName);
  for (auto each = challenges.rbegin(); each != challenges.rend(); ++each) {
    response.headers.emplace(kName, *each);
  }
}

// The library's way in takes the two ends' addresses as well from some version on.
using Setup = std::function<void(httplib::Request&)>;
struct WayIn {
  httplib::Server& server;
  httplib::Stream& stream;
  bool& close;
  const Setup& setup;

  bool through(bool (httplib::Server::*process)(httplib::Stream&, bool, bool&, const Setup&)) {
    return (server.*process)(stream, close, close, setup);
  }
  bool through(bool (httplib::Server::*process)(httplib::Stream&, const std::string&, int,
                                                const std::string&, int, bool, bool&,
                                                const Setup&)) {
    return (server.*process)(stream, {}, 0, {}, 0, close, close, setup);
  }
};

bool is_long(const httplib::Response& response) {
  return response.content_provider_ || response.body.size() > kOutputKeptBytes;
}

}  // namespace

RevokedTest watch_of(query::GivenReadings given) {
  return [given = std::move(given)]() mutable { return given.is_revoked(); };
}

void Call::watch(query::GivenReadings given) {
  if (!given.empty()) exchange.stream.begin_part(watch_of(std::move(given)));
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

Router::Router() {
  // The library streams only while it thinks that it listens.
  svr_sock_ = 0;
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    dispatch(request, response);
    return HandlerResponse::Handled;
  });
  set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
    response.headers.erase("Keep-Alive");  // its limits are not ours
    response.headers.erase("Accept-Ranges");
    response.set_header("X-Content-Type-Options", "nosniff");
    if (const std::string date = date_ ? date_() : std::string(); !date.empty()) {
      response.set_header("Date", date);
    }
    if (response.status == 204) response.headers.erase("Content-Length");  // it has no body
    if (response.status == 503 && !response.has_header("Retry-After")) {
      response.set_header("Retry-After", std::to_string(kRetryAfterSeconds));
    }
  });
  // Only what the library refuses by itself comes without a body.
  set_error_handler(HandlerWithResponse([](const auto& request, auto& response) {
    if (!response.body.empty()) return HandlerResponse::Unhandled;
    response.body = error_body(request.path, invalid_argument("the request is malformed"));
    response.set_header("Content-Type", "application/json");
    return HandlerResponse::Handled;
  }));
  set_exception_handler(
      [](const httplib::Request& request, httplib::Response& response, std::exception_ptr) {
        response = httplib::Response();
        response.version = "HTTP/1.1";
        response.status = 503;
        response.body = error_body(request.path, busy("no memory for this request"));
        response.set_header("Content-Type", "application/json");
      });
  set_logger([this](const httplib::Request& request, const httplib::Response& response) {
    const ExchangeCarrier* const carrier = request.progress.target<ExchangeCarrier>();
    if (carrier != nullptr && carrier->exchange->waits) return;
    if (observer_) observer_(response.status);
  });
}

void Router::add(std::string_view method, std::string path, Effect effect, Handler handler,
                 Access access) {
  auto& table = path.ends_with('*') ? prefixes_ : exact_;
  if (path.ends_with('*')) path.pop_back();
  table[std::move(path)][std::string(method)] = Route{effect, access, std::move(handler)};
}

void Router::on_answer(std::function<void(int)> observer) {
  observer_ = std::move(observer);
}

void Router::on_authenticate(std::function<Result<auth::Principal>(const Exchange&)> authenticate) {
  authenticate_ = std::move(authenticate);
}

void Router::set_sites(Sites sites) {
  auto fresh = std::make_shared<const Sites>(std::move(sites));
  const std::lock_guard lock(sites_mutex_);
  sites_.swap(fresh);
}

std::shared_ptr<const Sites> Router::sites() const {
  const std::lock_guard lock(sites_mutex_);
  return sites_;
}

void Router::on_date(std::function<std::string()> date) {
  date_ = std::move(date);
}

void Router::on_run(RunHooks hooks) {
  hooks_ = std::move(hooks);
}

bool Router::answer(Exchange& exchange) {
  bool close = !exchange.keep_alive;
  const Setup setup = [&exchange](httplib::Request& request) {
    request.progress = ExchangeCarrier{&exchange};
    // Given here and not replayed: the library would percent-decode it.
    if (!exchange.head.content_type.empty()) {
      request.set_header("Content-Type", exchange.head.content_type);
    }
  };
  httplib::Server& library = *this;
  const bool complete =
      WayIn{library, exchange.stream, close, setup}.through(&Router::process_request);
  return complete && !exchange.stream.failed();
}

void Router::cut_streams() {
  svr_sock_ = INVALID_SOCKET;
}

std::string Router::replayed_line(const RequestHead& head) {
  std::string line = head.method + " ";
  // The library takes a second `?` for an error, a `#` for the end, and of a parameter what lies
  // behind its last `=`; all are data to us.
  const std::size_t query = head.target.find('?');
  bool in_value = false;
  for (std::size_t i = 0; i < head.target.size(); ++i) {
    const char c = head.target[i];
    if (c == '?' && i != query) {
      line += "%3F";
    } else if (c == '#') {
      line += "%23";
    } else if (c == '=' && in_value) {
      line += "%3D";
    } else {
      line += c;
      in_value = i > query && c != '&' && (in_value || c == '=');
    }
  }
  return line + (head.http_1_1 ? " HTTP/1.1\r\n\r\n" : " HTTP/1.0\r\n\r\n");
}

void Router::dispatch(const httplib::Request& request, httplib::Response& response) {
  const ExchangeCarrier* const carrier = request.progress.target<ExchangeCarrier>();
  Call call{*carrier->exchange, request, response};
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
  response.set_header("Allow", allowed);
  if (request.method == "OPTIONS") {
    response.status = 204;
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
bool Router::admit(const Route& route, Call& call) {
  // Whatever keeps addresses, keeps what is in them.
  for (const auto& [name, value] : call.request.params) {
    if (!auth::looks_like_token(value)) continue;
    call.answer_error(invalid_argument(
        "a token in a URL ends up in logs: send it in the header Authorization, and revoke it"));
    return false;
  }
  if (route.access == Access::Open || !authenticate_) return true;
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

void Router::run(const Route& route, Call& call) {
  call.exchange.principal = asker(call.exchange.head, call.exchange.connection, *sites());
  handle(route, call);
  if (hooks_.after && !call.exchange.waits) hooks_.after(call, route.effect);
}

void Router::handle(const Route& route, Call& call) {
  if (const Status status = check_site(call.exchange.head, route.effect, *sites()); !status.ok()) {
    return call.answer_error(status);
  }
  if (!admit(route, call)) return;
  if (hooks_.before) {
    if (const Status status = hooks_.before(call, route.effect); !status.ok()) {
      return call.answer_error(status);
    }
  }
  route.handler(call);
  if (!is_long(call.response)) return;
  // Its reader may be slow, and then a worker waits: not all of them at once.
  Exchange& exchange = call.exchange;
  if (exchange.long_answer.bytes() > 0 || exchange.long_answer.grow(1)) return;
  call.response.content_provider_ = nullptr;
  call.response.is_chunked_content_provider_ = false;
  // Who only reads comes to the same once more.
  exchange.waits = exchange.may_wait && route.effect == Effect::Reads;
  if (exchange.waits) return exchange.stream.drop();
  call.answer_error(busy("too many long answers are being sent"));
}

}  // namespace edgecase::http
