// Runs through the readings of one series after another, over one snapshot: what both kinds of
// cursor stand on; and which readings a part of an answer was made of. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/iterator.h"
#include "query/left_out.h"
#include "query/tier_windows.h"
#include "wire/reading.h"

namespace edgecase::query {

// A text or bytes of a reading that are too large to lie in memory, in pieces. One thread.

// From here on texts and bytes of readings are read in pieces.
inline constexpr std::uint64_t kLargeTextBytes = 256u << 10;

class LargeText {
 public:
  // What open() is given, once more.
  using Reopen = std::function<Result<std::unique_ptr<LargeValue>>()>;

  // `reopen` may be called as long as this is there. Corruption: `value` is none of a text or
  // bytes. Other errors: those of the value.
  static Result<std::unique_ptr<LargeText>> open(std::unique_ptr<LargeValue> value, Reopen reopen);
  // Views a text or bytes that lie in memory for as long.
  explicit LargeText(const wire::Value& whole);

  // Text or Bytes, with the content type; its text is empty. Valid as long as this is.
  wire::Value kind() const;
  std::uint64_t size_bytes() const { return size_bytes_; }
  // What comes next, valid until the next call; empty at the end. Unavailable: another value was
  // stored in its place since let_go().
  Result<std::string_view> next_piece();
  // Keeps nothing alive until the next piece is asked for. The last piece is valid no more.
  void let_go() { value_.reset(); }

 private:
  LargeText(std::unique_ptr<LargeValue> value, Reopen reopen)
      : value_(std::move(value)), reopen_(std::move(reopen)), sequence_(value_->sequence()) {}
  Status come_back();

  std::unique_ptr<LargeValue> value_;  // null: it was let go of, or lies in memory
  Reopen reopen_;                      // null: it lies in memory
  std::uint64_t sequence_ = 0;
  wire::ValueType type_ = wire::ValueType::Text;
  std::string content_type_;
  std::string_view rest_;    // of the piece at hand, before it is given out; all, in memory
  std::uint64_t given_ = 0;  // bytes of the value
  std::uint64_t size_bytes_ = 0;
};

struct TimeRange {
  std::int64_t from_ns = 0;           // included
  std::optional<std::int64_t> to_ns;  // not included; unset: no end
};

// The engine keys of one series within `range`.
KeyRange key_range(const catalog::SeriesId& series, const TimeRange& range);

// What a scan cannot read of the series that it is in, and of all.
struct Damaged {
  // How many are told apart of one series; of more, gaps between them count as well.
  static constexpr std::size_t kRangesMax = 256;
  struct Range {
    std::int64_t first_ns = 0, last_ns = 0;  // both included
    wire::Lack lack = wire::Lack::Damaged;
  };

  catalog::SeriesEntry series;   // that it is in
  std::vector<Range> of_series;  // of that, in the order of the scan
  LeftOut left_out;

  // `from_ns` and `to_ns` as LeftOutReadings has them.
  void add(std::optional<std::int64_t> from_ns, std::optional<std::int64_t> to_ns,
           const Status& why);
};

// What is lacking of a window.
wire::Lack lack_of(const std::vector<Damaged::Range>& damaged, std::int64_t first_ns,
                   std::int64_t last_ns);
void add_range(const Damaged::Range& range, std::vector<Damaged::Range>& damaged);

// How far it is known where damage lies that has no known end, and up to where it was told of.
struct LackBounds {
  std::optional<std::int64_t> first_ns;  // none: nobody knows
  std::int64_t last_ns = 0;
  std::optional<std::int64_t> told_ns;
  bool is_descending = false;
};
// The next time that is damaged, as far as one knows.
std::optional<std::int64_t> next_lack(const std::vector<Damaged::Range>& damaged,
                                      const LackBounds& bounds);

// Which windows stand for readings that are gone, where windows of `every_ns` (0: one of the whole
// range) are asked for.
struct TierReading {
  using Choice = std::function<std::optional<catalog::TierSpace>(const catalog::SeriesEntry&)>;

