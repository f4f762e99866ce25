// Paths to handlers: the table of routes, and the router that goes by it. It finds the route of a
// request that the front has read, has checked who asks and from where, runs its handler and sends
// what that answers (response.cc).
//
// Use: add() every route, then answer() requests on any number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/authorize.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "http/lanes.h"
#include "http/request_head.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/origins.h"
#include "net/budgets.h"
#include "net/channel.h"
#include "query/query_service.h"
#include "wire/authority.h"
#include "wire/encoding.h"

namespace edgecase::http {

// The answer of a handler on its way to the client: status line, headers, a body that is there as a
// whole or comes in pieces (Response); its packing; the stream that it is written to
// (AnswerStream). Used by the router and by refusals; one thread an answer.

// Answers in gzip or zstd, for clients that take it (Accept-Encoding).
//
// Text and JSON are packed: whole bodies from kPackedMinBytes on, and what is sent in pieces. Each
// piece leaves whole with its part of the stream: nothing of it waits in the packer, so that what
// is erased meanwhile can still be dropped (AnswerStream), and a reader sees it at once. A cut
// answer lacks the end of its coding, as it has no last chunk.
struct Response;

// Below this the head grows by as much as the body shrinks.
inline constexpr std::size_t kPackedMinBytes = 1'024;

// Packs the body, or has the pieces packed when they are sent, where the client takes it and it
// pays; says in the head what depends on Accept-Encoding.
void pack_response(const RequestHead& request, Response& response);

// The stream that an answer is written to: a connection's channel.
//
// Little that the channel does not take at once is kept in `output` for the poller to send, so that
// a small answer never waits for its reader. Beyond kOutputKeptBytes write() waits, but never
// longer than `grace_ns` for the channel to take more, and in all `grace_ns` and a second for every
// kReadBytesPerSecondMin that were taken.
//
// What waits here of readings that are erased meanwhile is dropped, and the answer with it
// (begin_part()): the client sees a connection that was reset.
// One worker thread.
inline constexpr std::size_t kOutputKeptBytes = 64u << 10;
inline constexpr std::uint64_t kReadBytesPerSecondMin = 16u << 10;

// As net::send_some(); gives up the memory that one large answer took.
net::Outcome send_output(net::Channel& channel, std::string& output);

// Whether a part of an answer that waits to be sent must not be sent any more. Cheap where nothing
// was revoked.
using RevokedTest = std::function<bool()>;
// Parts of what waits in `output`, the oldest first.
struct WatchedPart {
  std::uint64_t end_bytes = UINT64_MAX;  // of what was written of the answer
  RevokedTest is_revoked;
};
bool is_any_revoked(const std::deque<WatchedPart>& parts);

class AnswerStream {
 public:
  // `output` is borrowed and may hold what an earlier answer left.
  AnswerStream(net::Channel& channel, std::string& output, std::int64_t grace_ns)
      : channel_(channel), output_(output), grace_ns_(grace_ns) {}

  // False: failed.
  bool write(std::string_view bytes);
  // Sends what is buffered, waiting only while more than kOutputKeptBytes are left. False: failed.
  bool flush();
  bool failed() const { return failed_; }
  // Both may be null: whose turn ends while it waits, and who is told what was sent.
  void waits_in(ReadTurn* turn, LeavingClient* client) {
    turn_ = turn;
    client_ = client;
  }
  // What is written from here to end_part(), or to the end, is dropped once `is_revoked` tells so.
  void begin_part(RevokedTest is_revoked) { parts_.push_back({UINT64_MAX, std::move(is_revoked)}); }
  void end_part() {
    if (!parts_.empty()) parts_.back().end_bytes = written_bytes_;
  }
  // The parts that are left in `output`; the caller asks from now on.
  std::deque<WatchedPart> take_parts();
  // Told now and then while it waits for its reader.
  void on_slow(std::function<void()> told) { told_ = std::move(told); }

 private:
  bool wait_for_reader();
  bool drop_revoked();
  int await(std::int64_t most_ns);

  net::Channel& channel_;
  std::string& output_;
  const std::int64_t grace_ns_;
  std::uint64_t written_bytes_ = 0;
  std::int64_t waited_ns_ = 0;
  bool failed_ = false;
  std::function<void()> told_;
  ReadTurn* turn_ = nullptr;
  LeavingClient* client_ = nullptr;
  std::deque<WatchedPart> parts_;
};

// The body of an answer that is not built up as a whole, on its way into the stream.
class PieceWriter {
 public:
  // `packer` may be null: pieces go as they are.
  PieceWriter(AnswerStream& stream, bool is_chunked, wire::Packer* packer = nullptr)
      : stream_(stream), is_chunked_(is_chunked), packer_(packer) {}

