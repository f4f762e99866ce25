// The way out: authorize -> engine scan -> readings. Thread-safe; a cursor belongs to one thread
// and must not outlive the service. A cursor holds a snapshot of the store until its end is reached
// or it is destroyed: what is written meanwhile does not show, unless it has let go in between.
//
// Windows (`every_ns`) are aligned to the epoch, also before it; a row's time is the window's
// start, which may lie before `from_ns`. Windows without a result have no row. An aggregate without
// `every_ns` gives one row a series; its time is `from_ns`, or that of the first reading where the
// range has no beginning. What each aggregate means: aggregator.h. With `every_ns` an answer has no
// more rows than limits.query-windows says: then it ends with LimitReached.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "query/left_out.h"
#include "query/listings.h"
#include "query/measurement_memo.h"
#include "query/series_scan.h"
#include "retention/retention_service.h"
#include "wire/reading.h"
#include "wire/selector.h"
#include "wire/tiers.h"

namespace edgecase::query {

// Limits of what one question may take: limits.query-points, -series and -windows. InfluxQL obeys
// all of them, /api/v1/query that of windows; an error names the setting. QueryService holds the
// limits that are in force; who answers takes a copy.

struct QueryLimits {
  std::uint64_t points = 200'000'000;    // read from the store
  std::uint64_t series = 100'000;        // that match
  std::uint64_t windows = 10'000'000;    // of time, in all
  std::uint64_t held_bytes = 16u << 20;  // of values that a function needs at once; no setting
};

// One kind of limit: what InfluxDB calls it, and the setting here.
struct QueryLimit {
  std::string_view influx_name, setting;
};
inline constexpr QueryLimit kPointsLimit{"max-select-point", "limits.query-points"};
inline constexpr QueryLimit kSeriesLimit{"max-select-series", "limits.query-series"};
inline constexpr QueryLimit kWindowsLimit{"max-select-buckets", "limits.query-windows"};

// LimitReached where `count` is more than `most`: InfluxDB's words, then the setting's name.
inline Status check_limit(const QueryLimit& limit, std::uint64_t count, std::uint64_t most) {
  if (count <= most) return ok();
  std::string message(limit.influx_name);
  message += " limit exceeded: (" + std::to_string(count) + "/" + std::to_string(most) + "); ";
  message += limit.setting;
  return limit_reached(message + " is " + std::to_string(most));
}

// How many windows of this length (> 0) there are from `first_ns` to `last_ns`, both included and
// in order.
inline std::uint64_t windows_between(std::int64_t first_ns, std::int64_t last_ns,
                                     std::int64_t every_ns) {
  const std::uint64_t span =
      static_cast<std::uint64_t>(last_ns) - static_cast<std::uint64_t>(first_ns);
  const std::uint64_t more = span / static_cast<std::uint64_t>(every_ns);
  return more == UINT64_MAX ? more : more + 1;
}

// Chooses the tier that answers a question of a series whose readings have become windows, and
// tells what was chosen (X-EdgeCase-Tiers).

// What the answers of one question have read in place of readings, and where they could not.
struct TierNote {
  std::set<std::int64_t> read_ns, missed_ns;  // lengths of windows
  std::int64_t read_before_ns = INT64_MIN, missed_before_ns = INT64_MIN;
  // Begins and lengths of windows that an end of the question's range cuts.
  std::set<std::pair<std::int64_t, std::int64_t>> cut_ns;

  // "1h before 2026-11-22T10:00:00Z"; then, or alone, "none before ...: windows of 1m, 1h are kept
  // there": the answer has nothing of that time; then "cut by the range, so left out: 1h at ...".
  // "": it is made of readings alone.
  std::string text() const;
  void add(const TierNote& other);
};

// The coarsest of a series' tiers of whose windows those of `every_ns` (0: of any length) are made,
// which reaches back the furthest. None: there is none.
std::optional<std::int64_t> tier_for(const retention::TierMark& mark, std::int64_t every_ns);

// The columns that an aggregate is made of; none: it cannot be made of windows.
std::optional<TierColumnSet> tier_columns(wire::Aggregate aggregate);

// For a question from `from_ns` on; `aggregate`: none asks for readings. The marks outlive it.
TierReading read_tiers(const Engine& engine, const retention::TierMarks& marks,
                       std::int64_t from_ns, std::int64_t every_ns,
                       std::optional<wire::Aggregate> aggregate);

// For a question of a column of all windows of `every_ns`, and of no readings. `marks`: null where
// there are none.
TierReading read_windows(const Engine& engine, const retention::TierMarks* marks,
                         std::int64_t every_ns, wire::WindowColumn column);

// Notes what becomes of a series of a question of either kind.
void note_windows(const retention::TierMarks& marks, const catalog::SeriesId& series,
                  std::int64_t from_ns, std::int64_t every_ns, TierNote& note);
void note_tiers(Engine& engine, const retention::TierMarks& marks, const catalog::SeriesId& series,
                const TimeRange& range, std::int64_t every_ns,
                std::optional<wire::Aggregate> aggregate, TierNote& note);

// One thread more for questions that read much: it does a part of one of them at a time, beside the
// thread that answers. Made when it is first wanted. Thread-safe.

class SideThread {
 public:
  SideThread() = default;
  // Nobody starts anything any more; waits for what was started.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Has `job`, which does not throw, done there. False: it is at work for somebody else, or there
  // is no thread to be had.
  bool try_start(std::function<void()> job) EC_EXCLUDES(mutex_);

