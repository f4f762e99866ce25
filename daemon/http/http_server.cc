#include "http/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/configuration.h"
#include "http/http_front.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "query/left_out.h"
#include "wire/contract.h"
#include "wire/reading.h"

namespace edgecase::http {
namespace {

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

query::QueryLimits query_limits_of(const config::Settings& settings) {
  const config::LimitSettings& limits = settings.limits;
  // Values that are held are memory, and so a part of what the process may take.
  return {limits.query_points, limits.query_series, limits.query_windows,
          settings.storage.memory_limit_bytes / 4};
}

Result<Sites> sites_of(const config::HttpSettings& settings) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  std::vector<std::string> names = settings.names;
  for (std::string& own :
       own_names(host, text_of_file("/etc/hosts"), text_of_file("/etc/resolv.conf"))) {
    // What such files hold may be anything.
    if (Sites::of({own}, {}).ok()) names.push_back(std::move(own));
  }
  return Sites::of(std::move(names), settings.proxies);
}

// RFC 9110, section 5.6.7; "" where the clock cannot tell.
std::string http_date(Clock& clock) {
  if (clock.trust() != ClockTrust::Trusted) return {};
  const std::time_t seconds = clock.wall_ns() / kSecondNs;
  std::tm at{};
  char text[64] = {};
  if (gmtime_r(&seconds, &at) == nullptr) return {};
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[at.tm_wday],
                at.tm_mday, kMonths[at.tm_mon], at.tm_year + 1900, at.tm_hour, at.tm_min,
                at.tm_sec);
  return text;
}

FrontOptions front_options(const config::HttpSettings& settings) {
  FrontOptions options;
  options.threads = std::max<std::uint32_t>(settings.threads, 1);
  options.connections = settings.connections;
  options.connections_per_address = settings.connections_per_address;
  options.readers = settings.readers;
  options.waiting = std::max<std::uint32_t>(settings.connections / 2, 1);
  options.head = {static_cast<std::size_t>(settings.head_limit_bytes), settings.headers};
  options.body_limit_bytes = settings.body_limit_bytes;
  options.in_flight_limit_bytes = settings.in_flight_limit_bytes;
  return options;
}

void count_answers(Router& router, observe::Metrics& metrics) {
  std::array<observe::Counter*, 6> counters{};
  for (std::size_t i = 1; i < counters.size(); ++i) {
    counters[i] = &metrics.counter("edgecase_http_answers_total", "Requests answered, by status.",
                                   {{"status", std::to_string(i) + "xx"}});
  }
  router.on_answer([counters](int http_status) {
    const auto row = static_cast<std::size_t>(http_status / 100);
    if (row >= 1 && row < counters.size()) counters[row]->add();
  });
}

// Where its device owes readings.
void say_when_to_come_again(Call& call) {
  if (call.pacing.owed_ns <= 0) return;
  const std::int64_t seconds = ingest::whole_seconds(call.pacing.owed_ns);
  call.response.set_header("Retry-After", std::to_string(seconds));
}

}  // namespace

void RateMeter::sample(std::int64_t now_ns, const ingest::IngestPipeline::Counters& counters) {
  const MutexLock lock(mutex_);
  if (!samples_.empty() && now_ns - samples_.back().at_ns < kSpacingNs) return;
  if (samples_.size() == kSamplesMax) samples_.erase(samples_.begin());
  samples_.push_back({now_ns, counters.readings, counters.batches});
}

RateMeter::Rate RateMeter::rate(std::int64_t now_ns,
                                const ingest::IngestPipeline::Counters& counters) const {
  const MutexLock lock(mutex_);
  if (samples_.empty() || now_ns <= samples_.front().at_ns) return {};
  const Sample& oldest = samples_.front();
  const double seconds = static_cast<double>(now_ns - oldest.at_ns) / 1e9;
  return {static_cast<double>(counters.readings - oldest.readings) / seconds,
          static_cast<double>(counters.batches - oldest.batches) / seconds, seconds};
}

