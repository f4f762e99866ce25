#include "influxql/series_reader.h"

#include <algorithm>
#include <utility>

namespace edgecase::influxql {

Status ReadingAccount::count_points(std::uint64_t count) {
  points_ += count;
  if (points_ + groups_ <= asking_.limits.points) return ok();
  return query::check_limit(query::kPointsLimit, points_ + groups_, asking_.limits.points);
}

Status ReadingAccount::count_group(std::uint64_t readings) {
  ++groups_;
  points_of_groups_ += readings;
  return count_points(0);
}

Status ReadingAccount::count_series(std::uint64_t count) {
  series_ += count;
  return query::check_limit(query::kSeriesLimit, series_, asking_.limits.series);
}

void ReadingAccount::tell(const std::vector<catalog::SeriesRow>& rows) {
  if (asking_.reach == nullptr) return;
  query::QueryService::Rows fresh;  // one of each device
  for (const catalog::SeriesRow row : rows) {
    const auto entry = service_.catalog().series_at(row);
    if (entry.ok() && told_.emplace(entry->id.namespace_id, entry->id.device).second)
      fresh.push_back(row);
  }
  service_.tell(asking_.reach, fresh);
}

void ReadingAccount::begin(SeriesReader& reader) {
  reader.place_ = readers_.size();
  readers_.push_back(&reader);
}

void ReadingAccount::end(SeriesReader& reader) {
  if (reader.has_read()) {
    query::GivenReadings read = reader.before_reading();
    read.add(reader.series(), reader.oldest_ns(), reader.newest_ns());
    closed_.add(read);
  }
  readers_[reader.place_] = readers_.back();
  readers_[reader.place_]->place_ = reader.place_;
  readers_.pop_back();
}

void ReadingAccount::begin_group() {
  before_.add(closed_);
  closed_ = {};
}

query::LeftOut ReadingAccount::left_out() const {
  query::LeftOut all = left_out_;
  for (const SeriesReader* reader : readers_) {
    if (reader->left_out() != nullptr) all.add(*reader->left_out());
  }
  return all;
}

bool ReadingAccount::is_damaged() const {
  return !left_out_.empty() ||
         std::any_of(readers_.begin(), readers_.end(), [](const SeriesReader* reader) {
           return reader->left_out() != nullptr && !reader->left_out()->empty();
         });
}

Status ReadingAccount::add(const query::GivenReadings& given, const query::LeftOut& left_out,
                           const query::TierNote& tiers, std::uint64_t points) {
  before_.add(given);
  seen_ = UINT64_MAX;
  left_out_.add(left_out);
  tiers_.add(tiers);
  return count_points(points);
}

void ReadingAccount::let_go() {
  for (SeriesReader* reader : readers_) reader->let_go();
}

query::GivenReadings ReadingAccount::held() const {
  query::GivenReadings all = before_;
  all.add(closed_);
  for (const SeriesReader* reader : readers_) {
    if (!reader->has_read()) continue;
    query::GivenReadings read = reader->before_reading();
    read.add(reader->series(), reader->oldest_ns(), reader->newest_ns());
    all.add(read);
  }
  return all;
}

query::GivenReadings ReadingAccount::take_given() {
  query::GivenReadings taken = held();
  before_ = {};
  if (keeps_ == Keeps::Group) return taken;
  closed_ = {};
  for (SeriesReader* reader : readers_) reader->forget_answered();
  return taken;
}

bool ReadingAccount::is_given_revoked() {
  if (is_revoked_) return true;
  const std::uint64_t count = service_.engine().revocations();
  if (count == seen_) return false;
  seen_ = count;
  is_revoked_ = held().is_revoked();
  return is_revoked_;
}

}  // namespace edgecase::influxql