 private:
  void work() EC_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar called_;
  std::function<void()> job_ EC_GUARDED_BY(mutex_);
  bool is_busy_ EC_GUARDED_BY(mutex_) = false;
  bool is_ending_ EC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// What answers were made of.
struct ReadAccount {
  std::uint64_t groups_from_metadata = 0;  // told of by the metadata drive alone
  std::uint64_t readings_from_metadata = 0;
  std::uint64_t readings_decoded = 0;
  std::uint64_t windows_from_tiers = 0;
};

// Readings one by one: ordered by namespace, series, then time (newest first with `descending`).
class ReadingCursor {
 public:
  virtual ~ReadingCursor() = default;
  // True: `reading` is filled, its views valid until the next call. False: the end. Never builds up
  // the result. After an error only destruction is allowed.
  virtual Result<bool> next(wire::Reading& reading) = 0;
  // For speed, behind next(): up to `most` readings that follow the one it answered, as far as they
  // are of the same series and at hand as numbers. next() goes on behind them; valid as long.
  virtual wire::Numbers take_numbers(std::size_t /*most*/) { return {}; }
  // The large text or bytes of that reading (kLargeTextBytes), valid as long; `value.text` is empty
  // then. Null: they are not large.
  virtual LargeText* large_text() { return nullptr; }
  // Between two calls of next(), for who waits in between: where something was revoked since
  // (Engine::revocations()), or the engine is short of memory that the cursor keeps, it lets go of
  // what it reads from, and goes on with what is stored then, behind the reading that it answered
  // last. What that holds is valid no more; the next piece of its large text is there, where that
  // was not revoked.
  virtual void let_go() {}
  // What next() was answered from since the last call, and a large text that may be read still.
  virtual GivenReadings take_given() { return {}; }
  // Whether something of that was revoked.
  virtual bool is_given_revoked() { return false; }
  // What next() has passed over, since it is damaged; null: nothing ever is. Whatever ends an
  // answer says so, or does not end it as a whole one.
  virtual const LeftOut* left_out() const { return nullptr; }
  // What next() has read so far, where that is counted.
  virtual ReadAccount account() const { return {}; }
};

// What an answer is about, for whoever keeps an account of it.
struct Reach {
  static constexpr std::size_t kDevicesMax = 64;

  std::uint64_t withheld = 0;  // devices that may not be read for the purpose
  // Namespace and device, of the first kDevicesMax that are read, ...
  std::vector<std::pair<std::string, std::string>> devices;
  std::uint64_t more = 0;       // ... and how many others
  bool has_identities = false;  // of series, which their names do not tell
  TierNote tiers = {};          // what stood for readings that are gone
  // In: where the rows of the series go that are read, in their order; null: nowhere.
  std::vector<catalog::SeriesRow>* series = nullptr;
  // In: one question is made of several, which may ask for the same devices.
  bool counts_once = false;
  // In: asked now and then while the answer is made; null: nobody is. Outlives the answer.
  Patience* patience = nullptr;
  // In: a turn for one thread more, where nobody else waits for one; null where it does. Null:
  // there is one thread alone.
  std::function<std::unique_ptr<Patience>()> second_turn = nullptr;

  // Devices come in order; one that comes several times in a row is one, and with counts_once,
  // however often it comes.
  void add(const std::string& namespace_name, const std::string& device);

 private:
  std::pair<std::string, std::string> last_;
  std::unordered_set<std::uint64_t> seen_;  // hashes; limits.devices bounds it
};

class WideRows;   // wide_rows.h
struct FillRule;  // the same

using ReadingFilter = std::function<bool(const wire::Reading&)>;

// Which series find() looks for: those whose names hold all words, the case of ASCII aside.
struct FindRequest {
  std::string namespace_name;  // "": all
  std::vector<std::string> words;
  std::string purpose;
  std::size_t offset = 0, limit = 0;  // of those that match
};

struct FoundSeries {
  struct Names {
    std::string namespace_name, device, sensor;
  };
  std::vector<Names> series;  // in the order of their names
  bool has_more = false;
};

class QueryService {
 public:
  // `devices` says what each device may be read for; null: anything.
  QueryService(Engine& engine, const catalog::Catalog& catalog,
               const catalog::DeviceIndex* devices = nullptr);