namespace {

void leave_out_forbidden(const auth::Principal& principal, std::vector<wire::Reading>& readings,
                         ingest::IngestPipeline& pipeline, ingest::Outcome& outcome) {
  std::erase_if(readings, [&](const wire::Reading& reading) {
    const Status allowed = auth::authorize_write(principal, reading);
    if (allowed.ok()) return false;
    outcome.refuse(reading, allowed);
    pipeline.note_refused(reading);
    return true;
  });
}

// Windows of tiers go in by themselves; what becomes of them is told as of readings.
Status store_windows(HttpServerParts& parts, const auth::Principal& principal,
                     wire::ReadingBatch windows, erase::Copied copied, ingest::Outcome& outcome) {
  leave_out_forbidden(principal, windows.readings, parts.ingest, outcome);
  if (windows.readings.empty()) return ok();
  if (parts.windows == nullptr) return unsupported("no tiers are kept here");
  EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized,
                      auth::authorize_write(principal, windows));
  tiers::WindowOutcome done;
  EC_TRY(parts.windows->take(authorized, copied, done));
  for (const auto& each : done.refused) {
    outcome.refuse(windows.readings[each.window], each.why);
    parts.ingest.note_refused(windows.readings[each.window]);
  }
  outcome.of(ingest::Loss::Erased) += done.erased.size();
  outcome.of(ingest::Loss::Evicted) += done.evicted.size();
  outcome.of(ingest::Loss::Expired) += done.expired.size();
  return ok();
}

bool is_window(const wire::Reading& reading) {
  return reading.window != nullptr;
}

}  // namespace

Result<erase::Copied> copied_parameter(const HttpContext& context, const Call& call) {
  if (!call.has("as_of")) return erase::Copied{};
  EC_ASSIGN_OR_RETURN(const std::int64_t as_of_ns,
                      wire::parse_time_ns(call.parameter("as_of"), context.parts.clock.wall_ns()));
  context.parts.retention.marks().note_copied(context.parts.clock.wall_ns());
  return erase::Copied{true, as_of_ns};
}

Status HttpContext::store(Call& call, const wire::ReadingBatch& batch, ingest::Outcome& outcome) {
  outcome.takes_parts = true;
  EC_ASSIGN_OR_RETURN(const erase::Copied copied, copied_parameter(*this, call));
  if (std::any_of(batch.readings.begin(), batch.readings.end(), is_window)) {
    // Readings first: what they overlap is refused, and not they.
    wire::ReadingBatch readings, windows;
    for (const wire::Reading& each : batch.readings)
      (is_window(each) ? windows : readings).readings.push_back(each);
    if (!readings.readings.empty()) EC_TRY(store(call, readings, outcome));
    return store_windows(parts, call.principal(), std::move(windows), copied, outcome);
  }
  EC_ASSIGN_OR_RETURN(const catalog::Origins origins, origins_of(call));
  const auto take = [&](const wire::ReadingBatch& some) -> Status {
    EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized,
                        auth::authorize_write(call.principal(), some));
    return parts.ingest.ingest(authorized, &outcome, {}, {}, &call.pacing, copied, origins);
  };
  Status status = take(batch);
  if (status.code() == StatusCode::NotAllowed) {
    wire::ReadingBatch allowed;
    allowed.readings = batch.readings;
    leave_out_forbidden(call.principal(), allowed.readings, parts.ingest, outcome);
    status = take(allowed);
  }
  say_when_to_come_again(call);
  rates.sample(parts.clock.boot_ns(), parts.ingest.counters());
  return status;
}

Status HttpContext::store(Call& call, wire::ReadingBatch& slice, ingest::IngestRequest& request,
                          ingest::Outcome& outcome) {
  outcome.takes_parts = true;
  EC_ASSIGN_OR_RETURN(request.copied, copied_parameter(*this, call));
  if (request.copied.is_copy) request.origins = {};
  const auto take = [&]() -> Status {
    EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized,
                        auth::authorize_write(call.principal(), slice));
    return parts.ingest.add(request, authorized, outcome);
  };
  Status status = take();
  if (status.code() == StatusCode::NotAllowed) {
    leave_out_forbidden(call.principal(), slice.readings, parts.ingest, outcome);
    status = take();
  }
  say_when_to_come_again(call);
  rates.sample(parts.clock.boot_ns(), parts.ingest.counters());
  return status;
}

