// SELECT of InfluxQL, as InfluxDB 1.x answers it: the entry that http/influx_query.h calls, and the
// account of what an answer reads (ReadingAccount). The answer is made row by row while it is read;
// what it holds meanwhile is bounded by query::QueryLimits. Authorisation, purposes and withheld
// devices are those of query::QueryService. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "influxql/points.h"
#include "influxql/statement.h"
#include "query/left_out.h"
#include "query/query_service.h"
#include "query/series_scan.h"

namespace edgecase::influxql {

// The question's circumstances: who asks, where and when.
struct Asking {
  auth::Principal principal;
  std::string database;
  std::string policy;  // of measurements that name none; empty: autogen
  std::string purpose;
  query::Reach* reach = nullptr;  // outlives the answer; its patience is asked while it is made
  std::int64_t now_ns = 0;
  query::QueryLimits limits = {};
};

class SeriesReader;

// Whether what was answered is still of use to what is answered later, as sums are.
enum class Keeps : unsigned char { Nothing, Group };

// How much one SELECT reads, of which readings what it holds was made, and what could not be read.
// All that read for the statement share one, which outlives them.
class ReadingAccount {
 public:
  ReadingAccount(query::QueryService& service, const Asking& asking)
      : service_(service),
        asking_(asking),
        spending_(asking.limits.windows, asking.limits.held_bytes) {}

  query::QueryService& service() const { return service_; }
  const Asking& asking() const { return asking_; }
  Spending& spending() { return spending_; }
  // Once a function is asked for, in whichever statement.
  void set_keeps(Keeps keeps) { keeps_ = keeps; }
  bool is_summing() const { return keeps_ == Keeps::Group; }

  // LimitReached, with InfluxDB's words.
  Status count_points(std::uint64_t count);
  // The metadata drive alone told of a group; it counts as one point.
  Status count_group(std::uint64_t readings);
  Status count_series(std::uint64_t count);
  std::uint64_t points() const { return points_; }  // that were read
  std::uint64_t groups() const { return groups_; }  // that were told of unread
  std::uint64_t points_of_groups() const { return points_of_groups_; }
  std::uint64_t series() const { return series_; }
  // What windows of tiers stand for readings that are gone, and where none could.
  query::TierNote& tiers() { return tiers_; }
  const query::TierNote& tiers() const { return tiers_; }
  // Series that are read: whoever keeps an account of it hears of each device once.
  void tell(const std::vector<catalog::SeriesRow>& rows);

  // A reader is there from its making to its end.
  void begin(SeriesReader& reader);
  void end(SeriesReader& reader);
  std::size_t readers() const { return readers_.size(); }
  // What was read for the group before is of no use any more.
  void begin_group();
  void leave_out(const query::LeftOut& left_out) { left_out_.add(left_out); }
  // What was passed over, since it is damaged; of readers that are there as well.
  query::LeftOut left_out() const;
  bool is_damaged() const;

  // What another one has read for the same statement since it told so last.
  Status add(const query::GivenReadings& given, const query::LeftOut& left_out,
             const query::TierNote& tiers, std::uint64_t points);

  void let_go();
  query::GivenReadings take_given();
  bool is_given_revoked();

 private:
  query::GivenReadings held() const;

  query::QueryService& service_;
  const Asking asking_;
  Spending spending_;
  Keeps keeps_ = Keeps::Nothing;
  std::uint64_t points_ = 0, series_ = 0;
  std::uint64_t groups_ = 0, points_of_groups_ = 0;
  query::TierNote tiers_;
  std::set<std::pair<NamespaceId, std::uint32_t>> told_;  // devices
  std::vector<SeriesReader*> readers_;
  query::LeftOut left_out_;
  // What readers that are gone have read: for this group, and for those before it since the last
  // take_given().
  query::GivenReadings closed_, before_;
  std::uint64_t seen_ = UINT64_MAX;  // revocations
  bool is_revoked_ = false;          // something that is held
};

// `statement` is taken over; `service` must outlive the answer. InvalidArgument, with InfluxDB's
// words: the statement asks for what cannot be answered. NotFound: the database. LimitReached.
Result<std::unique_ptr<RowSource>> run_select(std::unique_ptr<SelectStatement> statement,
                                              const Asking& asking, query::QueryService& service);

// What run_select() would do, a line a row: columns, time range, series, groups, windows. With
// `analyze` it is done, and rows, points and time are told.
Result<std::unique_ptr<RowSource>> explain_select(std::unique_ptr<SelectStatement> statement,
                                                  const Asking& asking,
                                                  query::QueryService& service, bool analyze);

}  // namespace edgecase::influxql