  Choice choose = nullptr;  // the tier of a series; none: readings alone. Null: of no series
  // Its mark: no window ends later. Null: nobody knows.
  std::function<std::int64_t(const catalog::SeriesEntry&)> before = nullptr;
  TierColumnSet columns = kAllTierColumns;
  std::int64_t every_ns = 0;
  // Windows are all that is read, those that begin in the range; `every_ns` is their length.
  bool is_alone = false;
};

// Goes on behind what is damaged, and tells of it.
//
// With a TierReading it stands on windows of a tier, too: on those of a series before its first
// reading, which is younger than all of them (Reverse: behind the last one). One snapshot has each
// instant in one of the two. Where it lets go, and readings may have become windows meanwhile, it
// goes on from the beginning of what is asked for at that place, and has_moved() says so.
class SeriesScan {
 public:
  // `options.snapshot`: a moment that somebody else holds; null: now.
  SeriesScan(Engine& engine, const catalog::Catalog& catalog,
             std::vector<catalog::SeriesRow> series, const TimeRange& range,
             const ReadOptions& options, TierReading tiers = {});

  // To the first reading of the next series, which may have none; false after the last one. What
  // was erased meanwhile is passed over.
  Result<bool> next_series();
  // Lets go of snapshot and iterator.
  void close();
  // The same until wake(), where something was revoked since (Engine::revocations()), or the engine
  // is short of memory that this scan keeps and it does not read as of a moment. True: it did. The
  // views of value() hold no more.
  bool let_go();
  bool is_overtaken() const {
    return options_.snapshot != nullptr && revocations_ != engine_.revocations();
  }
  // After let_go() it goes on with what is stored now: to the reading where it stood, or, where
  // that is gone (false), to the one behind it.
  Result<bool> wake();