std::string namespace_parameter(const Call& call) {
  if (!call.has("ns")) return std::string(wire::kDefaultNamespace);
  std::string name = call.parameter("ns");
  return name == "*" ? std::string() : name;
}

Result<wire::Selection> selection_parameters(const Call& call) {
  wire::SelectionTexts texts;
  for (const auto& [name, all] :
       {std::pair("select", &texts.selectors), std::pair("measurement", &texts.measurements),
        std::pair("tag", &texts.tags), std::pair("field", &texts.fields)}) {
    const auto [begin, end] = call.request.parameters.equal_range(name);
    for (auto at = begin; at != end; ++at) all->push_back(at->second);
  }
  return wire::parse_selection(texts);
}

bool has_selection(const Call& call) {
  return call.has("select") || call.has("measurement") || call.has("tag") || call.has("field");
}

wire::Json left_out_json(const Call& call, const std::vector<wire::LeftSelector>& left) {
  query::LeftOut all;
  for (const wire::LeftSelector& each : left)
    all.add(query::left_out_of(namespace_parameter(call), each));
  return query::left_out_json(all);
}

namespace {

const query::LeftOut& left_out_of(const PieceSource& source) {
  static const query::LeftOut kNothing;
  const query::LeftOut* const left_out = source.left_out();
  return left_out == nullptr ? kNothing : *left_out;
}

std::string report_text(const PieceSource& source) {
  const auto text = [&](std::size_t most) {
    return query::left_out_json(left_out_of(source), most)
        .dump(-1, ' ', true, wire::Json::error_handler_t::replace);
  };
  std::string report = text(query::LeftOut::kNamedMax);
  if (report.size() > wire::routes::kReportMaxBytes) report = text(8);
  if (report.size() > wire::routes::kReportMaxBytes) report = text(0);
  std::string length = std::to_string(report.size());
  length.insert(0, wire::routes::kReportLengthDigits - length.size(), '0');
  return report + length;
}

}  // namespace

void tell_left_out(Call& call, const wire::Json& left_out) {
  if (left_out.empty()) return;
  constexpr std::size_t kTextMaxBytes = 6u << 10;
  std::string text = left_out.dump(-1, ' ', true, wire::Json::error_handler_t::replace);
  if (text.size() > kTextMaxBytes) {
    // The last one may stand for several.
    const std::uint64_t last = left_out.back().value("more", std::uint64_t{1});
    const bool is_damaged = std::any_of(left_out.begin(), left_out.end(), [](const auto& each) {
      return each.value("code", "corruption") == "corruption" && !each.contains("more");
    });
    const auto code =
        wire::error_code_name(is_damaged ? StatusCode::Corruption : StatusCode::NotFound);
    text = "[{\"more\":" + std::to_string(left_out.size() - 1 + last) + ",\"code\":\"" +
           std::string(code) + "\"}]";
  }
  call.response.set_header(wire::routes::kLeftOutHeader, text);
}

