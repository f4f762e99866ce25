// Lists what is stored, series by series or device by device, as it is asked for, since a list may
// be longer than memory has room for. One thread; must not outlive the service. Nothing is told of
// a series that is erased meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "query/given_readings.h"
#include "query/left_out.h"
#include "query/series_summary.h"

namespace edgecase::query {

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
