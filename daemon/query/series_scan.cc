#include "query/series_scan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "wire/reading.h"

namespace edgecase::query {

KeyRange key_range(const catalog::SeriesId& series, const TimeRange& range) {
  KeyRange keys;
  keys.lower = wire::make_reading_key({series.device, series.sensor, range.from_ns});
  if (range.to_ns.has_value()) {
    keys.upper = wire::make_reading_key({series.device, series.sensor, *range.to_ns});
    return keys;
  }
  // No time is past the last one: the bound is the series prefix that comes next.
  keys.upper = keys.lower.substr(0, wire::kSeriesPrefixBytes);
  while (!keys.upper.empty() && keys.upper.back() == '\xff') keys.upper.pop_back();
  if (!keys.upper.empty()) ++keys.upper.back();
  return keys;
}

void Damaged::add(std::optional<std::int64_t> from_ns, std::optional<std::int64_t> to_ns,
                  const Status& why) {
  const Range range{
      from_ns.value_or(std::numeric_limits<std::int64_t>::min()),
      to_ns.value_or(std::numeric_limits<std::int64_t>::max()),
      why.code() == StatusCode::Unavailable ? wire::Lack::Unavailable : wire::Lack::Damaged};
  add_range(range, of_series);
  left_out.add({series.namespace_name, series.device, series.sensor, from_ns, to_ns, why});
}

void add_range(const Damaged::Range& range, std::vector<Damaged::Range>& damaged) {
  if (damaged.size() < Damaged::kRangesMax) return damaged.push_back(range);
  Damaged::Range& last = damaged.back();
  last = {std::min(last.first_ns, range.first_ns), std::max(last.last_ns, range.last_ns),
          std::max(last.lack, range.lack)};
}

std::optional<std::int64_t> next_lack(const std::vector<Damaged::Range>& damaged,
                                      const LackBounds& bounds) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  std::optional<std::int64_t> next;
  for (const Damaged::Range& each : damaged) {
    std::int64_t first_ns = each.first_ns, last_ns = each.last_ns;
    if (first_ns == kFirst) first_ns = bounds.first_ns.value_or(last_ns);
    if (first_ns == kLast) continue;  // nobody knows where
    if (last_ns == kLast) last_ns = std::max(first_ns, bounds.last_ns);
    if (bounds.is_descending) {
      if (bounds.told_ns == kFirst) return std::nullopt;
      if (bounds.told_ns) last_ns = std::min(last_ns, *bounds.told_ns - 1);
      if (last_ns >= first_ns) next = std::max(next.value_or(last_ns), last_ns);
    } else {
      if (bounds.told_ns == kLast) return std::nullopt;
      if (bounds.told_ns) first_ns = std::max(first_ns, *bounds.told_ns + 1);
      if (first_ns <= last_ns) next = std::min(next.value_or(first_ns), first_ns);
    }
  }
  return next;
}

wire::Lack lack_of(const std::vector<Damaged::Range>& damaged, std::int64_t first_ns,
                   std::int64_t last_ns) {
  wire::Lack lack = wire::Lack::Nothing;
  for (const Damaged::Range& each : damaged) {
    if (each.first_ns <= last_ns && each.last_ns >= first_ns) lack = std::max(lack, each.lack);
  }
  return lack;
}

