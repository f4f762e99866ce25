// The readings of one series as values of a type, some at once: where many series are read side by
// side, none keeps its scan open meanwhile. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "influxql/executor.h"
#include "influxql/points.h"
#include "influxql/time_windows.h"
#include "query/left_out.h"
#include "query/query_service.h"
#include "query/series_scan.h"
#include "wire/tiers.h"

namespace edgecase::influxql {

// A column of the windows that a tier keeps of a series.
struct TierField {
  std::int64_t every_ns = 0;  // 0: readings
  wire::WindowColumn column = wire::WindowColumn::Count;
};

class SeriesReader {
 public:
  // Up to so many readers keep their scans open.
  static constexpr std::size_t kOpenScansMax = 64;
  // Readings that all readers hold together, as far as each holds one.
  static constexpr std::size_t kHeldReadings = 16'384;
  static constexpr std::size_t kBatchMax = 256;
  static constexpr std::size_t kBatchTextBytes = 16u << 10;
  // Longer texts are refused; /api/v1/query streams them.
  static constexpr std::uint64_t kTextMaxBytes = 4u << 20;

  // `kind`: what values become; those of another type are passed over. `every_ns`: functions take
  // windows that are multiples of it, so that tiers may stand for readings that are gone; 0: none
  // may. With a TierField it reads that in place of readings.
  SeriesReader(ReadingAccount& account, catalog::SeriesRow row, const catalog::SeriesId& series,
               const TimeSpan& span, bool is_descending, Cell::Kind kind, std::int64_t every_ns,
               const TierField& field = {});
  ~SeriesReader();
  SeriesReader(const SeriesReader&) = delete;
  SeriesReader& operator=(const SeriesReader&) = delete;

  // LimitReached: too many are read at once.
  Status begin();
  // Behind that, before anything is read: it is none of these until begin() comes once more.
  void wait_for_turn();
  // Whether there is one at hand; reads on where it must.
  Result<bool> has_reading();
  std::int64_t time_ns() const { return held_[next_].time_ns; }
  const Cell& cell() const { return held_[next_].cell; }
  void pop() { ++next_; }
  // In place of those: the readings that come, where they are numbers at hand. False: has_reading()
  // has the next one.
  Result<bool> take_many(std::vector<std::int64_t>& times_ns, NumberRows::Column& numbers);
  // The same, kept here until they are popped, where all that comes is numbers. False: there are
  // none left.
  Result<bool> hold_many();
  wire::Numbers many() const {
    return wire::Numbers{many_times_ns_, many_.bits, kind_ == Cell::Kind::Float}.from(
        next_of_many_);
  }
  void pop_many(std::size_t count) { next_of_many_ += count; }
  // Otherwise few are read at first.
  void expect_all() { batch_ = kBatchMax; }
  // In place of that, for WindowFeed: a time before which (against the order of time: behind which)
  // there is no reading, none: there is none left; and to give all readings of a window, which
  // holds that time.
  Result<std::optional<std::int64_t>> next_time();
  Status feed(const Window& window, ValueTaker& taker);
  // Behind that: numbers that it holds already, from next_time() on, if all are of its type; and to
  // step over the first of them, which somebody has `taken`. Asked once more it may have none: what
  // is erased meanwhile is read anew.
  wire::Numbers held_numbers() const;
  // The same of sums of windows, of which none lies elsewhere in part, where functions take sums.
  std::span<const WindowSums::Window> held_sums() const;
  Status step_over(std::span<const WindowSums::Window> taken);
  // Before that: the first value alone is wanted.
  void expect_edge() { is_edge_ = true; }
  Status step_over(const wire::Numbers& taken);
  // Before that. `tells_lacks`: what lies on a drive that is away is passed over, as what is
  // damaged is. Where windows lack it: whether this one does, and the next time at which one does
  // behind (against the order of time: before) `told_ns`.
  void begin_feed(bool tells_lacks) {
    is_fed_ = true;
    tells_lacks_ = tells_lacks;
  }
  bool has_lacks() const {
    return tells_lacks_ && (!lacks_.empty() || (scan_ && !scan_->damaged().of_series.empty()));
  }
  bool lacks(const Window& window) const;
  std::optional<std::int64_t> next_lack(std::optional<std::int64_t> told_ns) const;

  // For the account.
  const catalog::SeriesId& series() const { return series_; }
  bool has_read() const { return has_read_; }
  std::int64_t oldest_ns() const { return oldest_ns_; }
  std::int64_t newest_ns() const { return newest_ns_; }
  const query::GivenReadings& before_reading() const { return before_reading_; }
  const query::LeftOut* left_out() const { return scan_ ? &scan_->damaged().left_out : nullptr; }
  void let_go();
  // Only what is held still counts as read.
  void forget_answered();

 private:
  friend class ReadingAccount;  // place_

  struct Held {
    std::int64_t time_ns = 0;
    Cell cell;
  };

  void open_scan();
  void close_scan();
  void to_held();
  Status wake_scan();
  Status fill();
  Status feed_from_scan(const Window& window, ValueTaker& taker);
  Status feed_from_tier(ValueTaker& taker);
  bool is_amid_windows(const Window& window) const;
  Status feed_sum(const Window& window, ValueTaker& taker);
  Result<bool> read_window(Held& held);
  Status check_moved();
  Result<bool> read_reading(Held& held);
  void note_read(std::int64_t first_ns, std::int64_t last_ns);
  // False: it is of another type.
  Result<bool> read_value(Cell& cell);
  Status read_large(Cell& cell);

  ReadingAccount& account_;
  std::size_t place_ = 0;  // among the account's
  const catalog::SeriesRow row_;
  const catalog::SeriesId series_;
  TimeSpan span_;  // what is left of it
  const bool is_descending_;
  const Cell::Kind kind_;
  const std::int64_t every_ns_;
  const TierField field_;
  bool is_fed_ = false, tells_lacks_ = false;
  bool is_edge_ = false, has_fed_ = false;
  std::vector<query::Damaged::Range> lacks_;  // of scans that were closed
  std::optional<query::SeriesScan> scan_;
  std::vector<Held> held_;  // its memory is used again
  std::size_t next_ = 0, count_ = 0;
  std::vector<std::int64_t> many_times_ns_;
  NumberRows::Column many_;
  std::size_t next_of_many_ = 0;
  std::size_t batch_ = 4;
  std::uint64_t held_bytes_ = 0;
  bool is_begun_ = false, is_done_ = false;
  bool has_read_ = false;
  std::int64_t oldest_ns_ = 0, newest_ns_ = 0;
  query::GivenReadings before_reading_;
};

}  // namespace edgecase::influxql
