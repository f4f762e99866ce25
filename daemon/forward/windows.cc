#include "forward/windows.h"

#include <algorithm>
#include <utility>

#include "catalog/tier_spaces.h"
#include "forward/courier.h"
#include "query/aggregator.h"
#include "query/tier_windows.h"

namespace edgecase::forward {
namespace {

std::int64_t plus(std::int64_t time_ns, std::int64_t span_ns) {
  std::int64_t result = 0;
  return __builtin_add_overflow(time_ns, span_ns, &result) ? INT64_MAX : result;
}

// Since when the tier has windows still; the beginning of time: it has all.
std::int64_t tier_from_ns(const wire::Keeping& keeping, std::int64_t every_ns,
                          std::int64_t now_ns) {
  const auto tier = std::find_if(keeping.tiers.begin(), keeping.tiers.end(),
                                 [=](const wire::Tier& each) { return each.every_ns == every_ns; });
  std::int64_t from_ns = 0;
  const bool is_forever = tier == keeping.tiers.end() || tier->keep_ns == kRetentionForever ||
                          __builtin_sub_overflow(now_ns, tier->keep_ns, &from_ns);
  return is_forever ? INT64_MIN : from_ns;
}

// What lies before has been in tiers, and has expired in the last of them.
std::int64_t tiers_kept_from_ns(Engine& engine, const retention::RetentionService& rules,
                                const catalog::SeriesEntry& series,
                                const retention::TierMark& mark) {
  if (mark.every_ns.empty()) return INT64_MIN;
  return tier_from_ns(rules.keeping(series), mark.every_ns.back(), engine.expiry_now_ns());
}

// The first window of that length that begins then or later.
std::int64_t next_begin_ns(std::int64_t time_ns, std::int64_t every_ns) {
  const std::int64_t begin_ns = window_begin_ns(time_ns, every_ns);
  return begin_ns == time_ns ? time_ns : plus(begin_ns, every_ns);
}

}  // namespace

// What is known of one window: of readings and windows of tiers within it, oldest first.
class Windows::Sum {
 public:
  // A value that is too large to be had: it is counted, and may be first or last.
  void add_large() {
    has_large_first_ = has_large_first_ || count_ == 0;
    has_large_last_ = has_readings_ = true;
    ++count_;
    last_.reset();
  }
  void add(ByteView encoded, const wire::Value& value) {
    if (count_ == 0) first_ = Bytes(encoded);
    has_large_last_ = false;
    has_readings_ = true;
    ++count_;
    last_ = Bytes(encoded);
    switch (value.type) {
      case wire::ValueType::Float64: sum_.add_float64(value.float64); break;
      case wire::ValueType::Int64: sum_.add_int64(value.int64); break;
      case wire::ValueType::Bool: sum_.add_int64(value.boolean ? 1 : 0); break;
      case wire::ValueType::Text:
      case wire::ValueType::Bytes: return;
    }
    min_.add(value);
    max_.add(value);
  }
  // Its first and last are known where they are numbers.
  void add(const wire::Window& window) {
    if (window.count == 0) return;
    if (count_ == 0) first_ = encoded(window.first);
    last_ = encoded(window.last);
    count_ += window.count;
    min_.add(window);
    max_.add(window);
    if (window.sum) sum_.add(window.numbers, *window.sum);
  }
  // Nothing: there is no such value.
  std::optional<wire::Value> value_of(wire::WindowColumn column) {
    wire::Value value;
    switch (column) {
      case wire::WindowColumn::Count:
        return wire::Value::of_int64(static_cast<std::int64_t>(count_));
      case wire::WindowColumn::Min: return min_.result(value) ? std::optional(value) : std::nullopt;
      case wire::WindowColumn::Max: return max_.result(value) ? std::optional(value) : std::nullopt;
      case wire::WindowColumn::Sum:
        return sum_.count() > 0 ? std::optional(sum_.sum()) : std::nullopt;
      case wire::WindowColumn::Mean:
        return sum_.count() > 0 ? std::optional(wire::Value::of_float64(sum_.mean()))
                                : std::nullopt;
      case wire::WindowColumn::First: return decoded(first_);
      case wire::WindowColumn::Last: return decoded(last_);
    }
    return std::nullopt;
  }
  std::uint64_t count() const { return count_; }
  bool has_readings() const { return has_readings_; }
  std::uint64_t unfit() const { return (has_large_first_ ? 1u : 0u) + (has_large_last_ ? 1u : 0u); }

 private:
  static std::optional<Bytes> encoded(const std::optional<wire::Value>& value) {
    std::optional<Bytes> bytes;
    if (value) wire::append_value(*value, bytes.emplace());
    return bytes;
  }
  static std::optional<wire::Value> decoded(const std::optional<Bytes>& bytes) {
    wire::Value value;
    return bytes && wire::decode_value(*bytes, value) ? std::optional(value) : std::nullopt;
  }

