// Paths to handlers: the table of routes, and the router that goes by it. It finds the route of a
// request that the front has read, has checked who asks and from where, runs its handler and sends
// what that answers.
//
// Use: add() every route, then answer() requests on any number of threads.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "auth/authorize.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "http/lanes.h"
#include "http/request_head.h"
#include "http/response.h"
#include "http/site_check.h"
#include "ingest/device_rates.h"
#include "ingest/origins.h"
#include "net/budgets.h"
#include "query/query_service.h"

namespace edgecase::http {

// The table of routes: all that the HTTP face offers, each once. The router is filled from it, a
// request finds its lane in it, the audit log what to call it, and /api/v1/openapi.json is made of
// it (openapi.cc). Constant; any thread.
//
// To add a route: its handler in http_routes.h, its row in route_table.cc, and an example in
// tests/flow/openapi_flow_test.py if it cannot be called with the table's own.

struct HttpContext;
struct Call;

// Whether a route is there for whoever can connect.
enum class Access : unsigned char { Authenticated, Open };

// What the audit log says of a request besides that it was denied.
enum class AuditKind : unsigned char {
  Ingest,  // nothing here: the pipeline does
  Read,
  Change,  // two records: that it begins, and what became of it
  Free,    // nothing: it tells of nobody
};

struct Audited {
  std::string_view operation;  // its name in the log
  AuditKind kind = AuditKind::Free;
};

struct RouteBody {
  std::string_view types;    // media types, the example's first; "": a body means nothing
  std::string_view example;  // of one
};

struct Route {
  std::string_view method = "GET";
  // As it is, or to its first {NAME}: what begins so. A GET route answers HEAD, too.
  std::string_view path;
  Effect effect = Effect::Reads;
  Access access = Access::Authenticated;
  Lane lane = effect == Effect::Changes ? Lane::Changes : Lane::Reads;
  Audited audit = {};
  std::string_view scope = {};  // that a token needs; "": any token will do
  // Names, with ! those that are needed; of several that mean something else, with @ and which. A *
  // at the end: others are ignored. Else an unknown one is refused: misspelt, it would silently ask
  // for something else. What each means: openapi.cc.
  std::string_view parameters = {};
  RouteBody body = {};
  std::string_view gives = {};     // answers besides errors: "200 TYPE TYPE|202 TYPE"
  std::string_view refusals = {};  // statuses besides those that any route may answer with
  std::string_view says = {};      // what it does, in a sentence
  void (*handler)(HttpContext&, Call&) = nullptr;
};

std::span<const Route> route_table();

// Null: there is none. HEAD is GET.
const Route* find_route(std::string_view method, std::string_view path);

// The part of a path before its first {NAME}.
std::string_view fixed_part(std::string_view path);

// InvalidArgument names one that the route does not know.
Status check_parameters(const Route& route, const Parameters& parameters);

// Takes the next word off a list with single spaces, or whatever `separator` is; "" at its end.
std::string_view next_word(std::string_view& list, char separator = ' ');

// What a handler has to say for the audit log beside what the parameters do. No values.
struct AuditNote {
  std::string detail;       // no names
  std::uint64_t count = 0;  // readings
  std::uint64_t begun = 0;  // the record that an erasure began; 0: there is none
  // The devices that the answer is about, where the handler knows better than the selector.
  std::optional<query::Reach> reach = {};
  // The namespace, where the parameters do not tell it; "*": several. Empty: they do.
  std::string namespace_name = {};
};

// Something that must be durable before an answer leaves. One that was begun later and is settled
// settles those before it, too.
struct Settlement {
  std::function<bool()> is_settled;  // does not wait
  std::function<Status()> settle;    // may take a sync
  // Told why, where the answer is a refusal instead.
  std::function<void(const Status&)> refused = {};

