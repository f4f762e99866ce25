#include "query/cursors.h"

#include <algorithm>
#include <limits>

namespace edgecase::query {
namespace {

constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();

void name_reading(const catalog::SeriesEntry& series, std::int64_t time_ns,
                  wire::Reading& reading) {
  reading.namespace_name = series.namespace_name;
  reading.device = series.device;
  reading.sensor = series.sensor;
  reading.identity = nullptr;
  reading.lack = wire::Lack::Nothing;
  reading.time_ns = time_ns;
}

}  // namespace

std::int64_t window_start(std::int64_t time_ns, std::int64_t every_ns) {
  std::int64_t into = time_ns % every_ns;
  if (into < 0) into += every_ns;
  std::int64_t start = 0;
  return __builtin_sub_overflow(time_ns, into, &start) ? kFirstTime : start;
}

Result<bool> StoredCursor::next(wire::Reading& reading) {
  large_.reset();
  EC_ASSIGN_OR_RETURN(bool stands, limit_ == 0 ? Result<bool>(false) : scan_.wake());
  while (limit_ > 0) {
    if (positioned_ && series_left_ > 0 && stands) {
      scan_.next();
      // A second one was asked for: more will be.
      static_cast<void>(scan_.numbers());
    }
    stands = true;
    while (!scan_.valid() || series_left_ == 0) {
      EC_TRY(scan_.status());
      EC_ASSIGN_OR_RETURN(const bool more, scan_.next_series());
      if (!more) {
        scan_.close();
        limit_ = 0;
        return false;
      }
      series_left_ = series_limit_;
    }
    positioned_ = true;
    if (series_limit_ == 1 && !scan_.damaged().of_series.empty()) {
      // Where a newer one is lost, none that can be read is the newest.
      series_left_ = 0;
      continue;
    }
    const Status read = read_value(reading);
    if (read.code() == StatusCode::Corruption) {
      scan_.leave_out(read);
      continue;
    }
    EC_TRY(read);
    name_reading(scan_.series(), scan_.time_ns(), reading);
    identity_.body = scan_.series().identity;
    reading.identity = identity_.body.empty() ? nullptr : &identity_;
    given_.add(scan_.series().id, *reading.time_ns, *reading.time_ns);
    large_time_ns_ = *reading.time_ns;
    ++account_.readings_decoded;
    --series_left_;
    --limit_;
    return true;
  }
  scan_.close();
  return false;
}

// What is revoked from now on is what was given.
wire::Numbers StoredCursor::take_numbers(std::size_t most) {
  if (!positioned_ || scan_.is_overtaken()) return {};
  const wire::Numbers behind = scan_.numbers_behind();
  const std::uint64_t wanted = std::min({std::uint64_t{most}, limit_, series_left_});
  const wire::Numbers taken =
      behind.first(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, behind.size())));
  if (taken.empty()) return {};
  scan_.stand_on(taken.size());
  const auto [first_ns, last_ns] = std::minmax(taken.times_ns.front(), taken.times_ns.back());
  given_.add(scan_.series().id, first_ns, last_ns);
  limit_ -= taken.size();
  series_left_ -= taken.size();
  account_.readings_decoded += taken.size();
  return taken;
}

Status StoredCursor::read_value(wire::Reading& reading) {
  EC_TRY(scan_.value(reading.value));
  if (!scan_.is_large()) return ok();
  EC_ASSIGN_OR_RETURN(large_, scan_.large_text());
  reading.value = large_->kind();
  return ok();
}

// Takes what was given so far; a large text, whose pieces are yet to come, stays watched.
GivenReadings StoredCursor::take_given() {
  GivenReadings fresh(scan_.engine());
  if (large_ != nullptr && !given_.is_revoked())
    fresh.add(scan_.series().id, large_time_ns_, large_time_ns_);
  return std::exchange(given_, std::move(fresh));
}

// What the aggregator keeps lies in another place than the scan, which does not come back to it:
// where that was overtaken, a large text ends there.
void WindowCursor::let_go() {
  LargeText* const large = aggregator_.large_text();
  if (large != nullptr && !scan_.is_overtaken()) return;
  if (scan_.let_go() && large != nullptr) large->let_go();
}

// The time of a reading, or of a window that lacks some, whichever comes first. None: there is none
// left.
std::optional<std::int64_t> WindowCursor::next_time() const {
  std::optional<std::int64_t> lack_ns;
  if (options_.lacks_to_ns)
    lack_ns = next_lack(scan_.damaged().of_series,
                        {options_.from_ns, *options_.lacks_to_ns, ended_ns_, options_.descending});
  if (!scan_.valid()) return lack_ns;
  const std::int64_t time_ns = scan_.time_ns();
  if (!lack_ns) return time_ns;
  return options_.descending ? std::max(time_ns, *lack_ns) : std::min(time_ns, *lack_ns);
}