  // False: the connection is to be cut.
  bool write(std::string_view piece);
  // Behind the last piece: the end of what was packed, and the last chunk. False: as above.
  bool finish();
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  bool send(std::string_view bytes);

  AnswerStream& stream_;
  const bool is_chunked_;
  wire::Packer* const packer_;
  std::uint64_t written_bytes_ = 0;
};

enum class Sent : unsigned char { More, All, Broken };
// Writes a piece of a body; asked again as long as there is more.
using SendPiece = std::function<Sent(PieceWriter&)>;

struct Response {
  int status = 200;
  // As they are sent. Those of the body's framing and of the connection are added when it is.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  SendPiece pieces = {};                      // in place of `body`
  std::shared_ptr<wire::Packer> packer = {};  // of pieces; null: they go as they are
  // The length of all pieces. None: HTTP/1.1 gets chunks, HTTP/1.0 what comes until the end.
  std::optional<std::uint64_t> pieces_bytes = std::nullopt;

  bool has_header(std::string_view name) const;
  // In place of one of this name. add_header() keeps that one.
  void set_header(std::string_view name, std::string value);
  void add_header(std::string_view name, std::string value);
  void set_pieces(std::string_view content_type, SendPiece send,
                  std::optional<std::uint64_t> bytes = std::nullopt);
};

// The status line and all headers, to the empty line behind them.
std::string head_text(const Response& response, bool is_chunked, bool closes);

// Writes the answer to a request. False: it is incomplete, and the connection is to be cut, as when
// `is_cut` was set meanwhile.
bool send_response(const RequestHead& request, const Response& response, bool closes,
                   AnswerStream& stream, const std::atomic<bool>& is_cut);

// Whose request it is: of this machine, or handed on; of our own page, or another site's; and which
// token it shows.
//
// Browsers run other people's pages and can reach this machine's loopback address. Two attacks are
// refused here; programs that are no browsers send none of the headers looked at.
//
// - Another site's page sends a request that changes something: told by Origin and Sec-Fetch-Site.
// - Another site's name is made to resolve to this machine (DNS rebinding), so that its page counts
//   as ours: told by a Host that is no address and no name of this machine.
//
// A proxy makes others' requests come from its own address, most often this machine's. What it
// hands on says so (Forwarded, X-Forwarded-*, Via), and is nobody's on this machine.

enum class Effect : unsigned char { Reads, Changes };

// Settings http.names and http.proxies, with this machine's own names.
class Sites {
 public:
  Sites() = default;
  // `names`: without ports. `proxies`: addresses, "192.0.2.7", "::1", or networks, "10.0.0.0/8".
  // InvalidArgument names the one that is neither.
  static Result<Sites> of(std::vector<std::string> names, const std::vector<std::string>& proxies);

  // Localhost and addresses are everybody's names.
  bool is_name(std::string_view host) const;
  bool is_proxy(const std::string& address) const;

 private:
  std::vector<std::string> names_;
  std::vector<wire::Network> proxies_;
};

// What a machine of this name is called: the name itself and its first part, alone, with .local and
// .lan, with the domains of `resolver` (the text of /etc/resolv.conf), and what the lines of
// `hosts` (of /etc/hosts) that hold it call it besides.
std::vector<std::string> own_names(std::string_view host_name, std::string_view hosts,
                                   std::string_view resolver);

// NotAllowed says which header gave it away.
Status check_site(const RequestHead& head, Effect effect, const Sites& sites);

// The asker, before it is known which token was shown: whoever is at the other end, or, of what a
// proxy handed on, somebody elsewhere: by the address that the proxy gives if it is one of `sites`,
// else by the proxy's own. A proxy on this machine that adds no header is known by HTTP/1.0 with a
// Host, and by a Referer of another host; one that hides all of that is not known.
auth::Principal asker(const RequestHead& head, const auth::Principal& connection,
                      const Sites& sites);

// The token in `Bearer T`, `Token T` (clients of Influx v2), or in `Basic` and `Token USER:T`,
// where it is the password and the user means nothing (clients of Influx v1, browsers). Empty for
// an empty header, for a scheme with nothing behind it (Telegraf without a token), and for a
// password that is empty or none of ours: some clients of Influx v1 always send `root:root`, which
// shows as little as nothing does. NotAllowed: another scheme, or malformed.
Result<std::string> presented_token(std::string_view authorization);

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
