#include "influxql/executor.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "edgecase/machine.h"
#include "influxql/select_plan.h"
#include "influxql/series_reader.h"
#include "wire/json_text.h"
#include "wire/tiers.h"

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

namespace {

class SelectRows final : public RowSource {
 public:
  SelectRows(query::QueryService& service, const Asking& asking) : account_(service, asking) {}

  // `may_share`: a second thread may read a part of it.
  Status prepare(std::unique_ptr<SelectStatement> statement, bool may_share) {
    if (may_share && account_.asking().reach != nullptr && account_.asking().reach->second_turn)
      spare_ = std::make_unique<SelectStatement>(*statement);
    EC_ASSIGN_OR_RETURN(plan_, SelectPlan::make(account_, std::move(statement), {}));
    EC_TRY(plan_->choose());
    columns_ = plan_->columns();
    if (!plan_->gives_number_rows()) spare_.reset();
    return ok();
  }

  // A series without rows is none.
  Result<bool> next_series(SeriesHead& head) override {
    for (;;) {
      rows_.reset();
      is_of_side_ = false;
      if (next_ == plan_->size()) return false;
      const std::size_t group = plan_->is_descending() ? plan_->size() - 1 - next_ : next_;
      EC_ASSIGN_OR_RETURN(key_, plan_->key(group));
      account_.begin_group();
      start_side();
      EC_ASSIGN_OR_RETURN(is_of_side_, begin_side());
      if (!is_of_side_) {
        EC_ASSIGN_OR_RETURN(rows_, plan_->open(group));
        EC_ASSIGN_OR_RETURN(has_row_, take_row());
      }
      ++next_;
      if (!has_row_ && side_rows_.empty()) continue;
      head.name = key_.name;
      head.tags = key_.tags;
      head.columns = columns_;
      return true;
    }
  }

  Result<bool> next_row(std::vector<Cell>& row) override {
    if (is_of_side_) return next_row_of_side(row);
    if (rows_ == nullptr) return false;
    if (!std::exchange(has_row_, false)) {
      EC_ASSIGN_OR_RETURN(const bool has_more, take_row());
      if (!has_more) {
        rows_.reset();
        return false;
      }
    }
    row.resize(point_.cells.size() + 1);
    row[0].kind = Cell::Kind::Time;
    row[0].integer = point_.time_ns;
    for (std::size_t i = 0; i < point_.cells.size(); ++i) std::swap(row[i + 1], point_.cells[i]);
    return true;
  }

  Result<bool> next_rows(NumberRows& rows) override {
    if (is_of_side_) {
      if (side_row_ == 0 && !side_rows_.empty()) {
        std::swap(rows, side_rows_);
        side_rows_.clear();
        return true;
      }
      return side_rows_.empty() ? take_from_side(rows) : false;
    }
    if (rows_ == nullptr || has_row_) return false;
    const auto has_any = rows_->next_many(rows);
    EC_TRY(check_sums());
    return has_any;
  }

  const SelectPlan& plan() const { return *plan_; }
  const ReadingAccount& account() const { return account_; }

  void let_go() override { account_.let_go(); }
  query::GivenReadings take_given() override {
    query::GivenReadings given = account_.take_given();
    if (is_of_side_) given.add(side_given_);
    return given;
  }
  bool is_given_revoked() override {
    return account_.is_given_revoked() || (is_of_side_ && side_given_.is_revoked());
  }
  std::int64_t offset_s(std::int64_t time_ns) const override {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t seconds = time_ns / kSecond - (time_ns % kSecond < 0 ? 1 : 0);
    return plan_->zone() == nullptr ? 0 : plan_->zone()->offset_at(seconds);
  }
  std::string notice() const override {
    const query::LeftOut left_out = account_.left_out();
    if (!left_out.empty())
      return "readings cannot be read and are not here: " + left_out.status().message();
    const std::string tiers = account_.tiers().text();
    return tiers.empty() ? tiers : "windows of tiers in place of readings: " + tiers;
  }

 private:
  // What is worth a second thread: it takes some time to be there.
  static constexpr std::int64_t kSideWorkNs = 3'000'000;

