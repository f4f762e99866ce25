// Lists what is stored, series by series or device by device, as it is asked for, since a list may
// be longer than memory has room for. One thread; must not outlive the service. Nothing is told of
// a series that is erased meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "query/left_out.h"
#include "query/series_scan.h"

namespace edgecase::query {

// Summaries of a namespace's series for listings, found in one pass over it. Looking at each series
// by itself takes a hundred times as long where there are many.

// As of one moment. Series without readings are not in it.
class SeriesSummary {
 public:
  struct Row {
    std::uint32_t device = 0, sensor = 0;  // of SeriesId
    std::uint64_t count = 0, stored_bytes = 0;
    std::int64_t first_ns = 0, last_ns = 0;
  };

  static Result<std::shared_ptr<const SeriesSummary>> make(Engine& engine, NamespaceId id,
                                                           const ReadOptions& options);
  // Null: it has no readings.
  const Row* find(const catalog::SeriesId& id) const;

 private:
  std::vector<Row> rows_;  // in the order of their ids
};

// One pass does for all that ask at the same time, so that there are few of them and few summaries
// in memory, however many list. Thread-safe.
class SeriesSummaries {
 public:
  explicit SeriesSummaries(Engine& engine) : engine_(engine) {}

  // The summary of a moment that is not before the call. Errors: the engine's, and those of
  // `patience`, which may be null; Unsupported where the engine makes none.
  Result<std::shared_ptr<const SeriesSummary>> now(NamespaceId id, Patience* patience)
      EC_EXCLUDES(mutex_);

 private:
  // Passes over one namespace, while anybody asks.
  struct Passes {
    std::uint64_t begun = 0;
    bool is_running = false;
    std::uint64_t made_by = 0;  // the pass that made it
    std::shared_ptr<const SeriesSummary> made;
    std::size_t askers = 0;
  };

  Engine& engine_;
  Mutex mutex_;
  CondVar ended_;
  std::map<NamespaceId, Passes> passes_ EC_GUARDED_BY(mutex_);
};

struct SeriesInfo {
  std::string namespace_name, device, sensor;
  std::uint64_t count = 0;
  std::optional<std::int64_t> first_ns, last_ns;
  std::uint64_t stored_bytes = 0;
  bool damaged = false;            // some of it cannot be read, and is not counted
  double readings_per_second = 0;  // steps between readings over the time from first to last
};

struct DeviceInfo {
  std::string namespace_name, device;
  std::uint64_t series = 0, count = 0;  // of those that the selector matches
  std::optional<std::int64_t> first_ns, last_ns;
  std::uint64_t stored_bytes = 0;
  bool damaged = false;            // as of a series
  double readings_per_second = 0;  // of all its series together
};

class SeriesListing {
 public:
  // `moment`: one that somebody holds, of which series are left out that have neither readings nor
  // windows of tiers; null: now. `patience` may be null.
  SeriesListing(Engine& engine, const catalog::Catalog& catalog, SeriesSummaries& summaries,
                std::vector<catalog::SeriesRow> rows, std::shared_ptr<const Snapshot> moment,
                Patience* patience);

  // False: the end.
  Result<bool> next(SeriesInfo& info);
  // The row of the series that next() answered last.
  catalog::SeriesRow row() const { return rows_[next_ - 1]; }
  // As those of a cursor: a series is given with all its times.
  void let_go();
  GivenReadings take_given() { return std::exchange(given_, GivenReadings(engine_)); }
  // For who keeps what next() answered last until the next part of an answer: whether it may be
  // erased by now; then again() makes next() look at it anew. Else give() says that it is given.
  bool is_overtaken() const;
  void again() { --next_; }
  void give() { given_.add(last_, INT64_MIN, INT64_MAX); }
  const LeftOut* left_out() const { return &left_out_; }
  // What is left out already when it begins.
  void leave_out(std::vector<LeftOutReadings> all) {
    for (LeftOutReadings& each : all) left_out_.add(std::move(each));
  }

 private:
  Status summarize(NamespaceId id);
  Result<bool> is_listed(const SeriesInfo& info);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  SeriesSummaries& summaries_;
  const std::vector<catalog::SeriesRow> rows_;
  const bool is_of_moment_;
  bool is_summarized_;
  std::shared_ptr<const SeriesSummary> summary_;
  NamespaceId summary_of_ = 0;
  ReadOptions options_;
  std::size_t next_ = 0;
  LeftOut left_out_;
  GivenReadings given_;
  catalog::SeriesId last_;  // of the series that next() answered last
};

class DeviceListing {
 public:
  explicit DeviceListing(SeriesListing series) : series_(std::move(series)) {}

  // False: the end.
  Result<bool> next(DeviceInfo& info);
  void let_go() { series_.let_go(); }
  GivenReadings take_given() { return series_.take_given(); }
  const LeftOut* left_out() const { return series_.left_out(); }

 private:
  SeriesListing series_;
  std::optional<SeriesInfo> following_;  // the first of the next device
};

}  // namespace edgecase::query