void answer_in_pieces(Call& call, const char* content_type, std::shared_ptr<PieceSource> source) {
  struct Progress {
    std::shared_ptr<PieceSource> source;
    std::string piece;
    bool more = true;
    query::GivenReadings given;  // of the piece
    bool is_told = false;        // of what is left out, by a header
  };
  auto progress = std::make_shared<Progress>();
  progress->source = std::move(source);
  const auto first = progress->source->fill(progress->piece);
  if (!first.ok()) return call.answer_error(first.status());
  progress->given = progress->source->take_given();
  if (!left_out_of(*progress->source).empty()) {
    constexpr std::size_t kNamed = 8;  // the head of an answer has its limits
    tell_left_out(call, query::left_out_json(left_out_of(*progress->source), kNamed));
    progress->is_told = true;
  }
  if (!*first) {
    call.watch(std::move(progress->given));
    return call.answer_text(200, content_type, std::move(progress->piece));
  }
  const bool reports = call.exchange.head.http_1_1 && call.exchange.head.reports_inline;
  if (reports) call.response.set_header(wire::routes::kReportHeader, wire::routes::kReportInline);

  const auto send = [progress, reports, &stream = call.exchange.stream,
                     patience = call.exchange.patience](PieceWriter& body) {
    if (!progress->piece.empty()) {
      stream.begin_part(watch_of(std::move(progress->given)));
      if (!body.write(progress->piece)) return Sent::Broken;
      stream.end_part();
      // What is ready is seen at once, however long the next piece takes.
      if (!stream.flush()) return Sent::Broken;
      progress->piece.clear();
    }
    if (!progress->more) {
      const bool is_whole = left_out_of(*progress->source).empty();
      if (reports) {
        if (!body.write(report_text(*progress->source))) return Sent::Broken;
      } else if (!is_whole && !progress->is_told && !progress->source->names_left_out()) {
        return Sent::Broken;  // who cannot be told must not take this for all
      }
      return Sent::All;
    }
    if (patience != nullptr && !patience->go_on().ok()) return Sent::Broken;
    progress->source->let_go();
    const auto more = progress->source->fill(progress->piece);
    if (!more.ok())
      return Sent::Broken;  // without a last chunk the client knows that this is not all
    progress->more = *more;
    progress->given = progress->source->take_given();
    return Sent::More;
  };
  call.exchange.stream.on_slow([progress] { progress->source->let_go(); });
  call.response.set_pieces(content_type, send);
}

void answer_in_pieces(Call& call, const char* content_type,
                      std::function<Result<bool>(std::string& piece)> fill) {
  struct Function final : PieceSource {
    std::function<Result<bool>(std::string& piece)> function;
    Result<bool> fill(std::string& piece) override { return function(piece); }
  };
  auto source = std::make_shared<Function>();
  source->function = std::move(fill);
  answer_in_pieces(call, content_type, std::move(source));
}

bool HttpContext::is_over_batch(Call& call, std::uint64_t stored, std::uint64_t more) const {
  const std::uint64_t most = points_per_batch();
  if (stored + more <= most) return false;
  std::string message =
      "more readings in one request than limits.points-per-batch = " + std::to_string(most) +
      ", send them in several";
  if (stored > 0) message += "; the first " + std::to_string(stored) + " are stored";
  call.answer_json(413, error_body(call.request.path, invalid_argument(message)));
  return true;
}

// What is kept between requests may hold what was erased; an erasure may outlast the server.
struct Keeping {
  void begin(HttpContext& served) {
    const MutexLock lock(mutex);
    context = &served;
  }
  void forget() {
    const MutexLock lock(mutex);
    if (context == nullptr) return;
    const HttpServerParts& parts = context->parts;
    parts.ingest.feed().clear();
    context->line_spares.forget();
    if (parts.audit != nullptr) parts.audit->names().forget();
    // Freed memory is wiped; what is between what is in use goes back to the system.
    if (parts.give_memory_back) parts.give_memory_back();
  }
  void end() {
    const MutexLock lock(mutex);
    context = nullptr;
  }

  Mutex mutex;
  HttpContext* context EC_GUARDED_BY(mutex) = nullptr;
};

struct HttpServer::State {
  explicit State(HttpServerParts parts) : context(std::move(parts)) {}

