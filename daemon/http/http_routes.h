// The handlers of the routes of HttpServer (route_table.cc), and what they share. Inside
// daemon/http only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "http/http_server.h"
#include "http/lanes.h"
#include "http/router.h"
#include "ingest/ingest_pipeline.h"
#include "observe/metrics.h"
#include "query/pinned_moments.h"
#include "wire/json_text.h"
#include "wire/line_protocol.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::http {

// The catalog, as names of lines ask it.
class CatalogSeries final : public wire::KnownSeries {
 public:
  explicit CatalogSeries(const catalog::Catalog& catalog) : catalog_(catalog) {}
  bool has_device(std::string_view namespace_name, std::string_view device) const override;
  bool has_series(std::string_view namespace_name, std::string_view device, std::string_view sensor,
                  const wire::SeriesIdentity& identity) const override;
  bool has_series_of(std::string_view namespace_name, std::string_view device,
                     std::string_view prefix) const override;

 private:
  const catalog::Catalog& catalog_;
};

// Spares of one request at a time; between two it holds nothing of either but names.
struct LineSpare {
  std::string namespace_name;
  std::uint64_t generation = 0;  // of the catalog when it was made
  std::shared_ptr<const wire::LineRules> rules;
  std::uint64_t forgets = 0;  // calls of forget() before it was lent
  wire::ReadingBatch batch;
  wire::LineNames names;
  ingest::IngestBuffers buffers;

  std::size_t names_bytes() const { return batch.names.memory_bytes() + names.memory_bytes(); }
  std::size_t memory_bytes() const {
    return sizeof(LineSpare) + batch.memory_bytes() + names.memory_bytes() + buffers.memory_bytes();
  }
};

// Spares for decoding and storing line protocol, kept from one request to the next: names that were
// built, series that were found, and memory that need not be asked for again. Thread-safe.
class LineSpares {
 public:
  // How many spares are kept, and what they take. Each gets the same share, half of it for names: a
  // single sender may have many. It is set aside in the engine.
  static constexpr std::size_t kSparesMax = 4;
  static constexpr std::size_t kSparesMaxBytes = 12u << 20;
  static_assert(kSparesMaxBytes / 2 >= wire::kRememberedBytesMax);
  // What one takes beside names.
  static constexpr std::size_t kBuffersMaxBytes = 3u << 20;

  LineSpares(Engine& engine, const catalog::Catalog& catalog)
      : catalog_(catalog), series_(catalog), set_aside_(engine) {
    spares_.reserve(kSparesMax);
  }

