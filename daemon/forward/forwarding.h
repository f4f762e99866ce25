// All targets: those of the configuration, each with its thread, and the places of those that were
// in it before. What HTTP and the commands speak to. Thread-safe.
//
// A target that leaves the configuration keeps its place, as one open range: nothing of the store
// is held for it, and what is sent twice when it comes back changes nothing there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "forward/eraser.h"
#include "forward/erasures.h"
#include "forward/records.h"
#include "forward/summaries.h"
#include "forward/target.h"
#include "forward/thinned.h"
#include "forward/unsent.h"
#include "wire/names.h"
#include "wire/reading_format.h"

namespace edgecase::forward {

// The verifier compares what was sent with what a target holds: a series after another, so many
// readings at a time, each by its time and value. It names hours in which some are missing; who
// asked has them sent again. In pages, so that nobody waits long. One thread.
//
//   EdgeCase         its query route: the same line as here
//   InfluxDB 1       SELECT of the field: the same time and value
//   VictoriaMetrics  /api/v1/export: the same millisecond; numbers alone
//   others           Unsupported

struct VerifyRequest {
  std::optional<std::int64_t> from_ns, to_ns;
  // What was committed in between was sent.
  CommitPosition after = 0, upto = 0;
  // What was committed later may be there and not be shown yet: a page that lacks some of it looks
  // again until its time is over, and the next one begins with it. `wait`: false, nobody waits on.
  CommitPosition shown = UINT64_MAX;
  std::function<bool(std::int64_t duration_ns)> wait = {};
  std::string behind;  // VerifyPage::next of the page before
  // Whether the target has refused that reading: it is not missing, then.
  std::function<Result<bool>(const Place&)> is_refused;
};

struct VerifyPage {
  struct Hour {
    std::string namespace_name, device, sensor;
    std::int64_t begin_ns = 0;
    std::uint64_t here = 0, missing = 0;
  };
  std::uint64_t readings = 0;  // that were compared
  std::uint64_t missing = 0;
  std::uint64_t refused = 0;  // by the target, when they were sent
  // Too large to be fetched, here or there; or nobody knows which of several windows is there.
  std::uint64_t unchecked = 0;
  std::vector<Hour> hours;     // with something missing, kHoursMax at most
  std::vector<Refusal> again;  // what is missing, kAgainMax at most
  std::string next;            // empty: that was all
};

class Verifier {
 public:
  static constexpr std::size_t kHoursMax = 1'000;
  static constexpr std::size_t kAgainMax = kUndeliveredMax;
  static constexpr std::size_t kReadingsAtOnce = 2'000;
  static constexpr std::size_t kBytesAtOnce = 128u << 10;
  static constexpr std::size_t kWindowsAtOnce = 500;
  static constexpr std::int64_t kPageNs = 2'000'000'000;
  static constexpr std::int64_t kLookAgainNs = 250'000'000;

  Verifier(Engine& engine, const catalog::Catalog& catalog, Clock& clock, Asked& asked,
           const config::ForwardSettings& settings, const config::ForwardTarget& target,
           const Shape& shape = {}, const retention::RetentionService* rules = nullptr,
           const Thinned* thinned = nullptr);

  // Errors: InvalidArgument (`behind`), NotAllowed, Unavailable, Unsupported: the target's; the
  // engine's.
  Result<VerifyPage> page(const VerifyRequest& request);

 private:
  struct Local {
    std::int64_t time_ns = 0;
    Bytes key;
    std::string as_it_is;  // the line or the value that the target should answer
    bool is_settled = true;
  };
  struct Series {
    catalog::SeriesEntry entry;
    wire::Identity identity;
  };
  using Answered = std::optional<std::set<std::string>>;
  struct Found {
    std::set<std::string> there;
    std::set<std::int64_t> too_long;  // times of which more is there than an answer may hold
  };

