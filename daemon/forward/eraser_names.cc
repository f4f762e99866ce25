// Eraser: what the names and times of an erasure are at the target.
#include <algorithm>
#include <utility>

#include "forward/eraser.h"

namespace edgecase::forward {
namespace {

constexpr char kSharesName[] =
    "columns of its windows have the name of a series whose readings are to stay";
constexpr char kUnknownLength[] = "how long the windows were that went there is not known here";

// `there` becomes that column of the series.
void name_column(const catalog::SeriesEntry& series, wire::WindowColumn column, ErasedName& there) {
  catalog::SeriesEntry called = column_of(series, column);
  there.sensor = std::move(called.sensor);
  there.identity = std::move(called.identity);
}

catalog::SeriesEntry entry_of(const ErasedName& name) {
  return {.namespace_name = name.namespace_name,
          .device = name.device,
          .sensor = name.sensor,
          .id = {},
          .identity = name.identity};
}

}  // namespace

// Windows go whole.
ErasureOrder Eraser::order_there(ErasureOrder order) const {
  if (every_ns_ == 0 || order.has_all_times) return order;
  if (order.range.from_ns != INT64_MIN)
    order.range.from_ns = window_begin_ns(order.range.from_ns, every_ns_);
  if (order.range.to_ns) {
    const std::int64_t begin_ns = window_begin_ns(*order.range.to_ns - 1, every_ns_);
    std::int64_t end_ns = 0;
    if (__builtin_add_overflow(begin_ns, every_ns_, &end_ns)) {
      order.range.to_ns.reset();
    } else {
      order.range.to_ns = end_ns;
    }
  }
  return order;
}

bool Eraser::Wish::takes(const SentWindows::Span& span) const {
  if (order.has_all_times) return true;
  const std::int64_t from_ns = order.range.from_ns;
  if (span.end_ns <= from_ns || (order.range.to_ns && span.begin_ns >= *order.range.to_ns))
    return false;
  return !cut_by_ns ||
         (!span.has_several_lengths() && window_begin_ns(*cut_by_ns, span.every_ns) == from_ns);
}

Status Eraser::each_there(const Wish& wish, const ErasedName& name, const NameTaker& take,
                          TargetErasure& result) const {
  const bool goes_whole = watched_.takes_device(name.namespace_name, name.device);
  ErasedName there = name;
  there.is_of_device = name.is_of_device && goes_whole;
  if (name.is_device) {
    there.device = pseudonyms_.of(name.namespace_name, name.device);
    if (goes_whole && !wish.cut_by_ns) take(there);
    return ok();
  }
  if (!watched_.takes(name.namespace_name, name.device, name.sensor)) return ok();
  const catalog::SeriesEntry entry = pseudonyms_.of(entry_of(name));
  there.device = entry.device;
  there.sensor = entry.sensor;
  there.identity = entry.identity;
  if (every_ns_ == 0) {
    if (!wish.cut_by_ns) take(there);
    return windows_ == nullptr ? ok() : each_column(wish, name, std::move(there), take, result);
  }
  if (name.is_gone && windows_ != nullptr)
    return each_guessed_column(wish, name, std::move(there), take);
  // Longer ones went of what had become these.
  if (wish.cut_by_ns) return each_column(wish, name, std::move(there), take, result);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    name_column(entry, column, there);
    take(there);
  }
  return ok();
}

Status Eraser::each_column(const Wish& wish, const ErasedName& name, ErasedName there,
                           const NameTaker& take, TargetErasure& result) const {
  if (name.is_gone) return each_guessed_column(wish, name, std::move(there), take);
  if (name.id.sensor == 0) return ok();
  EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(name.id));
  WindowColumns columns = 0;
  for (const SentWindows::Span& each : sent.spans)
    if (wish.takes(each)) columns |= each.columns;
  if (columns == 0) return ok();
  const catalog::SeriesEntry entry = entry_of(there), here = entry_of(name);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    if ((columns & column_bit(column)) == 0) continue;
    if (every_ns_ == 0 &&
        windows_->is_series(name.namespace_name, name.device, column_of(here, column).sensor)) {
      worsen(result, ErasureStep::NotPossible, kSharesName);
      continue;
    }
    name_column(entry, column, there);
    take(there);
  }
  return ok();
}