  class Loan {
   public:
    Loan(LineSpares& spares, std::unique_ptr<LineSpare> spare)
        : spares_(spares), spare_(std::move(spare)) {}
    ~Loan() { spares_.give_back(std::move(spare_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    LineSpare* operator->() { return spare_.get(); }

   private:
    LineSpares& spares_;
    std::unique_ptr<LineSpare> spare_;
  };
  // One that served the namespace, where there is one. Those that may know names that were erased
  // since are gone.
  Loan take(std::string_view namespace_name);
  // Lines that come from now on obey these rules. Forgets the spares that nobody has.
  void set_rules(std::shared_ptr<const wire::LineRules> rules);
  std::shared_ptr<const wire::LineRules> rules() const;
  // Forgets all spares: one that is lent goes when it comes back.
  void forget();

 private:
  friend class Loan;
  void give_back(std::unique_ptr<LineSpare> spare);
  std::size_t share_bytes() const EC_REQUIRES(mutex_);

  const catalog::Catalog& catalog_;
  const CatalogSeries series_;
  mutable Mutex mutex_;
  std::shared_ptr<const wire::LineRules> rules_ EC_GUARDED_BY(mutex_) =
      std::make_shared<const wire::LineRules>();
  catalog::SetAside set_aside_ EC_GUARDED_BY(mutex_);
  std::uint64_t forgets_ EC_GUARDED_BY(mutex_) = 0;
  std::size_t lent_ EC_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<LineSpare>> spares_
      EC_GUARDED_BY(mutex_);  // the one used last comes last
};

// How many readings a second are stored, from counts taken now and then. Thread-safe.
class RateMeter {
 public:
  static constexpr std::size_t kSamplesMax = 64;
  static constexpr std::int64_t kSpacingNs = 1'000'000'000;

  struct Rate {
    double readings_per_second = 0;
    double batches_per_second = 0;
    double window_seconds = 0;
  };
  // Remembers the counts, at most once a second.
  void sample(std::int64_t now_ns, const ingest::IngestPipeline::Counters& counters);
  // Since the oldest remembered count: about a minute on a busy server.
  Rate rate(std::int64_t now_ns, const ingest::IngestPipeline::Counters& counters) const;

 private:
  struct Sample {
    std::int64_t at_ns = 0;
    std::uint64_t readings = 0;
    std::uint64_t batches = 0;
  };
  mutable Mutex mutex_;
  std::vector<Sample> samples_ EC_GUARDED_BY(mutex_);  // oldest first
};

class DeviceNames;

struct HttpContext {
  explicit HttpContext(HttpServerParts given)
      : parts(std::move(given)),
        moments(parts.engine, parts.clock),
        line_spares(parts.engine, parts.catalog) {}

  HttpServerParts parts;
  query::PinnedMoments moments;
  LineSpares line_spares;
  RunningQueries running_queries;
  std::int64_t started_boot_ns = 0;
  RateMeter rates;
  std::shared_ptr<DeviceNames> device_names;  // that pseudonyms stand for: audit_routes.cc
  // Filled in when the front runs: connections open, body bytes in flight.
  std::function<std::uint64_t()> connections;
  std::function<std::uint64_t()> in_flight_bytes;

  // Durable on Ok, but for what `outcome` counts. An error is of the whole batch, and mends.
  Status store(Call& call, const wire::ReadingBatch& batch, ingest::Outcome& outcome);
  // The same of a slice, durable once IngestPipeline::finish() is Ok. What may not be written
  // leaves it.
  Status store(Call& call, wire::ReadingBatch& slice, ingest::IngestRequest& request,
               ingest::Outcome& outcome);
  // Whose readings a request brings.
  Result<catalog::Origins> origins_of(Call& call) const;
  // The selection by the names here of what somebody who forwards asks for by its own; so are the
  // scopes of the call's token from then on. NotFound: nothing of these devices came from there.
  Result<wire::Selection> by_names_here(const Call& call, wire::Selection selection) const;
  // Whether a request brings too many readings, `stored` of them by now; then it is answered.
  bool is_over_batch(Call& call, std::uint64_t stored, std::uint64_t more) const;
  std::uint64_t points_per_batch() const { return parts.settings.limits.points_per_batch; }
  std::size_t line_errors() const { return parts.settings.limits.line_errors; }
};

// `ns`: missing means `default`, `*` and nothing mean all ("").
std::string namespace_parameter(const Call& call);
// Every `select`, `measurement`, `tag` and `field`: without any, everything.
Result<wire::Selection> selection_parameters(const Call& call);
// Whether any of them is there.
bool has_selection(const Call& call);
// The selectors as a document, or a head, tells them (query/left_out.h).
wire::Json left_out_json(const Call& call, const std::vector<wire::LeftSelector>& left);

// `as_of`: the readings of the request are a copy made then, of a backup or a file.
Result<erase::Copied> copied_parameter(const HttpContext& context, const Call& call);

// A whole number.
Result<std::optional<std::uint64_t>> limit_parameter(const Call& call,
                                                     const std::string& name = "limit");

// True where it says true, or nothing more than its name.
Result<bool> flag_parameter(const Call& call, const char* name);

// Every `label=NAME=VALUE`.
Result<std::vector<std::pair<std::string, std::string>>> label_parameters(
    const Call& call, const std::string& name = "label");

// Devices of which is said what `owner`, `purpose`, `object` and `label` name, as parameters that
// begin with `prefix`; an empty filter where none of them is there.
Result<catalog::DeviceFilter> filter_parameters(const Call& call, const std::string& prefix = "");

// With `as_of`: what held then, and does not hold again of a device that was erased since
// (InvalidArgument). Whoever asks has a Pass of the fences.
Status check_as_of(const HttpContext& context, const Call& call, const catalog::DeviceName& name);

// `moment`: what a backup reads, for administrators. Null where it is missing.
Result<std::shared_ptr<const Snapshot>> moment_parameter(HttpContext& context, const Call& call);

// As /api/v1/device answers it.
wire::Json device_json(const catalog::DeviceName& name, const catalog::DeviceMetadata& metadata);

// In the head of an answer, what it does not hold since it is damaged; [{"more":n}] where the names
// would take too much of it. Nothing where nothing is left out.
void tell_left_out(Call& call, const wire::Json& left_out);

class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // Appends more of an answer to `piece`; false when that was the last.
  virtual Result<bool> fill(std::string& piece) = 0;
  // The next piece may take long: somebody is slow to read this one.
  virtual void let_go() {}
  // What the pieces since the last call were made of.
  virtual query::GivenReadings take_given() { return {}; }
  // What the pieces so far do not hold, since it is damaged; null: nothing ever is.
  virtual const query::LeftOut* left_out() const { return nullptr; }
  // Whether the last piece names it, so that nobody takes the answer for a whole one.
  virtual bool names_left_out() const { return false; }
};
// Answers with the pieces, sent as they come. An error before anything was sent is answered as
// such; a later one cuts the connection.
void answer_in_pieces(Call& call, const char* content_type, std::shared_ptr<PieceSource> source);
void answer_in_pieces(Call& call, const char* content_type,
                      std::function<Result<bool>(std::string& piece)> fill);
inline constexpr std::size_t kPieceBytes = 32u << 10;
// A piece is sent after this time, however short it is.
inline constexpr std::int64_t kPieceNs = 5'000'000;

// Lines or objects of a request that are no readings.
struct BadInput {
  std::uint64_t count = 0;
  std::vector<wire::LineError> errors;  // of the first of them
};

// X-EdgeCase-Expired, -Replaced, -Erased, -Evicted: how many of each were acknowledged and are not
// there. None of which there is none.
void set_loss_headers(Call& call, const ingest::Outcome& outcome);
// `,"expired":3` and so on, for an object; empty where there are none.
std::string loss_members(const ingest::Outcome& outcome);

// Losses of all requests and messages, in the status: sums, and by device as far as it may be read.
wire::Json losses_json(const HttpContext& context, const auth::Principal& principal);
// The same for /metrics.
std::string loss_metrics(const HttpContext& context, const auth::Principal& principal);

// Where something of a request was not taken: {"error":…,"stored":n,"rejected":n,"errors":[…]} in
// the shape of the path. 403 where it is scopes alone that refused; else 400.
void answer_partly(Call& call, std::uint64_t stored, BadInput bad, const ingest::Outcome& outcome);

// Clients of Influx look whether it is there, and some which API it stands for.
inline constexpr char kInfluxVersion[] = "1.8.0";
void name_influx_version(Call& call);

// What Route::handler needs of a handler that answers with JSON, or not at all. What the document
// says is left out is told in the head, too.
inline constexpr char kLeftOutMember[] = "left_out";
using JsonHandler = Result<wire::Json> (*)(HttpContext&, const Call&);
template <JsonHandler handler>
void answer_with(HttpContext& context, Call& call) {
  const Result<wire::Json> answer = handler(context, call);
  if (!answer.ok()) return call.answer_error(answer.status());
  if (answer->is_object()) tell_left_out(call, answer->value(kLeftOutMember, wire::Json()));
  call.answer_json(200, wire::dump(*answer));
}

// Descriptions of devices: one object, an array of them, or NDJSON, each as GET /api/v1/device
// answers it:
//
//   {"namespace"?,"device","owner"?,"purposes"?,"objections"?,"location"?,"labels"?,
//    "consents"?:[{"since","by","purposes","objections"}]}
//
// What is given replaces what was said; empty takes it back; a label that is not given stays.
// Consents, as reports and backups tell them, are taken of devices that nothing is said of yet.
// Anything else in an object is refused. InvalidArgument names the description that is wrong, by
// its number.
Result<std::vector<catalog::DeviceChange>> decode_descriptions(
    std::string_view body, const std::string& default_namespace);

// Signs what is done, for whoever asked for it to show (signed_answers.cc). Where the
// drive takes no writes it stays unsigned.
void sign_certificate(HttpContext& context, const Call& call, erase::ErasureState state,
                      wire::Json& certificate);

// One of several changes of a request, recorded as its command is: that it begins, and what became
// of it. Without a log, or with the mode off, nothing is done.
class RecordedChange {
 public:
  RecordedChange(HttpContext& context, const Call& call, std::string_view operation,
                 const std::string& namespace_name, const query::Reach& reach);
  // Before anything is changed. `makes_room`: a full drive has room for it (begin_urgently()).
  Status begin(bool makes_room);
  // `status` is what became of it; answers it, or why that could not be recorded.
  Status end(const Status& status, const std::string& detail, std::uint64_t count);