  // What the principal may not read is left out; NotAllowed where the selector names nothing that
  // it may. NotFound: an exact selector that names nothing, or a namespace that does not exist
  // (`default` always does); a glob that matches nothing is an empty result. Of several selectors
  // those of which that is so, and globs that match nothing, are told as left out, unless it is so
  // of all. InvalidArgument: `from_ns` after `to_ns`, a negative `every_ns`. NotAllowed: a
  // namespace of the store's own. An empty namespace name means all whose names do not begin with
  // `_`; `_rejected` is read when it is named. `every_ns` without an aggregate gives means.
  // With an owner: administrators only. NotFound: nothing of devices of which this is said.
  // Devices that may not be read for the purpose (DeviceIndex::check_purpose) are left out and
  // counted in `reach`, which may be null; NotAllowed where one device is named and left out.
  Result<std::unique_ptr<ReadingCursor>> query(const auth::Principal& principal,
                                               const wire::QueryRequest& request,
                                               Reach* reach = nullptr);
  // The same with a column for each series (wide_rows.h). LimitReached: of more than
  // kWideColumnsMax.
  Result<std::unique_ptr<WideRows>> wide(const auth::Principal& principal,
                                         const wire::QueryRequest& request, const FillRule& fill,
                                         Reach* reach = nullptr);
  // Reads a moment that a backup holds: everything that the request selects, for administrators.
  // Where something is revoked meanwhile it goes on with what is stored then.
  Result<std::unique_ptr<ReadingCursor>> query_at(const auth::Principal& principal,
                                                  const wire::QueryRequest& request,
                                                  std::shared_ptr<const Snapshot> moment,
                                                  Reach* reach = nullptr);
  // Series with readings at that moment.
  Result<SeriesListing> list_series_at(const auth::Principal& principal,
                                       const std::string& namespace_name,
                                       const wire::Selection& selection,
                                       std::shared_ptr<const Snapshot> moment,
                                       Reach* reach = nullptr);
  // The newest reading of each series.
  Result<std::unique_ptr<ReadingCursor>> last(const auth::Principal& principal,
                                              const std::string& namespace_name,
                                              const wire::Selection& selection,
                                              std::string_view purpose = {},
                                              Reach* reach = nullptr);
  // Whether a reading is one of those that query() would answer: for who follows what is stored.
  // Errors as of query(), but that a series need not be there yet; `left_out`, which may be null,
  // is told of selectors that may not be asked for. The filter asks purposes each time; it must not
  // outlive the service, nor the principal.
  Result<ReadingFilter> filter(const auth::Principal& principal, const std::string& namespace_name,
                               const wire::Selection& selection, std::string_view purpose,
                               LeftOut* left_out = nullptr) const;
  // `operation`: Read, or Export for those that may be exported. `purpose`: only those that may be
  // read for it; none: all, since what is told of them is no reading.
  Result<SeriesListing> list_series(const auth::Principal& principal,
                                    const std::string& namespace_name,
                                    const wire::Selection& selection,
                                    auth::Operation operation = auth::Operation::Read,
                                    std::optional<std::string> purpose = std::nullopt,
                                    Reach* reach = nullptr);
  // Each word is part of NAMESPACE/DEVICE/SENSOR/, or of a tag as KEY=VALUE, or it is a label
  // NAME=VALUE of the device. Left out is what query() leaves out. Reads no readings.
  Result<FoundSeries> find(const auth::Principal& principal, const FindRequest& request,
                           Reach* reach = nullptr) const;
  // All of the devices of an owner; work grows with the result.
  Result<SeriesListing> list_series_of(std::string_view owner);
  // `filter`: of all devices, or of what is said of them; work grows with the result, which with a
  // filter of one condition is the page.
  Result<DeviceListing> list_devices(const auth::Principal& principal,
                                     const std::string& namespace_name,
                                     const wire::Selection& selection,
                                     const catalog::DeviceFilter& filter = {},
                                     const catalog::DevicePage& page = {}, Reach* reach = nullptr);