  std::uint64_t count_ = 0;
  bool has_large_first_ = false, has_large_last_ = false, has_readings_ = false;
  query::NumberSum sum_;
  query::Aggregator min_{wire::Aggregate::Min, false}, max_{wire::Aggregate::Max, false};
  std::optional<Bytes> first_, last_;
};

std::int64_t window_begin_ns(std::int64_t time_ns, std::int64_t every_ns) {
  const std::int64_t rest = time_ns % every_ns;
  std::int64_t begin_ns = 0;
  // The first window of time is a short one.
  if (__builtin_sub_overflow(time_ns, rest < 0 ? rest + every_ns : rest, &begin_ns))
    return INT64_MIN;
  return begin_ns;
}

std::int64_t Windows::end_ns(std::int64_t begin_ns) const {
  return plus(begin_ns, every_ns_);
}

KeyRange Windows::keys_of(const wire::ReadingKey& key) const {
  const std::int64_t begin_ns = window_begin_ns(key.time_ns, every_ns_);
  std::int64_t last_ns = 0;
  if (__builtin_add_overflow(begin_ns, every_ns_ - 1, &last_ns)) last_ns = INT64_MAX;
  return {wire::make_reading_key({key.device, key.sensor, begin_ns}),
          wire::make_reading_key({key.device, key.sensor, last_ns}) + '\0'};
}

std::int64_t Windows::whole_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const {
  const std::int64_t kept_ns = kept_from_ns(id, why);
  const std::int64_t thinned_ns =
      rules_ == nullptr ? INT64_MIN : rules_->marks().find(id).before_ns;
  if (thinned_ns > kept_ns) why = retention::Leaving::Thinned;
  return std::max(kept_ns, thinned_ns);
}

std::int64_t Windows::kept_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const {
  const Bytes of_series =
      wire::make_reading_key({id.device, id.sensor, 0}).substr(0, wire::kSeriesPrefixBytes);
  std::size_t longest = 0;
  std::int64_t retention_ns = kRetentionForever;
  engine_.each_retention_rule(id.namespace_id, {Bytes(), of_series + '\0'},
                              [&](ByteView prefix, std::int64_t rule_ns) {
                                if (prefix.size() < longest || !of_series.starts_with(prefix))
                                  return;
                                longest = prefix.size();
                                retention_ns = rule_ns;
                              });
  std::int64_t from_ns = engine_.evicted_before_ns(id.namespace_id);
  why = retention::Leaving::Evicted;
  std::int64_t expired_ns = 0;
  if (retention_ns != kRetentionForever &&
      !__builtin_sub_overflow(engine_.expiry_now_ns(), retention_ns, &expired_ns) &&
      expired_ns > from_ns) {
    from_ns = expired_ns;
    why = retention::Leaving::Expired;
  }
  return from_ns;
}

Result<std::uint64_t> Windows::count(NamespaceId namespace_id, const wire::ReadingKey& key,
                                     const std::shared_ptr<const Snapshot>& snapshot) const {
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  options.snapshot = snapshot;
  EC_ASSIGN_OR_RETURN(const RangeStats stats,
                      engine_.range_stats(namespace_id, keys_of(key), options));
  return stats.entries;
}

Status Windows::add_readings(NamespaceId namespace_id, const wire::ReadingKey& key,
                             const std::shared_ptr<const Snapshot>& snapshot, Sum& sum) const {
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  options.snapshot = snapshot;
  options.large_value_bytes = Batch::kValueMaxBytes;
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(namespace_id, keys_of(key), options));
  for (; at->valid(); at->next()) {
    EC_ASSIGN_OR_RETURN(const auto large, at->large_value());
    if (large != nullptr) {
      sum.add_large();
      continue;
    }
    const ByteView encoded = at->value();
    if (!at->valid()) break;  // it cannot be read
    wire::Value value;
    if (wire::decode_value(encoded, value)) sum.add(encoded, value);
  }
  return at->status();
}