  // Compares from `from_ns` on; where to go on, or nothing: that was all of it.
  Result<std::optional<std::int64_t>> compare(const catalog::SeriesEntry& entry,
                                              const VerifyRequest& request, std::int64_t from_ns,
                                              std::int64_t until_ns, VerifyPage& page);
  using ColumnSeries = std::array<Series, wire::kWindowColumns.size()>;
  using SomeColumns = std::array<std::vector<Local>, wire::kWindowColumns.size()>;
  Result<ColumnSeries> columns_of(const catalog::SeriesEntry& entry) const;
  // A thinned target is compared window by window.
  struct WholeSent {
    std::int64_t begin_ns;
    bool is_settled;
  };
  Result<std::optional<std::int64_t>> find_whole(const catalog::SeriesEntry& entry,
                                                 const VerifyRequest& request, std::int64_t from_ns,
                                                 std::vector<WholeSent>& whole);
  // As compare().
  Result<std::optional<std::int64_t>> compare_windows(const catalog::SeriesEntry& entry,
                                                      const VerifyRequest& request,
                                                      std::int64_t from_ns, std::int64_t until_ns,
                                                      VerifyPage& page);
  // Windows that went because their readings had become that; `from_ns`: where readings go on, or
  // it does. True: the page is over.
  Result<bool> compare_sent_windows(const catalog::SeriesEntry& entry, const VerifyRequest& request,
                                    std::int64_t until_ns, std::int64_t& from_ns, VerifyPage& page);
  Result<std::int64_t> read_span(const catalog::SeriesEntry& entry, const ColumnSeries& columns,
                                 const SentWindows& sent, const SentWindows::Span& span,
                                 std::int64_t from_ns, std::int64_t to_ns, SomeColumns& some);
  // False: some may be there and is not shown yet.
  Result<bool> compare_some(const Series& series, const std::vector<Local>& some,
                            const VerifyRequest& request, std::int64_t until_ns, VerifyPage& page);
  // What the target holds of these: in parts, where an answer is longer than is taken.
  Status fetch_some(const Series& series, std::span<const Local> some, Found& found);
  // What it holds between two times, both included, in the words of Local; nothing: an answer would
  // be longer than is taken.
  Result<Answered> fetch(const Series& series, std::int64_t first_ns, std::int64_t last_ns);
  Result<Answered> fetch_edgecase(const Series& series, std::int64_t first_ns,
                                  std::int64_t last_ns);
  Result<Answered> fetch_influx(const Series& series, std::int64_t first_ns, std::int64_t last_ns);
  Result<Answered> fetch_victoria(const Series& series, std::int64_t first_ns,
                                  std::int64_t last_ns);
  // False: a target of this kind cannot hold it.
  bool describe(const Series& series, const wire::Reading& reading, std::string& text);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  Clock& clock_;
  Asked& asked_;
  const config::ForwardTarget target_;
  const WatchedTarget watched_;
  const std::string database_, namespace_;
  const Pseudonyms pseudonyms_;
  const Windows windows_;
  const Thinned* const thinned_;
  Eraser kind_;
  wire::ReadingFormatter lines_, objects_;
};

// Whether targets can be what they are written to be: their files. Errors begin with the key;
// `number` counts from 1.
Status check_targets(const std::vector<config::ForwardSettings>& settings, std::size_t& number);

struct ForwardingParts {
  Engine& engine;
  const catalog::Catalog& catalog;
  Clock& clock;
  Random& random;  // thread-safe
  observe::Logger& logger;
  ingest::CommitBell& bell;
  retention::RetentionService* rules = nullptr;  // that may have to wait; null: there are none
  HeldClock* held = nullptr;                     // the engine's; null: no step of it waits
  Summaries::Secret secret = {};  // to sign summaries of hours by; null: there are none
  // For the audit log: a target is configured, changed ("") or gone; how much went there.
  std::function<void(const std::string& name, const std::string& what)> configured = {};
  std::function<void(const std::string& name, std::uint64_t readings)> sent = {};
};

struct UndeliveredReading {
  catalog::SeriesEntry series;
  std::int64_t time_ns = 0, refused_ns = 0;
  int status = 0;
};

class Forwarding {
 public:
  // Everything in `parts` outlives it. Merges are free to raise positions from here on, within
  // bounds. Errors: the engine's, Unsupported; of a target's files, with the key. A target whose
  // place cannot be written is logged, and begins with a reload.
  static Result<std::unique_ptr<Forwarding>> open(const ForwardingParts& parts,
                                                  const std::vector<config::ForwardSettings>& all);
  ~Forwarding() { stop(); }