SeriesScan::SeriesScan(Engine& engine, const catalog::Catalog& catalog,
                       std::vector<catalog::SeriesRow> series, const TimeRange& range,
                       const ReadOptions& options, TierReading tiers)
    : engine_(engine),
      catalog_(catalog),
      series_(std::move(series)),
      range_(range),
      options_(options),
      tiers_(std::move(tiers)),
      damaged_(std::make_shared<Damaged>()),
      is_of_moment_(options.snapshot != nullptr) {
  options_.on_damage = [damaged = damaged_](const DamagedKeys& keys) {
    const auto time_of = [](const Bytes& key) -> std::optional<std::int64_t> {
      if (key.size() < wire::kReadingKeyBytes) return std::nullopt;
      const std::int64_t time_ns = wire::time_of_reading_key(key.data());
      if (time_ns == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
      return time_ns;
    };
    damaged->add(time_of(keys.first), keys.last ? time_of(*keys.last) : std::nullopt, keys.why);
  };
  if (is_of_moment_) {
    revocations_ = options_.snapshot->revocations();
  } else {
    take_snapshot();
  }
}

void SeriesScan::take_snapshot() {
  options_.snapshot = engine_.snapshot();
  revocations_ = options_.snapshot->revocations();
}

Status SeriesScan::open_series() {
  if (options_.snapshot == nullptr) take_snapshot();
  const catalog::SeriesId& id = series().id;
  TimeRange of_readings = range_, of_windows = range_;
  if (tiers_.is_alone) {
    of_readings.to_ns = of_readings.from_ns;
    // The last one may end behind it.
    const bool is_endless =
        !range_.to_ns ||
        __builtin_add_overflow(*range_.to_ns, tiers_.every_ns - 1, &*of_windows.to_ns);
    if (is_endless) of_windows.to_ns.reset();
  }
  EC_ASSIGN_OR_RETURN(iterator_,
                      engine_.scan(id.namespace_id, key_range(id, of_readings), options_));
  if (!tiers_.choose) return ok();
  const auto tier = tiers_.choose(series());
  if (!tier) return ok();
  ReadOptions options = options_;
  if (tiers_.before) {
    // Damage of windows without a known end ends where readings begin.
    const Bytes last = wire::make_reading_key({id.device, id.sensor, tiers_.before(series()) - 1});
    options.on_damage = [tell = options_.on_damage, last](const DamagedKeys& keys) {
      DamagedKeys bounded = keys;
      if (!bounded.last) bounded.last = last;
      tell(bounded);
    };
  }
  EC_ASSIGN_OR_RETURN(windows_, TierWindows::open(engine_, *tier, id, of_windows.from_ns,
                                                  of_windows.to_ns, tiers_.columns, options));
  return ok();
}

// A moment that somebody else holds moves on as well where something was revoked: he lets go of it.
bool SeriesScan::let_go() {
  if (options_.snapshot == nullptr) return false;
  const bool is_short = !is_of_moment_ && options_.snapshot->keeps_memory();
  if (!is_overtaken() && (!is_short || !engine_.is_short_of_memory())) return false;
  if (valid())
    resting_at_ = wire::make_reading_key({series().id.device, series().id.sensor, time_ns()});
  drop_iterator();
  options_.snapshot.reset();
  return true;
}

Result<bool> SeriesScan::wake() {
  if (resting_at_.empty()) return true;
  const Bytes key = std::exchange(resting_at_, {});
  if (tiers_.is_alone) {
    const std::int64_t time_ns = wire::time_of_reading_key(key.data());
    EC_TRY(seek(time_ns));
    return valid() && this->time_ns() == time_ns;
  }
  if (tiers_.choose) {
    EC_TRY(seek(first_of_window(wire::time_of_reading_key(key.data()))));
    has_moved_ = true;
    return true;
  }
  EC_TRY(open_series());
  iterator_->seek(key);
  EC_TRY(iterator_->status());
  return iterator_->valid() && iterator_->key() == ByteView(key);
}

// Where what is asked for at that time begins, in the direction of the scan.
std::int64_t SeriesScan::first_of_window(std::int64_t time_ns) const {
  const bool is_forward = options_.direction == Direction::Forward;
  if (tiers_.every_ns == 0) {
    const auto last_ns = std::numeric_limits<std::int64_t>::max();
    return is_forward ? range_.from_ns : range_.to_ns.value_or(last_ns);
  }
  std::int64_t into = time_ns % tiers_.every_ns;
  if (into < 0) into += tiers_.every_ns;
  std::int64_t first_ns = 0;
  const bool is_beyond =
      is_forward ? __builtin_sub_overflow(time_ns, into, &first_ns)
                 : __builtin_add_overflow(time_ns, tiers_.every_ns - into - 1, &first_ns);
  return is_beyond ? time_ns : first_ns;
}

// However long nobody asks for anything else: files of before a revocation are not kept meanwhile.
void SeriesScan::next() {
  if (iterator_ == nullptr) return;
  // What goes on behind a sum goes on where the next one begins, or behind all of them.
  if (is_on_sum()) {
    ++sum_at_;
    if (is_overtaken() && let_go()) failure_ = wake().status();
    return;
  }
  if (is_overtaken() && let_go()) {
    const Result<bool> stands = wake();
    failure_ = stands.status();
    if (!stands.ok()) return drop_iterator();
    if (!*stands) return;
  }
  if (is_on_window()) {
    windows_->next();
  } else if (is_held()) {
    ++at_;
  } else if (iterator_ != nullptr) {
    iterator_->next();
  }
}

wire::Numbers SeriesScan::numbers() {
  if (is_on_window() || is_on_sum()) return {};
  if (!is_held()) {
    if (iterator_ == nullptr || !iterator_->valid()) return {};
    at_ = 0;
    iterator_->take_numbers({}, held_);
    hold_times();
  }
  return held_from(at_);
}

void SeriesScan::hold_times() {
  held_times_.resize(held_.size());
  std::transform(held_.ordinals.begin(), held_.ordinals.end(), held_times_.begin(),
                 wire::time_of_ordinal);
}

bool SeriesScan::reach_sum(std::int64_t begin_ns, std::int64_t every_ns) {
  if (is_on_sum()) return true;
  if (!options_.summaries || is_on_window() || is_held() || iterator_ == nullptr ||
      !iterator_->valid())
    return false;
  const auto every = static_cast<std::uint64_t>(every_ns);
  at_ = 0;
  const TakenSums taken =
      iterator_->take_window_sums({}, every, wire::ordinal_of_time(begin_ns) % every, sums_, held_);
  if (taken == TakenSums::Numbers) hold_times();
  if (taken != TakenSums::Sums) {
    sums_.windows.clear();
    if (taken == TakenSums::Nothing) held_.clear();
    return false;
  }
  held_.clear();
  sum_at_ = 0;
  return true;
}

void SeriesScan::take_sum(NumberSummary& summary) const {
  const WindowSums::Window& window = sums_.windows[sum_at_];
  const bool is_last = sum_at_ + 1 == sums_.windows.size();
  summary.type = NumberType::Float;
  summary.count = window.count;
  summary.first_ordinal = sums_.begin_of(sum_at_);
  summary.last_ordinal = is_last ? sums_.last_ordinal : sums_.begin_of(sum_at_ + 1) - 1;
  summary.sum = std::bit_cast<std::uint64_t>(window.sum);
  summary.sum_low = window.sum_low;
}

// With the numbers that were taken from it.
void SeriesScan::drop_iterator() {
  iterator_.reset();
  windows_.reset();
  sums_.windows.clear();
  held_.clear();
  at_ = 0;
}

bool SeriesScan::take_summary(std::int64_t end_ns, NumberSummary& summary,
                              const SummaryTest& wanted) {
  if (!options_.summaries || is_on_window() || is_held() || iterator_ == nullptr ||
      !iterator_->valid())
    return false;
  // Behind the last time, and before the first, there is nothing of the series.
  const std::int64_t step = options_.direction == Direction::Forward ? 1 : -1;
  Bytes end;
  std::int64_t beyond_ns = 0;
  if (!__builtin_add_overflow(end_ns, step, &beyond_ns))
    end = wire::make_reading_key({series().id.device, series().id.sensor, beyond_ns});
  return iterator_->take_summary(end, summary, wanted);
}

Status SeriesScan::seek(std::int64_t time_ns) {
  if (is_overtaken()) static_cast<void>(let_go());
  resting_at_.clear();
  sums_.windows.clear();
  held_.clear();
  at_ = 0;
  if (iterator_ == nullptr) EC_TRY(open_series());
  iterator_->seek(wire::make_reading_key({series().id.device, series().id.sensor, time_ns}));
  if (windows_ != nullptr) windows_->seek(time_ns);
  return status();
}

Result<bool> SeriesScan::next_series() {
  static_cast<void>(let_go());
  resting_at_.clear();
  drop_iterator();
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  while (true) {
    if (next_ == series_.size()) return false;
    auto entry = catalog_.series_at(series_[next_++]);
    if (!entry.ok()) continue;
    damaged_->series = *std::move(entry);
    damaged_->of_series.clear();
    break;
  }
  EC_TRY(open_series());
  return true;
}

void SeriesScan::forget_damage(std::int64_t ns) {
  const bool is_forward = options_.direction == Direction::Forward;
  std::erase_if(damaged_->of_series, [&](const Damaged::Range& each) {
    return is_forward ? each.last_ns <= ns : each.first_ns >= ns;
  });
}

void SeriesScan::close() {
  resting_at_.clear();
  drop_iterator();
  options_.snapshot.reset();
  next_ = series_.size();
}

Status SeriesScan::value(wire::Value& value) {
  if (is_held()) {
    is_large_ = false;
    value = held_.is_float ? wire::Value::of_float64(std::bit_cast<double>(held_.bits[at_]))
                           : wire::Value::of_int64(static_cast<std::int64_t>(held_.bits[at_]));
    return ok();
  }
  const ByteView bytes = iterator_->value();
  if (!iterator_->valid()) return iterator_->status();
  // No stored value is empty.
  is_large_ = bytes.empty();
  if (is_large_) {
    value = wire::Value::of_text({});
    return ok();
  }
  if (!wire::decode_value(bytes, value)) return bad_value();
  return ok();
}

Result<std::unique_ptr<LargeText>> SeriesScan::large_text() {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LargeValue> large, iterator_->large_value());
  if (large == nullptr) return bad_value();
  auto text = LargeText::open(std::move(large), [this]() -> Result<std::unique_ptr<LargeValue>> {
    EC_ASSIGN_OR_RETURN(const bool is_there, wake());
    if (!is_there) return not_found("a value was deleted while it was read");
    return iterator_->large_value();
  });
  if (!text.ok() && text.status().code() == StatusCode::Corruption) return bad_value();
  return text;
}