 private:
  audit::AuditLog* const log_;
  audit::Record record_;
  std::uint64_t begun_ = 0;
};

// Erases, and waits `wait_ns` at most for the bytes to be gone. `left`: as EraseService::erase().
Result<erase::Certificate> erase_and_wait(HttpContext& context, const auth::Principal& principal,
                                          const erase::EraseRequest& request,
                                          erase::Everything everything, std::int64_t wait_ns,
                                          std::vector<wire::LeftSelector>* left = nullptr);
inline constexpr std::int64_t kErasureWaitNs = 10'000'000'000;  // where nobody says more

// What the face puts into the audit log: reads, changes, and whatever was denied. Readings that are
// stored are recorded where that happens, by the pipeline. Has the router call the recorder around
// every route. Without a log, or with the mode off, nothing is done. In strict mode a change
// begins, and an answer leaves, once its record is durable; where that can not be had, the answer
// is 503.
void record_requests(Router& router, HttpContext& context);

// Handlers of route_table.cc. influx_routes.cc:
void post_influx_write(HttpContext& context, Call& call);
void post_influx_write_v2(HttpContext& context, Call& call);
void influx_query(HttpContext& context, Call& call);
void get_influx_ping(HttpContext& context, Call& call);
void influx_query_v2(HttpContext& context, Call& call);
void get_influx_buckets(HttpContext& context, Call& call);
void get_influx_orgs(HttpContext& context, Call& call);
// influx_lines.cc:
void post_influx_test(HttpContext& context, Call& call);
void get_influx_rules(HttpContext& context, Call& call);
// readings_routes.cc:
void post_readings(HttpContext& context, Call& call);
void put_blob(HttpContext& context, Call& call);
void get_blob(HttpContext& context, Call& call);
// query_routes.cc:
void get_query(HttpContext& context, Call& call);
void get_last(HttpContext& context, Call& call);
void get_series(HttpContext& context, Call& call);
void get_devices(HttpContext& context, Call& call);
void get_namespaces(HttpContext& context, Call& call);
void post_namespace(HttpContext& context, Call& call);
void delete_namespace(HttpContext& context, Call& call);
// tail_route.cc:
void get_tail(HttpContext& context, Call& call);
// retention_routes.cc:
void get_retention(HttpContext& context, Call& call);
void post_retention(HttpContext& context, Call& call);
Result<wire::Json> delete_retention(HttpContext& context, const Call& call);
Result<wire::Json> get_retention_preview(HttpContext& context, const Call& call);
// erase_routes.cc:
void post_erase(HttpContext& context, Call& call);
Result<wire::Json> get_erase_preview(HttpContext& context, const Call& call);
void get_erasures(HttpContext& context, Call& call);
Result<wire::Json> get_where(HttpContext& context, const Call& call);
void register_erase_metrics(HttpContext& context);
Result<wire::Json> get_fences(HttpContext& context, const Call& call);
Result<wire::Json> delete_fences(HttpContext& context, const Call& call);
// forward_routes.cc:
Result<wire::Json> get_forward(HttpContext& context, const Call& call);
Result<wire::Json> put_forward(HttpContext& context, const Call& call);
Result<wire::Json> post_forward(HttpContext& context, const Call& call);
Result<wire::Json> delete_forward(HttpContext& context, const Call& call);
Result<wire::Json> put_retention(HttpContext& context, const Call& call);
wire::Json forward_status(const HttpContext& context);    // "forward" of /api/v1/status
std::string forward_metrics(const HttpContext& context);  // for /metrics
// device_routes.cc:
Result<wire::Json> get_device(HttpContext& context, const Call& call);
Result<wire::Json> post_device(HttpContext& context, const Call& call);
Result<wire::Json> post_devices(HttpContext& context, const Call& call);
void get_find(HttpContext& context, Call& call);
// audit_routes.cc:
void begin_audit_routes(HttpContext& context);  // before the handlers
void get_audit(HttpContext& context, Call& call);
Result<wire::Json> get_audit_verify(HttpContext& context, const Call& call);
std::string audit_status_json(const HttpContext& context);  // "audit" of /api/v1/status
// token_routes.cc:
void get_tokens(HttpContext& context, Call& call);
void post_token(HttpContext& context, Call& call);
void delete_token(HttpContext& context, Call& call);
void register_token_metrics(HttpContext& context);
// signed_answers.cc:
void get_report(HttpContext& context, Call& call);
Result<wire::Json> get_report_key(HttpContext& context, const Call& call);
// backup_routes.cc:
void post_backup(HttpContext& context, Call& call);
Result<wire::Json> put_backup(HttpContext& context, const Call& call);
Result<wire::Json> delete_backup(HttpContext& context, const Call& call);
// status_routes.cc:
void get_status(HttpContext& context, Call& call);
void get_healthz(HttpContext& context, Call& call);
void get_readyz(HttpContext& context, Call& call);
void get_influx_health(HttpContext& context, Call& call);
void get_influx_ready(HttpContext& context, Call& call);
void get_metrics(HttpContext& context, Call& call);
void post_mqtt_test(HttpContext& context, Call& call);
void register_status_metrics(HttpContext& context);
// page.cc, openapi.cc:
void get_page(HttpContext& context, Call& call);
void get_page_file(HttpContext& context, Call& call);
void get_openapi(HttpContext& context, Call& call);

// status_figures.cc: parts of /api/v1/status with their figures in /metrics.

// One of few words: full, read-only, io-error, away, damaged, other; empty for Ok.
std::string_view degraded_reason(const Status& degraded);
// edgecase_engine_degraded_since_seconds and edgecase_engine_degraded_reason, of either layer.
void register_drive_metrics(observe::Metrics& metrics, const std::function<Stats()>& stats);

// "eviction".
wire::Json eviction_status(const HttpContext& context);
wire::Json tiers_status(const HttpContext& context);
void register_eviction_metrics(HttpContext& context);

// "scrub".
wire::Json scrub_status(const HttpContext& context, const ScrubStats& stats);
void register_scrub_metrics(HttpContext& context);

// "clock.undated": what arrived without a time while the clock was not trusted.
wire::Json undated_status(const HttpContext& context);
void register_undated_metrics(HttpContext& context);

// The files of daemon/http/page/, which the build compresses and puts into the program
// (toolchains/page_files.cmake). Constant; any thread.

struct PageFile {
  std::string_view name;
  std::string_view hash;      // of what it says
  const unsigned char* gzip;  // as it is sent
  std::size_t gzip_bytes;
  std::size_t bytes;  // inflated
};

std::span<const PageFile> page_files();
// The hash of the style in index.html, as Content-Security-Policy names it.
std::string_view page_style_hash();

}  // namespace edgecase::http