  void start() EC_EXCLUDES(mutex_);
  void stop() EC_EXCLUDES(mutex_);
  // New targets begin, those that are gone rest, those that differ go on where they were.
  // After an error nothing has changed.
  Status reload(const std::vector<config::ForwardSettings>& all) EC_EXCLUDES(mutex_);

  // What is signed of hours: by this store and by its targets, or by those that forward to it.
  Summaries& summaries() { return summaries_; }
  // What passes erasures on to targets.
  Erasures& erasures() { return *erasures_; }
  // What waits, for whatever lets readings go.
  Unsent& unsent() { return unsent_; }
  // Every target that has a place, by name.
  std::vector<TargetStatus> list() const EC_EXCLUDES(mutex_);
  // NotFound: no such target; it is not configured.
  Result<std::uint64_t> waiting(const std::string& name) const EC_EXCLUDES(mutex_);
  Status pause(const std::string& name) EC_EXCLUDES(mutex_);
  Status resume(const std::string& name, bool undelivered) EC_EXCLUDES(mutex_);
  // Compares what was sent with what the target holds, for a while: what is missing goes again, as
  // far as there is room for it. `request` without positions. Busy: somebody else does; Verifier's.
  struct Verified {
    VerifyPage page;
    std::uint64_t sent_again = 0;
  };
  Result<Verified> verify(const std::string& name, VerifyRequest request) EC_EXCLUDES(mutex_);
  // Ends a verify() that waits; there is none from then on.
  void end_verifying() EC_EXCLUDES(mutex_);
  // Its place, its counts and what it refused. InvalidArgument: it is configured.
  Status forget(const std::string& name) EC_EXCLUDES(mutex_);
  // What it refused and is there still, the first of them.
  Result<std::vector<UndeliveredReading>> undelivered(const std::string& name,
                                                      std::size_t most) const EC_EXCLUDES(mutex_);

 private:
  using Targets = std::map<std::string, std::shared_ptr<Target>>;

  Forwarding(const ForwardingParts& parts, std::unique_ptr<Records> records,
             std::unique_ptr<Erasures> erasures)
      : parts_(parts),
        records_(std::move(records)),
        erasures_(std::move(erasures)),
        thinned_(parts.engine, *records_),
        unsent_(parts.engine, parts.catalog, parts.clock, parts.rules, parts.held, &thinned_),
        bounds_(parts.engine),
        lineage_(parts.engine, *records_, parts.random),
        summaries_(parts.engine, parts.catalog, *records_, parts.clock, parts.random,
                   parts.secret) {}
  TargetParts target_parts();
  Result<Record> record_of(const config::ForwardSettings& settings) EC_REQUIRES(mutex_);
  // InvalidArgument: readings have gone there in another shape.
  Status check_shape(const config::ForwardSettings& settings) const EC_REQUIRES(mutex_);
  Status put_to_rest(const std::string& name, Record record) EC_REQUIRES(mutex_);
  Status make(const config::ForwardSettings& settings, Targets& into) EC_REQUIRES(mutex_);
  void set_aside() EC_REQUIRES(mutex_);
  void tell_erasures() EC_REQUIRES(mutex_);
  void tell_unsent() EC_REQUIRES(mutex_);
  bool look(bool finds = true);  // whether it saw all of it
  void watch() EC_EXCLUDES(mutex_);
  // NotFound: no such target; it is not configured.
  Result<std::shared_ptr<Target>> find(const std::string& name) const EC_EXCLUDES(mutex_);

  const ForwardingParts parts_;
  const std::unique_ptr<Records> records_;
  const std::unique_ptr<Erasures> erasures_;
  Thinned thinned_;
  Unsent unsent_;
  FeedBounds bounds_;
  Lineage lineage_;
  Summaries summaries_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::thread watch_;
  bool is_running_ EC_GUARDED_BY(mutex_) = false;
  Targets targets_ EC_GUARDED_BY(mutex_);
  std::map<std::string, Record> resting_ EC_GUARDED_BY(mutex_);
  std::uint64_t set_aside_bytes_ EC_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<HttpTarget> verifying_ EC_GUARDED_BY(mutex_);  // null: nobody verifies
  bool verifies_no_more_ EC_GUARDED_BY(mutex_) = false;
};

}  // namespace edgecase::forward