Status SeriesScan::bad_value() const {
  return corruption("series " + series().namespace_name + " " + series().device + "/" +
                    series().sensor + " at time " + std::to_string(time_ns()) +
                    ": the stored value is none");
}

Result<std::unique_ptr<LargeText>> LargeText::open(std::unique_ptr<LargeValue> value,
                                                   Reopen reopen) {
  std::unique_ptr<LargeText> text(new LargeText(std::move(value), std::move(reopen)));
  EC_ASSIGN_OR_RETURN(const ByteView piece, text->value_->next_piece());
  // What stands before the text lies within the first piece.
  wire::Value begin;
  if (!wire::decode_value(piece, begin) ||
      (begin.type != wire::ValueType::Text && begin.type != wire::ValueType::Bytes))
    return corruption("a large value is none of a reading");
  text->type_ = begin.type;
  text->content_type_ = begin.content_type;
  text->rest_ = begin.text;
  text->given_ = piece.size() - begin.text.size();
  text->size_bytes_ = text->value_->size_bytes() - text->given_;
  return text;
}

LargeText::LargeText(const wire::Value& whole)
    : type_(whole.type),
      content_type_(whole.content_type),
      rest_(whole.text),
      size_bytes_(whole.text.size()) {}

wire::Value LargeText::kind() const {
  return type_ == wire::ValueType::Text ? wire::Value::of_text({})
                                        : wire::Value::of_bytes({}, content_type_);
}

Result<std::string_view> LargeText::next_piece() {
  if (reopen_ != nullptr && value_ == nullptr) EC_TRY(come_back());
  if (reopen_ != nullptr && rest_.empty()) {
    EC_ASSIGN_OR_RETURN(rest_, value_->next_piece());
  }
  const std::string_view piece = rest_.substr(0, kLargeValuePieceBytes);
  rest_.remove_prefix(piece.size());
  given_ += piece.size();
  return piece;
}

// To where it was.
Status LargeText::come_back() {
  EC_ASSIGN_OR_RETURN(value_, reopen_());
  if (value_ == nullptr || value_->sequence() != sequence_)
    return unavailable("a value was replaced while it was read");
  rest_ = {};
  for (std::uint64_t at = 0; at < given_;) {
    EC_ASSIGN_OR_RETURN(rest_, value_->next_piece());
    if (rest_.empty()) return corruption("a large value ends early");
    const std::uint64_t more = std::min<std::uint64_t>(rest_.size(), given_ - at);
    at += more;
    rest_.remove_prefix(more);
  }
  return ok();
}

}  // namespace edgecase::query
