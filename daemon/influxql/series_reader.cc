#include "influxql/series_reader.h"

#include <algorithm>
#include <utility>

#include "influxql/points.h"

namespace edgecase::influxql {
namespace {

constexpr std::size_t kReaderBytes = sizeof(SeriesReader) + 192;

bool is_number_kind(Cell::Kind kind) {
  return kind == Cell::Kind::Float || kind == Cell::Kind::Integer;
}

}  // namespace

SeriesReader::SeriesReader(ReadingAccount& account, catalog::SeriesRow row,
                           const catalog::SeriesId& series, const TimeSpan& span,
                           bool is_descending, Cell::Kind kind, std::int64_t every_ns,
                           const TierField& field)
    : account_(account),
      row_(row),
      series_(series),
      span_(span),
      is_descending_(is_descending),
      kind_(kind),
      every_ns_(every_ns),
      field_(field),
      is_done_(span.from_ns > span.to_ns || kind == Cell::Kind::Null) {}

Status SeriesReader::begin() {
  if (held_bytes_ == 0) EC_TRY(account_.spending().hold(kReaderBytes));
  held_bytes_ = kReaderBytes;
  account_.begin(*this);
  is_begun_ = true;
  return ok();
}

void SeriesReader::wait_for_turn() {
  account_.end(*this);
  is_begun_ = false;
}

SeriesReader::~SeriesReader() {
  close_scan();
  if (is_begun_) account_.end(*this);
  account_.spending().release(held_bytes_);
}

void SeriesReader::open_scan() {
  ReadOptions options;
  options.direction = is_descending_ ? Direction::Reverse : Direction::Forward;
  options.large_value_bytes = query::kLargeTextBytes;
  options.fill_cache = span_.has_from();
  const query::Reach* const reach = account_.asking().reach;
  options.patience = reach == nullptr ? nullptr : reach->patience;
  query::TimeRange range;
  range.from_ns = span_.from_ns;
  // No window holds what lies behind InfluxDB's last time.
  if (is_fed_ || span_.has_to()) range.to_ns = span_.to_ns + 1;
  options.passes_drive_away = tells_lacks_;
  options.summaries = is_fed_ && is_number_kind(kind_) && account_.readers() <= kOpenScansMax;
  query::QueryService& service = account_.service();
  query::TierReading tiers;
  const retention::TierMarks* const marks = service.marks();
  if (field_.every_ns > 0) {
    tiers = query::read_windows(service.engine(), marks, field_.every_ns, field_.column);
    // `series_` is that of the windows; marks are of the readings'.
    const auto entry = service.catalog().series_at(row_);
    if (marks != nullptr && entry.ok())
      query::note_windows(*marks, entry->id, range.from_ns, field_.every_ns, account_.tiers());
  } else if (marks != nullptr && marks->latest_ns() > range.from_ns) {
    // Any aggregate will do: which columns there are is all one here.
    std::optional<wire::Aggregate> aggregate;
    const bool may_be_windows =
        is_fed_ && every_ns_ > 0 && is_number_kind(kind_) && account_.readers() <= kOpenScansMax;
    if (may_be_windows) aggregate = wire::Aggregate::Count;
    tiers = query::read_tiers(service.engine(), *marks, range.from_ns, every_ns_, aggregate);
    tiers.columns = query::kAllTierColumns;
    // From the end on few reach so far back.
    if (may_be_windows || !is_descending_)
      query::note_tiers(service.engine(), *marks, series_, range, every_ns_, aggregate,
                        account_.tiers());
  }
  scan_.emplace(service.engine(), service.catalog(), std::vector<catalog::SeriesRow>{row_}, range,
                options, std::move(tiers));
}

void SeriesReader::close_scan() {
  if (scan_) {
    account_.leave_out(scan_->damaged().left_out);
    for (const query::Damaged::Range& each : scan_->damaged().of_series) add_range(each, lacks_);
  }
  scan_.reset();
}

bool SeriesReader::lacks(const Window& window) const {
  const auto is_lacking = [&](const std::vector<query::Damaged::Range>& damaged) {
    return query::lack_of(damaged, window.from_ns, window.end_ns - 1) != wire::Lack::Nothing;
  };
  return is_lacking(lacks_) || (scan_ && is_lacking(scan_->damaged().of_series));
}

std::optional<std::int64_t> SeriesReader::next_lack(std::optional<std::int64_t> told_ns) const {
  query::LackBounds bounds;
  if (span_.has_from()) bounds.first_ns = span_.from_ns;
  bounds.last_ns = span_.has_to() ? span_.to_ns : account_.asking().now_ns;
  bounds.told_ns = told_ns;
  bounds.is_descending = is_descending_;
  const auto closed = query::next_lack(lacks_, bounds);
  const auto open =
      scan_ ? query::next_lack(scan_->damaged().of_series, bounds) : std::optional<std::int64_t>();
  if (!closed || !open) return closed ? closed : open;
  return is_descending_ ? std::max(*closed, *open) : std::min(*closed, *open);
}

void SeriesReader::let_go() {
  if (scan_) static_cast<void>(scan_->let_go());
}

// What was held side by side is taken one by one.
void SeriesReader::to_held() {
  next_ = 0;
  count_ = many_times_ns_.size() - next_of_many_;
  held_.resize(std::max(held_.size(), count_));
  for (std::size_t i = 0; i < count_; ++i, ++next_of_many_) {
    held_[i].time_ns = many_times_ns_[next_of_many_];
    many_.get(next_of_many_, held_[i].cell);
  }
}

void SeriesReader::forget_answered() {
  if (next_of_many_ < many_times_ns_.size()) {
    const std::size_t first = next_of_many_ > 0 ? next_of_many_ - 1 : 0;
    const auto [oldest_ns, newest_ns] = std::minmax(many_times_ns_[first], many_times_ns_.back());
    oldest_ns_ = oldest_ns;
    newest_ns_ = newest_ns;
    return;
  }
  if (next_ >= count_) {
    // A point that was made of the last one may be held still.
    has_read_ = has_read_ && count_ > 0;
    if (has_read_) oldest_ns_ = newest_ns_ = held_[count_ - 1].time_ns;
    return;
  }
  const std::size_t first = next_ > 0 ? next_ - 1 : 0;
  oldest_ns_ = std::min(held_[first].time_ns, held_[count_ - 1].time_ns);
  newest_ns_ = std::max(held_[first].time_ns, held_[count_ - 1].time_ns);
}

Result<bool> SeriesReader::has_reading() {
  if (next_of_many_ < many_times_ns_.size()) to_held();
  if (next_ < count_) return true;
  if (!is_done_) EC_TRY(fill());
  return next_ < count_;
}

Result<bool> SeriesReader::take_many(std::vector<std::int64_t>& times_ns,
                                     NumberRows::Column& numbers) {
  if (!is_number_kind(kind_)) return false;
  if (next_ < count_) {
    for (; next_ < count_; ++next_) {
      times_ns.push_back(held_[next_].time_ns);
      numbers.add(held_[next_].cell);
    }
    return true;
  }
  // Few are wanted at first.
  if (is_done_ || batch_ < kBatchMax || account_.readers() > kOpenScansMax) return false;
  EC_TRY(wake_scan());
  if (is_done_ || !scan_->valid() || scan_->is_on_window()) return false;
  scan_->read_group();
  if (!scan_->valid()) return false;
  static_cast<void>(scan_->numbers());
  const wire::Numbers held = held_numbers();
  if (held.empty()) return false;
  count_ = next_ = 0;
  times_ns.insert(times_ns.end(), held.times_ns.begin(), held.times_ns.end());
  numbers.bits.insert(numbers.bits.end(), held.bits.begin(), held.bits.end());
  numbers.has.resize(numbers.bits.size(), 1);
  EC_TRY(step_over(held));
  return true;
}

Result<bool> SeriesReader::hold_many() {
  if (next_of_many_ < many_times_ns_.size()) return true;
  many_times_ns_.clear();
  many_.bits.clear();
  many_.has.clear();
  many_.kind = kind_;
  next_of_many_ = 0;
  EC_ASSIGN_OR_RETURN(const bool has_many, take_many(many_times_ns_, many_));
  if (has_many) return true;
  EC_ASSIGN_OR_RETURN(const bool has_one, has_reading());
  return has_one ? take_many(many_times_ns_, many_) : has_one;
}

Status SeriesReader::wake_scan() {
  if (!has_read_) before_reading_ = query::GivenReadings(account_.service().engine());
  if (scan_) {
    EC_TRY(scan_->wake().status());
    static_cast<void>(scan_->has_moved());  // between two windows
    return ok();
  }
  open_scan();
  EC_ASSIGN_OR_RETURN(const bool is_there, scan_->next_series());
  is_done_ = !is_there;
  return ok();
}

// Both included, in either order.
void SeriesReader::note_read(std::int64_t first_ns, std::int64_t last_ns) {
  const auto [oldest_ns, newest_ns] = std::minmax(first_ns, last_ns);
  oldest_ns_ = has_read_ ? std::min(oldest_ns_, oldest_ns) : oldest_ns;
  newest_ns_ = has_read_ ? std::max(newest_ns_, newest_ns) : newest_ns;
  has_read_ = true;
}

Result<std::optional<std::int64_t>> SeriesReader::next_time() {
  const std::optional<std::int64_t> none;
  if (next_ < count_) return std::optional(time_ns());
  if (is_done_) return none;
  if (account_.readers() > kOpenScansMax && !(scan_ && scan_->is_on_sum())) {
    EC_ASSIGN_OR_RETURN(const bool has_one, has_reading());
    return has_one ? std::optional(time_ns()) : none;
  }
  EC_TRY(wake_scan());
  if (is_done_) return none;
  if (scan_->valid()) return std::optional(scan_->time_ns());
  EC_TRY(scan_->status());
  is_done_ = true;
  close_scan();
  return none;
}

Status SeriesReader::feed(const Window& window, ValueTaker& taker) {
  for (;;) {
    EC_ASSIGN_OR_RETURN(const auto next_ns, next_time());
    if (!next_ns || !window.contains(*next_ns)) return ok();
    if (next_ == count_) {
      EC_TRY(feed_from_scan(window, taker));
    } else {
      EC_TRY(taker.take(time_ns(), cell()));
      has_fed_ = true;
      pop();
    }
    if (!is_edge_ || !has_fed_) continue;
    next_ = count_;
    is_done_ = true;
    close_scan();
  }
}

wire::Numbers SeriesReader::held_numbers() const {
  if (next_ < count_ || is_done_ || !scan_ || !is_number_kind(kind_)) return {};
  const wire::Numbers numbers = scan_->held_numbers();
  return numbers.is_float == (kind_ == Cell::Kind::Float) ? numbers : wire::Numbers();
}

Status SeriesReader::step_over(const wire::Numbers& taken) {
  EC_TRY(account_.count_points(taken.size()));
  note_read(taken.times_ns.front(), taken.times_ns.back());
  EC_TRY(scan_->go_on(taken.size()));
  scan_->skip(taken.size());
  return check_moved();
}

std::span<const WindowSums::Window> SeriesReader::held_sums() const {
  if (next_ < count_ || is_done_ || !scan_) return {};
  return scan_->held_sums();
}

Status SeriesReader::step_over(std::span<const WindowSums::Window> taken) {
  std::uint64_t count = 0;
  for (const WindowSums::Window& each : taken) count += each.count;
  EC_TRY(account_.count_points(count));
  note_read(scan_->time_ns(), scan_->time_of_sum(taken.size()) - 1);
  EC_TRY(scan_->go_on(count));
  scan_->skip_sums(taken.size());
  return check_moved();
}

// What is at hand of the window, at least one step of it.
Status SeriesReader::feed_from_scan(const Window& window, ValueTaker& taker) {
  if (scan_->is_on_window()) return feed_from_tier(taker);
  const std::int64_t last_ns = window.end_ns - 1;
  const bool is_float = kind_ == Cell::Kind::Float;
  NumberSummary summary;
  if (is_float && taker.takes_sums() && is_amid_windows(window) &&
      scan_->reach_sum(window.from_ns, window.end_ns - window.from_ns))
    return feed_sum(window, taker);
  const bool has_summary = scan_->take_summary(
      is_descending_ ? window.from_ns : last_ns, summary, [&](const NumberSummary& known) {
        return (known.type == NumberType::Float) == is_float && taker.takes(known);
      });
  if (has_summary) {
    EC_TRY(account_.count_group(summary.count));
    note_read(wire::time_of_ordinal(summary.first_ordinal),
              wire::time_of_ordinal(summary.last_ordinal));
    EC_TRY(scan_->go_on());
    has_fed_ = true;
    return taker.take(summary);
  }
  // An edge is one reading, taken alone: memory has thousands at hand.
  const bool takes_many = is_number_kind(kind_) && !is_edge_;
  const wire::Numbers numbers = takes_many ? scan_->numbers() : wire::Numbers();
  // What is damaged it has stepped over.
  if (!scan_->valid() || !window.contains(scan_->time_ns())) return ok();
  if (!numbers.empty() && numbers.is_float == is_float) {
    const std::size_t count = numbers.count_within(window.from_ns, last_ns);
    const wire::Numbers taken = numbers.first(count);
    EC_TRY(taker.take(taken));
    has_fed_ = true;
    return step_over(taken);
  }
  Held held;
  EC_ASSIGN_OR_RETURN(const bool is_value, read_reading(held));
  if (is_value) EC_TRY(taker.take(held.time_ns, held.cell));
  has_fed_ = has_fed_ || is_value;
  EC_TRY(scan_->go_on());
  scan_->next();
  return check_moved();
}

// InfluxDB's first and last windows are cut short.
bool SeriesReader::is_amid_windows(const Window& window) const {
  if (is_descending_ || window.from_ns < kMinTime / 2 || window.end_ns > kMaxTime / 2) return false;
  const std::int64_t two_ns = 2 * (window.end_ns - window.from_ns);
  return two_ns < kMaxTime / 2 && span_.to_ns < kMaxTime - two_ns;
}

// Where it has come to what a group's numbers in a window add up to.
Status SeriesReader::feed_sum(const Window& window, ValueTaker& taker) {
  // What was let go of meanwhile, or begins elsewhere, is taken in the next turn.
  if (!window.contains(scan_->time_ns())) return ok();
  NumberSummary sum;
  scan_->take_sum(sum);
  EC_TRY(account_.count_points(sum.count));
  note_read(wire::time_of_ordinal(sum.first_ordinal), wire::time_of_ordinal(sum.last_ordinal));
  EC_TRY(taker.take(sum));
  has_fed_ = true;
  EC_TRY(scan_->go_on(sum.count));
  scan_->next();
  return check_moved();
}

// The window of a tier where it stands; one that a function cannot do with is told of.
Status SeriesReader::feed_from_tier(ValueTaker& taker) {
  if (field_.every_ns > 0) {
    Held held;
    EC_ASSIGN_OR_RETURN(const bool is_value, read_window(held));
    if (is_value) EC_TRY(taker.take(held.time_ns, held.cell));
    has_fed_ = has_fed_ || is_value;
    EC_TRY(scan_->go_on());
    scan_->next();
    return ok();
  }
  const query::TierWindow& window = scan_->window();
  const std::int64_t last_ns = scan_->window_last_ns();
  const auto summary = summary_of(window, last_ns, kind_);
  if (summary && taker.takes(*summary)) {
    EC_TRY(account_.count_group(summary->count));
    note_read(window.begin_ns, last_ns);
    EC_TRY(taker.take(*summary));
    has_fed_ = true;
  } else {
    query::TierNote& note = account_.tiers();
    note.missed_ns.insert(last_ns - window.begin_ns + 1);
    note.missed_before_ns = std::max(note.missed_before_ns, last_ns + 1);
  }
  EC_TRY(scan_->go_on());
  scan_->next();
  return check_moved();
}

// What a function has taken of a window it cannot take back.
Status SeriesReader::check_moved() {
  if (!scan_->has_moved()) return ok();
  return busy("readings became windows while they were read: ask again");
}

// The column of the window where it stands. False: that has none, or of another type.
Result<bool> SeriesReader::read_window(Held& held) {
  held.time_ns = scan_->time_ns();
  EC_TRY(account_.count_points(1));
  const auto value = wire::value_of(scan_->window(), field_.column);
  if (!value) return false;
  set_cell(*value, held.cell);
  cast_cell(held.cell, kind_);
  if (held.cell.kind == Cell::Kind::Null) return false;
  note_read(held.time_ns, scan_->window_last_ns());
  return true;
}

// Where the scan stands. False: it is of another type, or damaged.
Result<bool> SeriesReader::read_reading(Held& held) {
  held.time_ns = scan_->time_ns();
  EC_TRY(account_.count_points(1));
  const Result<bool> is_value = read_value(held.cell);
  if (is_value.status().code() == StatusCode::Corruption) {
    scan_->leave_out(is_value.status());
    return false;
  }
  if (is_value.ok() && *is_value) note_read(held.time_ns, held.time_ns);
  return is_value;
}

Status SeriesReader::fill() {
  next_ = count_ = 0;
  account_.spending().release(held_bytes_ - kReaderBytes);
  held_bytes_ = kReaderBytes;
  EC_TRY(wake_scan());
  const std::size_t readers = std::max<std::size_t>(account_.readers(), 1);
  const std::size_t most = std::clamp<std::size_t>(kHeldReadings / readers, 1, batch_);
  batch_ = std::min(batch_ * 4, kBatchMax);
  std::size_t text_bytes = 0;
  while (!is_done_ && count_ < most && text_bytes <= kBatchTextBytes && scan_->valid()) {
    if (scan_->is_on_window()) {
      bool has_column = false;  // else none was asked for here
      if (field_.every_ns > 0) {
        if (held_.size() == count_) held_.emplace_back();
        EC_ASSIGN_OR_RETURN(has_column, read_window(held_[count_]));
        EC_TRY(scan_->go_on());
      }
      if (has_column) ++count_;
      scan_->next();
      continue;
    }
    scan_->read_group();
    if (!scan_->valid()) break;
    if (held_.size() == count_) held_.emplace_back();
    Held& held = held_[count_];
    EC_ASSIGN_OR_RETURN(const bool is_value, read_reading(held));
    if (is_value) {
      ++count_;
      text_bytes += held.cell.kind == Cell::Kind::Text ? held.cell.text.size() : 0;
    }
    EC_TRY(scan_->go_on());
    scan_->next();
    // Few readings are wanted at first, of which a group has hundreds.
    if (batch_ == kBatchMax) static_cast<void>(scan_->numbers());
  }
  EC_TRY(scan_->status());
  EC_TRY(account_.spending().hold(text_bytes));
  held_bytes_ += text_bytes;
  if (!scan_->valid()) {
    is_done_ = true;
    close_scan();
  } else if (account_.readers() > kOpenScansMax && count_ > 0) {
    const std::int64_t last_ns = held_[count_ - 1].time_ns;
    (is_descending_ ? span_.to_ns : span_.from_ns) = is_descending_ ? last_ns - 1 : last_ns + 1;
    close_scan();
  }
  return ok();
}

Result<bool> SeriesReader::read_value(Cell& cell) {
  wire::Value value;
  EC_TRY(scan_->value(value));
  if (scan_->is_large()) {
    if (kind_ != Cell::Kind::Text) return false;
    EC_TRY(read_large(cell));
    return cell.kind == Cell::Kind::Text;
  }
  set_cell(value, cell);
  cast_cell(cell, kind_);
  return cell.kind != Cell::Kind::Null;
}

Status SeriesReader::read_large(Cell& cell) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<query::LargeText> large, scan_->large_text());
  cell.kind = Cell::Kind::Null;
  if (large->kind().type != wire::ValueType::Text) return ok();
  if (large->size_bytes() > kTextMaxBytes)
    return limit_reached("a text of " + std::to_string(large->size_bytes()) +
                         " bytes is too long for SELECT: GET /api/v1/query streams it");
  cell.kind = Cell::Kind::Text;
  cell.text.clear();
  for (;;) {
    EC_ASSIGN_OR_RETURN(const std::string_view piece, large->next_piece());
    if (piece.empty()) return ok();
    cell.text += piece;
  }
}

}  // namespace edgecase::influxql
