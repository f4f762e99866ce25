#include "forward/windows.h"

#include <utility>

#include "forward/courier.h"
#include "query/aggregator.h"

namespace edgecase::forward {
namespace {

// The columns of one window, reading by reading, oldest first.
class Columns {
 public:
  // A value that is too large to be had: it is counted, and may be first or last.
  void add_large() {
    ++count_;
    if (count_ == 1) first_.reset();
    last_.reset();
  }
  void add(ByteView encoded, const wire::Value& value) {
    ++count_;
    if (count_ == 1) first_ = Bytes(encoded);
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
  std::uint64_t unfit() const { return (first_ ? 0u : 1u) + (last_ ? 0u : 1u); }

 private:
  static std::optional<wire::Value> decoded(const std::optional<Bytes>& bytes) {
    wire::Value value;
    return bytes && wire::decode_value(*bytes, value) ? std::optional(value) : std::nullopt;
  }

  std::uint64_t count_ = 0;
  query::NumberSum sum_;
  query::Aggregator min_{wire::Aggregate::Min, false}, max_{wire::Aggregate::Max, false};
  std::optional<Bytes> first_, last_;
};

}  // namespace

std::int64_t window_begin_ns(std::int64_t time_ns, std::int64_t every_ns) {
  const std::int64_t rest = time_ns % every_ns;
  std::int64_t begin_ns = 0;
  // The first window of time is a short one.
  if (__builtin_sub_overflow(time_ns, rest < 0 ? rest + every_ns : rest, &begin_ns))
    return INT64_MIN;
  return begin_ns;
}

KeyRange Windows::keys_of(const wire::ReadingKey& key) const {
  const std::int64_t begin_ns = window_begin_ns(key.time_ns, every_ns_);
  std::int64_t last_ns = 0;
  if (__builtin_add_overflow(begin_ns, every_ns_ - 1, &last_ns)) last_ns = INT64_MAX;
  return {wire::make_reading_key({key.device, key.sensor, begin_ns}),
          wire::make_reading_key({key.device, key.sensor, last_ns}) + '\0'};
}

std::int64_t Windows::whole_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const {
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
  const auto take = [&](std::int64_t before_ns, retention::Leaving by) {
    if (before_ns <= from_ns) return;
    from_ns = before_ns;
    why = by;
  };
  std::int64_t expired_ns = 0;
  if (retention_ns != kRetentionForever &&
      !__builtin_sub_overflow(engine_.expiry_now_ns(), retention_ns, &expired_ns)) {
    take(expired_ns, retention::Leaving::Expired);
  }
  if (rules_ != nullptr) take(rules_->marks().find(id).before_ns, retention::Leaving::Thinned);
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

Status Windows::compute(NamespaceId namespace_id, const wire::ReadingKey& key,
                        const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t& unfit,
                        const Taker& take) const {
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  options.snapshot = snapshot;
  options.large_value_bytes = Batch::kValueMaxBytes;
  const KeyRange range = keys_of(key);
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(namespace_id, range, options));
  Columns columns;
  for (; at->valid(); at->next()) {
    EC_ASSIGN_OR_RETURN(const auto large, at->large_value());
    if (large != nullptr) {
      columns.add_large();
      continue;
    }
    const ByteView encoded = at->value();
    if (!at->valid()) break;  // it cannot be read
    wire::Value value;
    if (wire::decode_value(encoded, value)) columns.add(encoded, value);
  }
  EC_TRY(at->status());
  if (columns.count() == 0) return ok();  // it went since it was found
  unfit += columns.unfit();
  for (wire::WindowColumn column : wire::kWindowColumns)
    if (const auto value = columns.value_of(column)) take(column, *value);
  return ok();
}

}  // namespace edgecase::forward