Result<bool> Windows::compute(NamespaceId namespace_id, const wire::ReadingKey& key,
                              const catalog::SeriesEntry* tiered,
                              const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t& unfit,
                              const Taker& take) const {
  const auto take_all = [&](const auto& value_of) {
    for (const wire::WindowColumn column : wire::kWindowColumns)
      if (const auto value = value_of(column)) take(column, *value);
  };
  Sum sum;
  if (tiered == nullptr) {
    EC_TRY(add_readings(namespace_id, key, snapshot, sum));
    if (sum.count() == 0) return true;  // it went since it was found
    unfit += sum.unfit();
    take_all([&sum](wire::WindowColumn column) { return sum.value_of(column); });
    return true;
  }
  // Both parts of it of the same instant.
  const auto now = snapshot != nullptr ? snapshot : engine_.snapshot();
  const std::int64_t begin_ns = window_begin_ns(key.time_ns, every_ns_);
  bool is_whole = true;
  EC_TRY(each_finest_window(
      engine_, *rules_, *tiered, begin_ns, end_ns(begin_ns), now, [&](const wire::Window& window) {
        is_whole = window.begin_ns >= begin_ns && every_ns_ % window.every_ns == 0;
        if (is_whole) sum.add(window);
        return is_whole;
      }));
  EC_ASSIGN_OR_RETURN(const retention::TierMark mark,
                      retention::TierMarks::find_in(engine_, rules_->records(), tiered->id, now));
  if (!is_whole || begin_ns < tiers_kept_from_ns(engine_, *rules_, *tiered, mark)) return false;
  EC_TRY(add_readings(namespace_id, key, now, sum));
  if (sum.count() == 0) return true;
  unfit += sum.unfit();
  take_all([&sum](wire::WindowColumn column) { return sum.value_of(column); });
  return true;
}

// Puts windows of tiers together as they come, and gives them.
class Windows::Combiner {
 public:
  // What lies outside [from_ns, to_ns) does not go as it is. `mark_ns`: readings begin there.
  // `whole_ns`: what lies before has lost something.
  Combiner(const Windows& windows, const catalog::SeriesId& id,
           const std::shared_ptr<const Snapshot>& snapshot, std::int64_t from_ns,
           std::int64_t to_ns, std::int64_t mark_ns, std::int64_t whole_ns,
           const WholeWindowTaker& take)
      : windows_(windows),
        id_(id),
        snapshot_(snapshot),
        from_ns_(from_ns),
        to_ns_(to_ns),
        mark_ns_(mark_ns),
        whole_ns_(whole_ns),
        take_(take) {}

  // False: it is over.
  Result<bool> add(const wire::Window& window) {
    const std::int64_t every_ns = windows_.every_ns_;
    const std::int64_t begin_ns =
        every_ns == 0 ? window.begin_ns : window_begin_ns(window.begin_ns, every_ns);
    if (is_open_ && begin_ns != begin_ns_) {
      EC_ASSIGN_OR_RETURN(const bool goes_on, finish());
      if (!goes_on) return false;
    }
    // One that reaches into it went as it is: so do the others there.
    const bool is_part = every_ns > 0 && every_ns % window.every_ns == 0 &&
                         begin_ns >= as_it_is_to_ns_ && begin_ns >= whole_ns_;
    if (!is_part) {
      const std::int64_t end_ns = plus(window.begin_ns, window.every_ns);
      if (every_ns == 0 || every_ns % window.every_ns != 0) as_it_is_to_ns_ = end_ns;
      const bool is_asked = end_ns > from_ns_ && window.begin_ns < to_ns_;
      return !is_asked || take_(as_it_is(window));
    }
    if (!is_open_) sum_ = Sum();
    is_open_ = true;
    begin_ns_ = begin_ns;
    sum_.add(window);
    return true;
  }
  // The last one.
  Result<bool> finish() {
    if (!std::exchange(is_open_, false)) return true;
    if (windows_.end_ns(begin_ns_) > mark_ns_)
      EC_TRY(windows_.add_readings(id_.namespace_id, {id_.device, id_.sensor, begin_ns_}, snapshot_,
                                   sum_));
    return take_({.begin_ns = begin_ns_,
                  .every_ns = windows_.every_ns_,
                  .count = sum_.count(),
                  .has_readings = sum_.has_readings(),
                  .value_of = [this](wire::WindowColumn column) { return sum_.value_of(column); }});
  }

 private:
  const Windows& windows_;
  const catalog::SeriesId id_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const std::int64_t from_ns_, to_ns_, mark_ns_, whole_ns_;
  const WholeWindowTaker& take_;
  bool is_open_ = false;
  std::int64_t begin_ns_ = 0, as_it_is_to_ns_ = INT64_MIN;
  Sum sum_;
};