  // Asks the patience of the options now and then; so many steps were made.
  Status go_on(std::size_t steps = 1) {
    if (options_.patience == nullptr || (steps_ += steps) < kStepsPerAsking) return ok();
    steps_ = 0;
    return options_.patience->go_on();
  }
  // False at the end of the current series, and after an error: look at status().
  bool valid() const { return is_on_sum() || is_on_reading() || is_on_window(); }
  Status status() const {
    if (!failure_.ok()) return failure_;
    if (windows_ != nullptr) EC_TRY(windows_->status());
    return is_on_sum() || is_held() || iterator_ == nullptr ? ok() : iterator_->status();
  }
  // Whether it stands on a window of a tier: then window() and time_ns(), where that begins, are
  // all that may be asked, and next() leads to the next one.
  bool is_on_window() const {
    return windows_ != nullptr && windows_->valid() &&
           (options_.direction == Direction::Forward || !is_on_reading());
  }
  const TierWindow& window() const { return windows_->window(); }
  std::int64_t window_last_ns() const { return windows_->last_ns(); }
  // Since it was asked last.
  bool has_moved() { return std::exchange(has_moved_, false); }
  void next();
  // The reading where it stands and those behind it, as far as they are numbers that it has at hand
  // or can take many at once; none: look at valid() and value(). The views hold until next().
  wire::Numbers numbers();
  // The same as far as it holds them already; none: nothing is known of them.
  wire::Numbers held_numbers() const {
    return is_held() && !is_on_window() && !is_overtaken() ? held_from(at_) : wire::Numbers();
  }
  // As next(), `count` times: at least once, and no more than numbers() had.
  void skip(std::size_t count) {
    at_ += count - 1;
    next();
  }
  // The readings behind the one where it stands, as far as it has taken them as numbers already;
  // and to the one of them with this number, from 1 on. The views hold until next().
  wire::Numbers numbers_behind() const { return is_held() ? held_from(at_ + 1) : wire::Numbers(); }
  void stand_on(std::size_t number) { at_ += number; }
  // With ReadOptions::summaries, before value() of each reading, only when valid(): whether it
  // stood on a group of numbers that ends at or before `end_ns` (Reverse: begins at or behind it),
  // of which `summary` is known, and `wanted`, where there is such a test; it is behind it then.
  // False: the reading where it stands, if valid() still, is at hand.
  bool take_summary(std::int64_t end_ns, NumberSummary& summary, const SummaryTest& wanted = {});
  // In place of that, where windows of `every_ns` from `begin_ns` on are asked for: whether it
  // stands on the sum of a window, of the doubles that a group has in it. Then take_sum() and
  // next() are all that may be asked; time_ns() lies in that window.
  bool is_on_sum() const { return sum_at_ < sums_.windows.size(); }
  bool reach_sum(std::int64_t begin_ns, std::int64_t every_ns);
  // Its count and sum, and the first and the last time that these may be of; no more.
  void take_sum(NumberSummary& summary) const;
  // The sum where it stands and those behind it, of windows that have nothing in another group
  // behind this one; none: nothing is known. The view holds until next().
  std::span<const WindowSums::Window> held_sums() const {
    if (!is_on_sum() || is_overtaken()) return {};
    return std::span(sums_.windows).subspan(sum_at_, sums_.windows.size() - sum_at_ - 1);
  }
  // Where the window of the one that is so many behind begins; no more than held_sums() has.
  std::int64_t time_of_sum(std::size_t number) const {
    return wire::time_of_ordinal(sums_.begin_of(sum_at_ + number));
  }
  // As next(), `count` times: at least once, and no more than held_sums() had.
  void skip_sums(std::size_t count) {
    sum_at_ += count - 1;
    next();
  }
  // The group where it stands is to be read, whatever is known of it; valid() says what is left.
  void read_group() {
    NumberSummary unread;
    static_cast<void>(take_summary(0, unread, [](const NumberSummary&) { return false; }));
  }
  // Within the current series, to the first reading at or behind `time_ns` (Reverse: at or before).
  Status seek(std::int64_t time_ns);
  const catalog::SeriesEntry& series() const { return damaged_->series; }
  // Only when valid(). The value's views hold until next().
  std::int64_t time_ns() const {
    if (is_on_window()) return windows_->window().begin_ns;
    if (is_on_sum()) return time_of_sum(0);
    return is_held() ? wire::time_of_ordinal(held_.ordinals[at_])
                     : wire::time_of_reading_key(iterator_->key().data());
  }
  // The value. Of a large one it tells no more than that it is large; large_text() has it.
  Status value(wire::Value& value);
  bool is_large() const { return is_large_; }
  // The reading where it stands cannot be had: leaves it out.
  void leave_out(const Status& why) { damaged_->add(time_ns(), time_ns(), why); }
  // What is left out already when it begins.
  void leave_out(LeftOutReadings readings) { damaged_->left_out.add(std::move(readings)); }
  void leave_out(std::vector<LeftOutReadings> all) {
    for (LeftOutReadings& each : all) leave_out(std::move(each));
  }
  const Damaged& damaged() const { return *damaged_; }
  // Nobody asks any more what is damaged at or before `ns` (Reverse: at or behind it).
  void forget_damage(std::int64_t ns);
  Result<std::unique_ptr<LargeText>> large_text();
  Engine& engine() const { return engine_; }

 private:
  static constexpr std::size_t kStepsPerAsking = 512;

  bool is_on_reading() const { return is_held() || (iterator_ != nullptr && iterator_->valid()); }
  // It stands on one of the numbers that it holds; the iterator stands behind them all.
  bool is_held() const { return at_ < held_.size(); }
  wire::Numbers held_from(std::size_t begin) const {
    return wire::Numbers{held_times_, held_.bits, held_.is_float}.from(begin);
  }
  void hold_times();
  void drop_iterator();
  std::int64_t first_of_window(std::int64_t time_ns) const;
  void take_snapshot();
  Status open_series();
  Status bad_value() const;