void WindowCursor::end_window() {
  ended_ns_ = options_.descending ? window_first_ns_ : window_last_ns_;
  scan_.forget_damage(*ended_ns_);
}

void WindowCursor::open_window(std::int64_t time_ns) {
  aggregator_.clear();
  extremes_.clear();
  oldest_ns_ = newest_ns_ = time_ns;
  revocations_ = scan_.engine().revocations();
  if (options_.every_ns == 0) {
    window_first_ns_ = kFirstTime;
    window_last_ns_ = kLastTime;
    row_time_ns_ = options_.from_ns.value_or(time_ns);
    return;
  }
  window_first_ns_ = window_start(time_ns, options_.every_ns);
  row_time_ns_ = window_first_ns_;
  // Counted from `time_ns`, as the start may be cut off by the beginning of time.
  std::int64_t into = time_ns % options_.every_ns;
  if (into < 0) into += options_.every_ns;
  const std::int64_t left = options_.every_ns - into - 1;
  if (__builtin_add_overflow(time_ns, left, &window_last_ns_)) window_last_ns_ = kLastTime;
}

// Takes in what belongs to the window; stops at the first reading that does not.
Status WindowCursor::fill_window() {
  while (scan_.valid()) {
    if (!is_in_window(scan_.time_ns())) break;
    if (scan_.is_on_window()) {
      aggregator_.add(scan_.window());
      note_time(scan_.time_ns());
      ++account_.windows_from_tiers;
      EC_TRY(scan_.go_on());
      scan_.next();
      if (scan_.has_moved() || is_window_revoked()) EC_TRY(begin_window_anew());
      continue;
    }
    if (takes_sums() && scan_.reach_sum(window_first_ns_, options_.every_ns)) {
      // Where it was let go of meanwhile, it may stand behind the window.
      if (!is_in_window(scan_.time_ns())) break;
      take_sum();
      EC_TRY(scan_.go_on());
      scan_.next();
      if (scan_.has_moved() || is_window_revoked()) EC_TRY(begin_window_anew());
      continue;
    }
    if (take_summary()) {
      EC_TRY(scan_.go_on());
      if (is_window_revoked()) EC_TRY(begin_window_anew());
      continue;
    }
    const wire::Numbers numbers = scan_.numbers();
    if (!scan_.valid()) break;
    const std::int64_t time_ns = scan_.time_ns();
    if (!is_in_window(time_ns)) break;
    const std::size_t count =
        numbers.empty() ? 1 : numbers.count_within(window_first_ns_, window_last_ns_);
    note_time(time_ns);
    if (!numbers.empty()) note_time(numbers.times_ns[count - 1]);
    account_.readings_decoded += count;
    if (numbers.empty()) {
      const Status added = add_reading();
      if (added.code() == StatusCode::Corruption) {
        scan_.leave_out(added);
      } else {
        EC_TRY(added);
      }
    } else if (is_of_extremes()) {
      extremes_.add(numbers.first(count));
    } else {
      aggregator_.add(numbers.first(count));
    }
    EC_TRY(scan_.go_on(count));
    scan_.skip(count);
    if (scan_.has_moved() || is_window_revoked()) EC_TRY(begin_window_anew());
  }
  return scan_.status();
}

void WindowCursor::note_time(std::int64_t time_ns) {
  const bool moves_row = options_.every_ns == 0 && !options_.from_ns.has_value();
  if (moves_row) row_time_ns_ = std::min(row_time_ns_, time_ns);
  oldest_ns_ = std::min(oldest_ns_, time_ns);
  newest_ns_ = std::max(newest_ns_, time_ns);
}

// Whether what a group's numbers in a window add up to will do. The first windows of all and the
// last are cut short.
bool WindowCursor::takes_sums() const {
  const bool adds_up = options_.aggregate == wire::Aggregate::Mean ||
                       options_.aggregate == wire::Aggregate::Sum ||
                       options_.aggregate == wire::Aggregate::Count;
  return adds_up && !options_.descending && options_.every_ns > 0 &&
         options_.every_ns < kLastTime / 8 && window_first_ns_ > kFirstTime / 2 &&
         window_last_ns_ < kLastTime / 2;
}

void WindowCursor::take_sum() {
  NumberSummary sum;
  scan_.take_sum(sum);
  aggregator_.add(sum);
  note_time(wire::time_of_ordinal(sum.first_ordinal));
  note_time(wire::time_of_ordinal(sum.last_ordinal));
  account_.readings_decoded += sum.count;  // by whoever asked before
}