  // Whether it is known before anything is read: each hour of a series has a group at least.
  bool reads_much() const {
    constexpr std::uint64_t kHoursMin = 2'000;
    constexpr std::uint64_t kHourNs = 3'600'000'000'000;
    const TimeSpan& span = plan_->span();
    if (!span.has_from()) return account_.series() >= SeriesReader::kOpenScansMax;
    const auto length_ns =
        static_cast<std::uint64_t>(std::min(span.to_ns, account_.asking().now_ns)) -
        static_cast<std::uint64_t>(span.from_ns);
    return span.from_ns < span.to_ns && account_.series() * (length_ns / kHourNs) >= kHoursMin;
  }
  // Else once it is known how long a group takes. It takes groups that nobody has begun.
  void start_side() {
    if (spare_ == nullptr) return;
    const std::int64_t now_ns = system_clock().boot_ns();
    if (next_ == 0) begun_ns_ = now_ns;
    const std::size_t left = plan_->size() - next_;
    if (left < 2) return spare_.reset();
    const auto done = static_cast<std::int64_t>(std::max<std::size_t>(next_, 1));
    const bool is_long =
        next_ == 0 ? reads_much()
                   : (now_ns - begun_ns_) / done * static_cast<std::int64_t>(left) >= kSideWorkNs;
    if (!is_long) return;
    side_ = SideGroups::start(account_.service(), account_.asking(), std::move(spare_), next_ + 1,
                              plan_->size());
  }
  // Whether the group at hand is the second thread's; its first rows are in side_rows_ then.
  Result<bool> begin_side() {
    side_row_ = 0;
    side_rows_.clear();
    if (side_ == nullptr || !side_->has_begun(next_)) return false;
    EC_ASSIGN_OR_RETURN(const auto taken,
                        side_->next(next_, key_, account_, side_given_, side_rows_));
    if (taken == SideGroups::Taken::NotMade) side_.reset();
    return taken != SideGroups::Taken::NotMade;
  }
  Result<bool> take_from_side(NumberRows& rows) {
    side_row_ = 0;
    EC_ASSIGN_OR_RETURN(const auto taken,
                        side_->next(next_ - 1, key_, account_, side_given_, rows));
    if (taken == SideGroups::Taken::Rows) return true;
    is_of_side_ = false;
    if (taken == SideGroups::Taken::NotMade) return busy("a part of the answer was not made");
    return false;
  }
  Result<bool> next_row_of_side(std::vector<Cell>& row) {
    if (side_row_ == side_rows_.size()) {
      side_rows_.clear();
      EC_ASSIGN_OR_RETURN(const bool has_any, take_from_side(side_rows_));
      if (!has_any) return false;
    }
    row.resize(side_rows_.columns.size() + 1);
    row[0].kind = Cell::Kind::Time;
    row[0].integer = side_rows_.times_ns[side_row_];
    for (std::size_t i = 0; i < side_rows_.columns.size(); ++i)
      side_rows_.columns[i].get(side_row_, row[i + 1]);
    ++side_row_;
    return true;
  }

  Result<bool> take_row() {
    EC_ASSIGN_OR_RETURN(const bool has_row, rows_->next(point_));
    EC_TRY(check_sums());
    return has_row;
  }
  // A sum that lacks what cannot be read would be a wrong one, unless its window says so.
  Status check_sums() const {
    const bool is_wrong = account_.is_summing() && account_.is_damaged() && !plan_->tells_lacks();
    return is_wrong ? account_.left_out().status() : ok();
  }

  ReadingAccount account_;  // outlives what reads
  std::unique_ptr<SelectPlan> plan_;
  std::vector<std::string> columns_;
  std::size_t next_ = 0;  // group
  std::unique_ptr<PointSource> rows_;
  Point point_;
  bool has_row_ = false;  // it is there and was not taken
  UnitKey key_;
  // What a second thread does.
  std::unique_ptr<SelectStatement> spare_;  // to start it with
  std::int64_t begun_ns_ = 0;
  NumberRows side_rows_;
  std::size_t side_row_ = 0;
  query::GivenReadings side_given_;
  bool is_of_side_ = false;  // the series at hand
  std::unique_ptr<SideGroups> side_;
};

// EXPLAIN. With `analyze` the rows are taken, and counted, when the first line is asked for.
class ExplainRows final : public RowSource {
 public:
  ExplainRows(std::unique_ptr<SelectRows> rows, bool analyze)
      : rows_(std::move(rows)), analyze_(analyze) {}