// Nobody knows which part of the name of what had gone here before is its field: columns are asked
// for by both names that they may have. InfluxDB is not asked for it at all.
Status Eraser::each_guessed_column(const Wish& wish, const ErasedName& name, ErasedName there,
                                   const NameTaker& take) const {
  if (kind_ != Kind::EdgeCase) return ok();
  WindowColumns columns = every_ns_ > 0 && !wish.cut_by_ns ? kAllWindowColumns : 0;
  if (name.id.sensor != 0) {
    EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(name.id));
    for (const SentWindows::Span& each : sent.spans)
      if (wish.takes(each)) columns |= each.columns;
  } else if (columns == 0 && !wish.cut_by_ns) {
    EC_ASSIGN_OR_RETURN(const bool has_any, windows_->has_any());
    if (has_any) columns = kAllWindowColumns;
  }
  const std::size_t tags = std::min(there.sensor.find('{'), there.sensor.size());
  const std::string stem = there.sensor.substr(0, tags), tail = there.sensor.substr(tags);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    if ((columns & column_bit(column)) == 0) continue;
    for (const char* field : {"", ".value"}) {
      there.sensor = stem + field + std::string(wire::column_suffix(column)) + tail;
      if (every_ns_ > 0 || !windows_->is_series(name.namespace_name, name.device, there.sensor))
        take(there);
    }
  }
  return ok();
}

Status Eraser::find_gone(const ErasureOrder& order, std::vector<ErasedName>& names,
                         TargetErasure& result) const {
  if (windows_ == nullptr || kind_ != Kind::EdgeCase) return ok();
  for (ErasedName& each : names) {
    if (!each.is_gone || each.is_device ||
        !watched_.takes(each.namespace_name, each.device, each.sensor))
      continue;
    const auto gone = windows_->find_gone(each.namespace_name, each.device, each.sensor);
    if (!gone.ok() && gone.status().code() != StatusCode::Corruption) return gone.status();
    if (gone.ok() && gone->id) each.id = *gone->id;
    if ((gone.ok() && (gone->id || gone->knows_all)) || order.has_all_times) continue;
    worsen(result, ErasureStep::NotPossible, kUnknownLength);
  }
  return ok();
}

// Windows that begin before the range and end in it, or behind.
Result<std::set<std::int64_t>> Eraser::cut_windows(const ErasureOrder& order,
                                                   const std::vector<ErasedName>& names,
                                                   TargetErasure& result) const {
  std::set<std::int64_t> begins_ns;
  const std::int64_t from_ns = order.range.from_ns;
  if (windows_ == nullptr || order.has_all_times || from_ns == INT64_MIN) return begins_ns;
  for (const ErasedName& each : names) {
    if (each.is_device || each.id.sensor == 0) continue;
    EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(each.id));
    for (const SentWindows::Span& span : sent.spans) {
      if (span.has_several_lengths()) {
        if (span.begin_ns < from_ns && from_ns < span.end_ns)
          worsen(result, ErasureStep::NotPossible, kUnknownLength);
        continue;
      }
      const std::int64_t begin_ns = window_begin_ns(from_ns, span.every_ns);
      if (begin_ns < from_ns && span.begin_ns <= begin_ns && begin_ns < span.end_ns)
        begins_ns.insert(begin_ns);
    }
  }
  return begins_ns;
}

Eraser::Groups Eraser::groups_of(const std::vector<ErasedName>& there,
                                 TargetErasure& result) const {
  Groups groups;
  for (const ErasedName& each : there) {
    if (each.is_device && !each.is_gone) continue;
    auto identity = wire::decode_identity(each.identity);
    if (!identity.ok()) {
      worsen(result, ErasureStep::NotPossible, "what its lines were called is not known here");
      continue;
    }
    groups[{database_of(each.namespace_name), identity->measurement, std::move(identity->tags)}]
        .insert(identity->field);
  }
  return groups;
}

}  // namespace edgecase::forward