Status Windows::each_tiered(const catalog::SeriesEntry& series, std::int64_t from_ns,
                            std::int64_t to_ns, const std::shared_ptr<const Snapshot>& snapshot,
                            const WholeWindowTaker& take) const {
  if (rules_ == nullptr) return ok();
  EC_ASSIGN_OR_RETURN(
      const retention::TierMark mark,
      retention::TierMarks::find_in(engine_, rules_->records(), series.id, snapshot));
  std::int64_t whole_ns = INT64_MIN;
  const std::int64_t asked_from_ns = from_ns, asked_to_ns = to_ns;
  if (every_ns_ > 0) {
    whole_ns = tiers_kept_from_ns(engine_, *rules_, series, mark);
    from_ns = window_begin_ns(from_ns, every_ns_);
    if (window_begin_ns(to_ns, every_ns_) != to_ns)
      to_ns = end_ns(window_begin_ns(to_ns, every_ns_));
  }
  Combiner combiner(*this, series.id, snapshot, asked_from_ns, asked_to_ns, mark.before_ns,
                    whole_ns, take);
  Status problem;
  bool goes_on = true;
  EC_TRY(each_finest_window(engine_, *rules_, series, from_ns, to_ns, snapshot,
                            [&](const wire::Window& window) {
                              const Result<bool> added = combiner.add(window);
                              problem = added.status();
                              goes_on = added.ok() && *added;
                              return goes_on;
                            }));
  EC_TRY(problem);
  return goes_on ? combiner.finish().status() : ok();
}

Status each_window(Engine& engine, const catalog::SeriesId& id, std::int64_t every_ns,
                   std::int64_t from_ns, std::int64_t to_ns,
                   const std::shared_ptr<const Snapshot>& snapshot,
                   const std::function<bool(const wire::Window& window)>& take) {
  const auto spaces = catalog::tier_spaces_of(engine, id.namespace_id);
  const auto space = std::find_if(spaces.begin(), spaces.end(),
                                  [=](const auto& each) { return each.every_ns == every_ns; });
  if (space == spaces.end()) return ok();
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  options.snapshot = snapshot;
  // To the last one: the mark may lie within it.
  EC_ASSIGN_OR_RETURN(const auto windows,
                      query::TierWindows::open(engine, *space, id, from_ns, std::nullopt,
                                               query::kAllTierColumns, options));
  for (; windows->valid() && windows->window().begin_ns < to_ns; windows->next()) {
    wire::Window window = windows->window();
    window.every_ns = every_ns;
    if (!take(window)) break;
  }
  return windows->status();
}

// A tier has a time whole while none of what it had of it has expired: up to there, to the end of
// a window of the next tier, that one has it.
//
//   1h, for ever  ├───────┼───────┤
//   1m, 90 d              ├┼┼┼┼┼┼┼┼┼┼┼┼┤
//                     90 days ago      mark
Status each_finest_window(Engine& engine, const retention::RetentionService& rules,
                          const catalog::SeriesEntry& series, std::int64_t from_ns,
                          std::int64_t to_ns, const std::shared_ptr<const Snapshot>& snapshot,
                          const std::function<bool(const wire::Window& window)>& take) {
  EC_ASSIGN_OR_RETURN(const retention::TierMark mark,
                      retention::TierMarks::find_in(engine, rules.records(), series.id, snapshot));
  const std::vector<std::int64_t>& lengths = mark.every_ns;
  const wire::Keeping keeping = rules.keeping(series);
  const std::int64_t now_ns = engine.expiry_now_ns();
  std::vector<std::int64_t> whole_from_ns(lengths.size(), INT64_MIN);
  for (std::size_t i = lengths.size(); i-- > 1;) {
    const std::int64_t begin_ns = tier_from_ns(keeping, lengths[i - 1], now_ns);
    whole_from_ns[i - 1] = std::max(
        whole_from_ns[i], begin_ns == INT64_MIN ? INT64_MIN : next_begin_ns(begin_ns, lengths[i]));
  }
  bool is_over = false;
  for (std::size_t i = lengths.size(); i-- > 0 && !is_over;) {
    const std::int64_t begin_ns = std::max(from_ns, whole_from_ns[i]);
    const std::int64_t end_ns = i == 0 ? to_ns : std::min(to_ns, whole_from_ns[i - 1]);
    if (begin_ns >= end_ns) continue;
    EC_TRY(each_window(engine, series.id, lengths[i], window_begin_ns(begin_ns, lengths[i]), end_ns,
                       snapshot, [&](const wire::Window& window) {
                         is_over = !take(window);
                         return !is_over;
                       }));
  }
  return ok();
}

wire::Keeping keeping_of_columns(const wire::Keeping& keeping, std::int64_t every_ns) {
  auto tier = std::find_if(keeping.tiers.begin(), keeping.tiers.end(),
                           [=](const wire::Tier& each) { return each.every_ns >= every_ns; });
  if (tier == keeping.tiers.end()) {
    if (keeping.tiers.empty()) return keeping;
    --tier;
  }
  wire::Keeping of_columns{tier->keep_ns, {tier + 1, keeping.tiers.end()}};
  return of_columns;
}

}  // namespace edgecase::forward