  // What the principal may read of a namespace for the purpose, for who reads it by himself, and
  // then tells by tell() what of it. NotFound: "database not found: x", also where nothing of it
  // may be seen.
  using Rows = std::vector<catalog::SeriesRow>;
  Result<Rows> readable(const auth::Principal& principal, const std::string& namespace_name,
                        std::string_view purpose, Reach* reach) const;
  void tell(Reach* reach, const Rows& series) const { add_to(reach, series); }
  // Series of a selection that the principal may use, whatever their purposes, and what was asked
  // for and is not among them. Errors as of query().
  struct Found {
    Rows series;
    std::vector<LeftOutReadings> left_out;
  };
  Result<Found> select(auth::Operation operation, const auth::Principal& principal,
                       const std::string& namespace_name, const wire::Selection& selection,
                       catalog::RowOrder order = catalog::RowOrder::ByName) const;
  // What one question may take, from now on; questions under way keep what they began with.
  void set_limits(const QueryLimits& limits) EC_EXCLUDES(limits_mutex_) {
    const MutexLock lock(limits_mutex_);
    limits_ = limits;
  }
  QueryLimits limits() const EC_EXCLUDES(limits_mutex_) {
    const MutexLock lock(limits_mutex_);
    return limits_;
  }
  // Before it is used: how far series are thinned. It outlives the service; null: none is.
  void read_tiers(const retention::TierMarks* marks) { marks_ = marks; }
  const retention::TierMarks* marks() const { return marks_; }
  // The same, and which tiers there are by their rules.
  void know_rules(const retention::RetentionService& rules) {
    rules_ = &rules;
    read_tiers(&rules.marks());
  }
  const retention::RetentionService* rules() const { return rules_; }
  // What questions of InfluxQL have found.
  MeasurementMemo& measurements() { return measurements_; }
  // For a question that wants to be read by two threads.
  SideThread& side_thread() { return side_thread_; }
  Engine& engine() const { return engine_; }
  const catalog::Catalog& catalog() const { return catalog_; }

 private:
  Status withhold(const auth::Principal& principal, std::string_view purpose,
                  const wire::Selection& selection, Rows& series, std::uint64_t* withheld) const;
  Result<Found> select_filtered(auth::Operation operation, const auth::Principal& principal,
                                const std::string& namespace_name, const wire::Selection& selection,
                                const catalog::DeviceFilter& filter,
                                const catalog::DevicePage& page = {}) const;
  Result<Found> select_requested(const auth::Principal& principal,
                                 const wire::QueryRequest& request) const;
  Result<std::unique_ptr<ReadingCursor>> run(const wire::QueryRequest& request, Found found,
                                             std::shared_ptr<const Snapshot> moment, Reach* reach,
                                             std::uint64_t large_bytes = kLargeTextBytes);
  Result<Found> find_readable(const auth::Principal& principal, const wire::QueryRequest& request,
                              Reach* reach) const;
  std::vector<std::int64_t> lengths_of_tiers(const wire::QueryRequest& request,
                                             catalog::SeriesRow row) const;
  Status check_exact(const std::string& namespace_name, const wire::Selector& selector) const;
  bool may_reach(auth::Operation operation, const auth::Principal& principal,
                 catalog::SeriesRow row) const;
  void add_to(Reach* reach, const Rows& series) const;
  Rows page_of(Rows series, const catalog::DevicePage& page) const;

  Engine& engine_;
  const catalog::Catalog& catalog_;
  const catalog::DeviceIndex* const devices_;
  const retention::TierMarks* marks_ = nullptr;
  const retention::RetentionService* rules_ = nullptr;
  SeriesSummaries summaries_;
  MeasurementMemo measurements_;
  mutable Mutex limits_mutex_;
  QueryLimits limits_ EC_GUARDED_BY(limits_mutex_);
  SideThread side_thread_;  // the last: it ends first
};

// Finds the files that hold what is selected, and how many bytes of it each has.

// More devices are looked up by namespace; then a file's locations are those of all of them.
inline constexpr std::size_t kLocatedDevicesMax = 1000;

struct Whereabouts {
  struct File {
    FileShare share;
    std::set<std::string> locations;  // as said of the devices whose bytes it holds
  };
  std::uint64_t devices = 0, series = 0, bytes = 0;
  std::uint64_t window_bytes = 0;  // of these: windows of tiers
  std::vector<File> files;         // those with the most bytes first
  LeftOut left_out;                // what is damaged, or of several selectors not there
  Reach reach;
};

// Finds where the part lies that the principal may read. Errors: NotAllowed; NotFound, when nothing
// matches; the engine's.
Result<Whereabouts> find_whereabouts(const QueryService& service,
                                     const catalog::DeviceIndex& devices,
                                     const auth::Principal& principal,
                                     const std::string& namespace_name,
                                     const wire::Selection& selection);

}  // namespace edgecase::query