  Engine& engine_;
  const catalog::Catalog& catalog_;
  std::vector<catalog::SeriesRow> series_;
  TimeRange range_;
  ReadOptions options_;
  TierReading tiers_;
  std::unique_ptr<TierWindows> windows_;  // null: of no tier
  bool has_moved_ = false;
  std::size_t next_ = 0;
  std::shared_ptr<Damaged> damaged_;  // shared with what the engine tells
  std::unique_ptr<Iterator> iterator_;
  bool is_large_ = false;  // what value() came to last
  std::size_t steps_ = 0;  // since it was asked
  NumberColumns held_;
  std::vector<std::int64_t> held_times_;
  std::size_t at_ = 0;
  WindowSums sums_;
  std::size_t sum_at_ = 0;         // where it stands; behind them: on none
  bool is_of_moment_;              // that somebody holds
  std::uint64_t revocations_ = 0;  // of the snapshot
  Status failure_;
  Bytes resting_at_;  // after let_go(): the key
};

// The readings that a part of an answer was made of, for who keeps that part, and must not once one
// of them has become unreadable (Engine::revocations()). Must not outlive the engine.
class GivenReadings {
 public:
  // How many series are told apart; of more, whatever is revoked may be one.
  static constexpr std::size_t kSeriesMax = 4096;

  GivenReadings() = default;
  // Before they are read.
  explicit GivenReadings(const Engine& engine)
      : engine_(&engine), revocations_(engine.revocations()) {}

  bool empty() const { return spans_.empty() && !is_overfull_; }
  void add(const catalog::SeriesId& series, std::int64_t first_ns, std::int64_t last_ns) {
    if (!spans_.empty() && spans_.back().series == series) {
      spans_.back().first_ns = std::min(spans_.back().first_ns, first_ns);
      spans_.back().last_ns = std::max(spans_.back().last_ns, last_ns);
    } else if (spans_.size() < kSeriesMax) {
      spans_.push_back({series, first_ns, last_ns});
    } else {
      is_overfull_ = true;
    }
  }
  // What `other` has been given, too.
  void add(const GivenReadings& other) {
    if (other.engine_ == nullptr) return;
    revocations_ =
        engine_ == nullptr ? other.revocations_ : std::min(revocations_, other.revocations_);
    engine_ = other.engine_;
    seen_ = UINT64_MAX;
    is_overfull_ = is_overfull_ || other.is_overfull_;
    is_revoked_ = is_revoked_ || other.is_revoked_;
    for (const Span& span : other.spans_) add(span.series, span.first_ns, span.last_ns);
  }
  // What cannot be told by series: whatever is revoked may be of it.
  void add_all() { is_overfull_ = true; }
  // Whether one of them may be unreadable by now.
  bool is_revoked() {
    if (engine_ == nullptr || (empty() && !is_revoked_)) return is_revoked_;
    const std::uint64_t count = engine_->revocations();
    if (count == seen_) return is_revoked_;
    seen_ = count;
    is_revoked_ = is_revoked_ || (is_overfull_ && count != revocations_) ||
                  std::any_of(spans_.begin(), spans_.end(),
                              [this](const Span& span) { return is_gone(span); });
    return is_revoked_;
  }

 private:
  struct Span {
    catalog::SeriesId series;
    std::int64_t first_ns = 0, last_ns = 0;  // both included
  };

  bool is_gone(const Span& span) const {
    const catalog::SeriesId& id = span.series;
    return engine_->is_revoked(
        id.namespace_id, wire::make_reading_key({id.device, id.sensor, span.first_ns}),
        wire::make_reading_key({id.device, id.sensor, span.last_ns}), revocations_);
  }

  const Engine* engine_ = nullptr;
  std::uint64_t revocations_ = 0;
  std::uint64_t seen_ = UINT64_MAX;
  std::vector<Span> spans_;
  bool is_overfull_ = false;
  bool is_revoked_ = false;
};

}  // namespace edgecase::query