  HttpContext context;
  Router router;
  std::unique_ptr<Front> front;
  std::uint16_t tcp_port = 0;
  std::uint64_t socket_inode = 0;
  std::shared_ptr<Keeping> keeping = std::make_shared<Keeping>();
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerParts parts) {
  const config::HttpSettings& settings = parts.settings.http;
  auto state = std::make_unique<State>(std::move(parts));
  State& s = *state;
  EC_ASSIGN_OR_RETURN(Sites sites, sites_of(settings));
  s.router.set_sites(std::move(sites));
  s.context.parts.query.set_limits(query_limits_of(s.context.parts.settings));
  EC_ASSIGN_OR_RETURN(wire::LineRules rules,
                      wire::LineRules::compile(s.context.parts.settings.influx.rules));
  s.context.line_spares.set_rules(std::make_shared<const wire::LineRules>(std::move(rules)));
  std::vector<FrontListener> listeners;
  if (!settings.socket.empty()) {
    EC_ASSIGN_OR_RETURN(net::Socket socket, net::listen_on_unix_socket(settings.socket));
    s.socket_inode = net::inode_of(settings.socket);
    listeners.push_back({std::move(socket), net::ListenerKind::UnixSocket});
  }
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(state)));
  if (!settings.listen.empty()) {
    EC_ASSIGN_OR_RETURN(const config::ListenAddress address,
                        config::parse_listen_address(settings.listen));
    EC_ASSIGN_OR_RETURN(std::vector<net::Socket> sockets,
                        net::listen_on_all(address.host, address.port));
    s.tcp_port = net::tcp_port_of(sockets.front());
    for (net::Socket& socket : sockets) {
      listeners.push_back(
          {std::move(socket), net::ListenerKind::Tcp, s.context.parts.tcp_channels});
    }
  }
  HttpContext& context = s.context;
  context.started_boot_ns = context.parts.clock.boot_ns();
  context.rates.sample(context.started_boot_ns, context.parts.ingest.counters());
  s.router.on_authenticate([&context](const Exchange& exchange) -> Result<auth::Principal> {
    EC_ASSIGN_OR_RETURN(const std::string token, presented_token(exchange.head.authorization));
    return context.parts.authenticator.authenticate(exchange.principal, token);
  });
  count_answers(s.router, context.parts.metrics);
  // Requests may come before start() returns; until then these two numbers are 0.
  auto front = std::make_shared<std::atomic<Front*>>(nullptr);
  context.connections = [front] {
    const Front* running = front->load();
    return running == nullptr ? 0 : running->connections();
  };
  context.in_flight_bytes = [front] {
    const Front* running = front->load();
    return running == nullptr ? 0 : running->in_flight_bytes();
  };
  begin_audit_routes(context);
  register_erase_metrics(context);
  register_token_metrics(context);
  record_requests(s.router, context);
  s.keeping->begin(context);
  context.parts.erase.on_gone([keeping = s.keeping] { keeping->forget(); });
  register_status_metrics(context);
  for (const Route& route : route_table()) {
    s.router.add(route, [&context, &route](Call& call) { route.handler(context, call); });
  }
  FrontOptions options = front_options(settings);
  options.on_large_body = context.parts.give_memory_back;
  options.body_bytes_per_second_min = context.parts.settings.limits.sender_rate_bytes;
  options.date = [&context] { return http_date(context.parts.clock); };
  s.router.on_date(options.date);
  EC_ASSIGN_OR_RETURN(s.front, Front::start(options, std::move(listeners), s.router));
  front->store(s.front.get());
  return server;
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() {
  stop();
  state_->keeping->end();
  state_->context.parts.metrics.clear_callbacks();
}

void HttpServer::stop() {
  if (state_->front) state_->front->stop();
  net::remove_unix_socket(state_->context.parts.settings.http.socket,
                          std::exchange(state_->socket_inode, 0));
}

Status HttpServer::reload(const config::Settings& settings) {
  EC_ASSIGN_OR_RETURN(Sites sites, sites_of(settings.http));
  EC_ASSIGN_OR_RETURN(wire::LineRules rules, wire::LineRules::compile(settings.influx.rules));
  state_->router.set_sites(std::move(sites));
  state_->context.parts.query.set_limits(query_limits_of(settings));
  state_->context.line_spares.set_rules(std::make_shared<const wire::LineRules>(std::move(rules)));
  return ok();
}

std::uint16_t HttpServer::tcp_port() const {
  return state_->tcp_port;
}

}  // namespace edgecase::http