// Whether the scan stood on a group that lies within the window and is told of unread.
bool WindowCursor::take_summary() {
  NumberSummary summary;
  if (!scan_.take_summary(options_.descending ? window_first_ns_ : window_last_ns_, summary))
    return false;
  aggregator_.add(summary);
  note_time(wire::time_of_ordinal(summary.first_ordinal));
  note_time(wire::time_of_ordinal(summary.last_ordinal));
  ++account_.groups_from_metadata;
  account_.readings_from_metadata += summary.count;
  return true;
}

bool WindowCursor::is_window_revoked() {
  const std::uint64_t count = scan_.engine().revocations();
  if (count == revocations_) return false;
  const catalog::SeriesId& id = scan_.series().id;
  const bool is_revoked = scan_.engine().is_revoked(
      id.namespace_id, wire::make_reading_key({id.device, id.sensor, oldest_ns_}),
      wire::make_reading_key({id.device, id.sensor, newest_ns_}), revocations_);
  if (!is_revoked) revocations_ = count;
  return is_revoked;
}

// What was taken in is gone: of the window what is left counts, and where nothing is, that of the
// next one.
Status WindowCursor::begin_window_anew() {
  EC_TRY(scan_.status());
  const std::int64_t edge_ns = options_.descending ? window_last_ns_ : window_first_ns_;
  aggregator_.clear();
  extremes_.clear();
  revocations_ = scan_.engine().revocations();
  EC_TRY(scan_.seek(edge_ns));
  if (scan_.valid()) open_window(scan_.time_ns());
  return ok();
}

Status WindowCursor::add_reading() {
  if (!aggregator_.needs_values()) {
    aggregator_.add_without_value();
    return ok();
  }
  wire::Value value;
  EC_TRY(scan_.value(value));
  if (scan_.is_large() && aggregator_.keeps_next()) {
    EC_ASSIGN_OR_RETURN(std::unique_ptr<LargeText> large, scan_.large_text());
    aggregator_.add(std::move(large));
  } else if (is_of_extremes()) {
    extremes_.add(scan_.time_ns(), value);
  } else {
    aggregator_.add(value);
  }
  return ok();
}

// The next reading of the current window. False: there is none, or something of the window was
// revoked since.
bool WindowCursor::take_extreme(wire::Reading& reading) {
  if (pending_.empty() || is_window_revoked()) {
    pending_ = {};
    return false;
  }
  reading.value = pending_.front().value;
  name_reading(scan_.series(), pending_.front().time_ns, reading);
  given_.add(scan_.series().id, oldest_ns_, newest_ns_);
  pending_ = pending_.subspan(1);
  --limit_;
  return true;
}

Result<bool> WindowCursor::next(wire::Reading& reading) {
  EC_TRY(scan_.wake().status());
  static_cast<void>(scan_.has_moved());  // to the beginning of the window that is next
  while (limit_ > 0) {
    if (take_extreme(reading)) return true;
    const auto time_ns = next_time();
    if (!time_ns) {
      EC_TRY(scan_.status());
      EC_ASSIGN_OR_RETURN(const bool more, scan_.next_series());
      if (!more) break;
      ended_ns_.reset();
      continue;
    }
    open_window(*time_ns);
    EC_TRY(fill_window());
    // What is lost of a window would make its row a wrong one.
    const wire::Lack lack = lack_of(scan_.damaged().of_series, window_first_ns_, window_last_ns_);
    end_window();
    if (lack != wire::Lack::Nothing) {
      if (!options_.lacks_to_ns) continue;
      EC_TRY(check_limit(kWindowsLimit, ++windows_, options_.windows_max));
      aggregator_.clear();  // with the large text that it may have kept
      name_reading(scan_.series(), row_time_ns_, reading);
      reading.value = wire::Value();
      reading.lack = lack;
      --limit_;
      return true;
    }
    if (is_of_extremes()) {
      pending_ = extremes_.result();
      if (!pending_.empty()) EC_TRY(check_limit(kWindowsLimit, ++windows_, options_.windows_max));
      continue;
    }
    if (!aggregator_.result(reading.value)) continue;
    EC_TRY(check_limit(kWindowsLimit, ++windows_, options_.windows_max));
    name_reading(scan_.series(), row_time_ns_, reading);
    given_.add(scan_.series().id, oldest_ns_, newest_ns_);
    --limit_;
    return true;
  }
  limit_ = 0;
  scan_.close();
  return false;
}

}  // namespace edgecase::query