  explicit operator bool() const { return settle != nullptr; }
};

// One request that is complete, and the way its answer takes. Lives while it is answered.
struct Exchange {
  const RequestHead& head;
  const std::string& body;  // decoded
  const auth::Principal& connection;
  AnswerStream& stream;
  net::BudgetShare long_answer;    // of the workers that may wait for readers
  bool closes = false;             // the connection, behind the answer
  auth::Principal principal = {};  // who asks, once the router has found out
  AuditNote audit = {};
  // In: an answer of this size may wait for a settlement, without its worker.
  std::size_t held_max_bytes = 0;
  // Out: what must be settled before anything of the answer leaves.
  Settlement settlement = {};
  // In: where long answers leave it no room, the request may be asked once more, later.
  bool may_wait = false;
  // Out: it is to be. Nothing was sent, or recorded.
  bool waits = false;
  // In: asked now and then by what takes long. Null: nobody is.
  Patience* patience = nullptr;
  // query::Reach::second_turn.
  std::function<std::unique_ptr<Patience>()> second_turn = nullptr;
};

// What a handler is given.
struct Call {
  Exchange& exchange;
  const RequestHead& request;
  Response response = {};
  const Route* route = nullptr;                        // of the table; null: of none
  ingest::Pacing pacing = {};                          // of all readings that the request brings
  std::optional<ingest::Origins::Holder> holder = {};  // who forwards it, once that was asked for
  // Out: it has changed nothing, though others of its route may. Then it may be asked once more.
  bool only_read = false;

  std::string_view body() const { return exchange.body; }
  const auth::Principal& principal() const { return exchange.principal; }
  bool has(std::string_view parameter) const { return request.parameters.contains(parameter); }
  // The first of that name; "": there is none.
  std::string parameter(std::string_view name) const;

  // The answer holds these readings: it is cut where one is revoked before it was sent.
  void watch(query::GivenReadings given);
  void answer_json(int http_status, std::string json);
  void answer_text(int http_status, const char* content_type, std::string text);
  // The HTTP status follows from the code.
  void answer_error(const Status& status);
};

RevokedTest watch_of(query::GivenReadings given);

// Called around a route that was found: `before` its handler, once it is known who asks (an error
// is the answer then), and `after` it, when the answer is there and nothing of it was sent; also
// when the handler did not run.
struct RunHooks {
  std::function<Status(const Call&)> before;
  std::function<void(Call&)> after;
};

class Router {
 public:
  using Handler = std::function<void(Call&)>;

  // `route` is borrowed. Its parameters are checked before the handler runs.
  void add(const Route& route, Handler handler);
  // One of no table: `path` whole, or with a trailing `*` everything that begins so. A GET route
  // answers HEAD too.
  void add(std::string_view method, std::string path, Effect effect, Handler handler,
           Access access = Access::Authenticated);
  // Asked who it is that asks, before every route that is not open, with what is known of it
  // without a token (asker()) as the exchange's principal; without it, that one. NotAllowed is
  // answered with 401, Busy with 429.
  void on_authenticate(std::function<Result<auth::Principal>(const Exchange&)> authenticate);
  void on_run(RunHooks hooks);
  // Told each answer's status.
  void on_answer(std::function<void(int http_status)> observer);

  // From then on, for requests that come.
  void set_sites(Sites sites);
  std::shared_ptr<const Sites> sites() const;
  // Told what time to say in an answer; "": none.
  void on_date(std::function<std::string()> date);

  // False: the answer is incomplete and the connection is to be cut.
  bool answer(Exchange& exchange);
  // Answers that are sent in pieces end, incomplete.
  void cut_streams() { is_cut_ = true; }

 private:
  struct Entry {
    const Route* route = nullptr;
    Effect effect = Effect::Reads;
    Access access = Access::Authenticated;
    Handler handler;
  };
  using Methods = std::map<std::string, Entry, std::less<>>;

  void dispatch(Call& call);
  const Methods* find(const std::string& path) const;
  void insert(std::string_view method, std::string path, Entry entry);
  void run(const Entry& entry, Call& call);
  void handle(const Entry& entry, Call& call);
  bool admit(const Entry& entry, Call& call);
  void complete_headers(Response& response) const;

  std::atomic<bool> is_cut_{false};
  mutable Mutex sites_mutex_;
  std::shared_ptr<const Sites> sites_ EC_GUARDED_BY(sites_mutex_) = std::make_shared<const Sites>();
  std::function<std::string()> date_;
  std::map<std::string, Methods, std::less<>> exact_;
  std::map<std::string, Methods, std::less<>> prefixes_;
  std::function<void(int)> observer_;
  std::function<Result<auth::Principal>(const Exchange&)> authenticate_;
  RunHooks hooks_;
};

}  // namespace edgecase::http
