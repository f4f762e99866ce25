// The two kinds of ReadingCursor: readings as they are stored, and aggregates of them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "query/aggregator.h"
#include "query/query_service.h"
#include "query/series_scan.h"
#include "wire/names.h"

namespace edgecase::query {

inline constexpr std::int64_t kFirstTime = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

class StoredCursor final : public ReadingCursor {
 public:
  // At most `limit` readings in all, and `series_limit` of each series.
  StoredCursor(SeriesScan scan, std::uint64_t limit, std::uint64_t series_limit)
      : scan_(std::move(scan)),
        given_(scan_.engine()),
        limit_(limit),
        series_limit_(series_limit) {}
  Result<bool> next(wire::Reading& reading) override;
  wire::Numbers take_numbers(std::size_t most) override;
  LargeText* large_text() override { return large_.get(); }
  void let_go() override {
    if (scan_.let_go() && large_ != nullptr) large_->let_go();
  }
  GivenReadings take_given() override;
  bool is_given_revoked() override { return given_.is_revoked(); }
  const LeftOut* left_out() const override { return &scan_.damaged().left_out; }
  ReadAccount account() const override { return account_; }

 private:
  Status read_value(wire::Reading& reading);

  SeriesScan scan_;
  wire::SeriesIdentity identity_;  // of the reading that was handed out
  GivenReadings given_;
  std::unique_ptr<LargeText> large_;  // of the reading that was handed out
  std::int64_t large_time_ns_ = 0;
  std::uint64_t limit_;
  const std::uint64_t series_limit_;
  std::uint64_t series_left_ = 0;
  bool positioned_ = false;  // on a reading that was handed out
  ReadAccount account_;
};

struct WindowOptions {
  wire::Aggregate aggregate = wire::Aggregate::Mean;
  std::int64_t every_ns = 0;            // 0: the whole range is one window
  std::optional<std::int64_t> from_ns;  // of the range, where it has a beginning
  bool descending = false;
  std::uint64_t windows_max = kNoLimit;
  // Windows that cannot be answered have rows without a value, where it is known that they lie
  // between `from_ns`, or the first reading that is known, and this time. Unset: they have none.
  std::optional<std::int64_t> lacks_to_ns;
};

class WindowCursor final : public ReadingCursor {
 public:
  WindowCursor(SeriesScan scan, const WindowOptions& options, std::uint64_t limit)
      : scan_(std::move(scan)),
        options_(options),
        limit_(limit),
        aggregator_(options.aggregate, options.descending),
        given_(scan_.engine()) {}
  Result<bool> next(wire::Reading& reading) override;
  LargeText* large_text() override { return aggregator_.large_text(); }
  void let_go() override;
  GivenReadings take_given() override {
    return std::exchange(given_, GivenReadings(scan_.engine()));
  }
  bool is_given_revoked() override { return given_.is_revoked(); }
  const LeftOut* left_out() const override { return &scan_.damaged().left_out; }
  ReadAccount account() const override { return account_; }

 private:
  std::optional<std::int64_t> next_time() const;
  void open_window(std::int64_t time_ns);
  Status fill_window();
  void end_window();
  bool is_window_revoked();
  Status begin_window_anew();
  bool is_in_window(std::int64_t time_ns) const {
    return time_ns >= window_first_ns_ && time_ns <= window_last_ns_;
  }
  bool takes_sums() const;
  void take_sum();
  bool take_summary();
  void note_time(std::int64_t time_ns);
  Status add_reading();
  bool is_of_extremes() const { return options_.aggregate == wire::Aggregate::MinMax; }
  bool take_extreme(wire::Reading& reading);

  SeriesScan scan_;
  const WindowOptions options_;
  std::uint64_t limit_;
  std::uint64_t windows_ = 0;  // that were answered
  Aggregator aggregator_;
  Extremes extremes_;
  std::span<const TimedValue> pending_;  // of them, of the current window
  // Bounds of the current window, both included.
  std::int64_t window_first_ns_ = 0;
  std::int64_t window_last_ns_ = 0;
  std::int64_t row_time_ns_ = 0;
  std::optional<std::int64_t> ended_ns_;  // so far windows of the series were answered
  // Times of what was taken in.
  std::int64_t oldest_ns_ = 0, newest_ns_ = 0;
  std::uint64_t revocations_ = 0;  // when the window was begun
  GivenReadings given_;
  ReadAccount account_;
};

// The start of the window that holds `time_ns`: a multiple of `every_ns` (> 0), rounded down also
// before 1970; the smallest int64 where that would lie below it.
std::int64_t window_start(std::int64_t time_ns, std::int64_t every_ns);

}  // namespace edgecase::query