  Result<bool> next_series(SeriesHead& head) override {
    if (std::exchange(has_begun_, true)) return false;
    describe();
    if (analyze_) EC_TRY(run());
    head = {{}, {}, {analyze_ ? "EXPLAIN ANALYZE" : "QUERY PLAN"}};
    return true;
  }
  Result<bool> next_row(std::vector<Cell>& row) override {
    if (next_ == lines_.size()) return false;
    row.assign(1, Cell{});
    row[0].kind = Cell::Kind::Text;
    row[0].text = lines_[next_++];
    return true;
  }
  void let_go() override { rows_->let_go(); }
  query::GivenReadings take_given() override { return rows_->take_given(); }
  bool is_given_revoked() override { return rows_->is_given_revoked(); }
  std::string notice() const override { return rows_->notice(); }

 private:
  void describe() {
    const SelectPlan& plan = rows_->plan();
    std::string columns;
    for (const std::string& name : plan.columns()) columns += (columns.empty() ? "" : ", ") + name;
    lines_.push_back("COLUMNS: " + columns);
    const TimeSpan& span = plan.span();
    lines_.push_back("TIME RANGE: from " +
                     (span.has_from() ? wire::time_text(span.from_ns) : "the beginning") + " to " +
                     (span.has_to() ? wire::time_text(span.to_ns) : "the end"));
    lines_.push_back("NUMBER OF SERIES: " + std::to_string(rows_->account().series()));
    lines_.push_back("NUMBER OF GROUPS: " + std::to_string(plan.size()));
    if (plan.every_ns() == 0) return;
    // Where the range has no beginning, the first reading is that of the windows.
    lines_.push_back("WINDOW: " + wire::keep_text(plan.every_ns()));
    const auto length_ns =
        static_cast<std::uint64_t>(span.to_ns) - static_cast<std::uint64_t>(span.from_ns);
    if (span.has_from() && span.from_ns <= span.to_ns) {
      lines_.push_back("NUMBER OF WINDOWS OF A GROUP: about " +
                       std::to_string(length_ns / static_cast<std::uint64_t>(plan.every_ns()) + 1));
    }
  }

  Status run() {
    const auto begun = std::chrono::steady_clock::now();
    const ThreadReads before = thread_reads();
    SeriesHead head;
    std::vector<Cell> row;
    std::uint64_t series = 0, count = 0;
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool has_series, rows_->next_series(head));
      if (!has_series) break;
      ++series;
      for (;;) {
        EC_ASSIGN_OR_RETURN(const bool has_row, rows_->next_row(row));
        if (!has_row) break;
        ++count;
      }
    }
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begun);
    lines_.push_back("SERIES ANSWERED: " + std::to_string(series));
    lines_.push_back("ROWS ANSWERED: " + std::to_string(count));
    const ReadingAccount& account = rows_->account();
    const ThreadReads after = thread_reads();
    lines_.push_back("POINTS READ: " + std::to_string(account.points()));
    lines_.push_back("POINTS KNOWN FROM METADATA: " + std::to_string(account.points_of_groups()));
    lines_.push_back("GROUPS KNOWN FROM METADATA: " + std::to_string(account.groups()));
    lines_.push_back("GROUPS DECODED: " + std::to_string(after.groups - before.groups));
    lines_.push_back("BYTES READ FROM THE METADATA DRIVE: " +
                     std::to_string(after.metadata_bytes - before.metadata_bytes));
    lines_.push_back("BYTES READ FROM THE VALUES DRIVE: " +
                     std::to_string(after.values_bytes - before.values_bytes));
    lines_.push_back("EXECUTION TIME: " + std::to_string(took.count()) + "µs");
    return ok();
  }

  const std::unique_ptr<SelectRows> rows_;
  const bool analyze_;
  std::vector<std::string> lines_;
  std::size_t next_ = 0;
  bool has_begun_ = false;
};

}  // namespace

Result<std::unique_ptr<RowSource>> explain_select(std::unique_ptr<SelectStatement> statement,
                                                  const Asking& asking,
                                                  query::QueryService& service, bool analyze) {
  auto rows = std::make_unique<SelectRows>(service, asking);
  EC_TRY(rows->prepare(std::move(statement), false));
  return std::unique_ptr<RowSource>(std::make_unique<ExplainRows>(std::move(rows), analyze));
}

Result<std::unique_ptr<RowSource>> run_select(std::unique_ptr<SelectStatement> statement,
                                              const Asking& asking, query::QueryService& service) {
  auto rows = std::make_unique<SelectRows>(service, asking);
  EC_TRY(rows->prepare(std::move(statement), true));
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace edgecase::influxql
