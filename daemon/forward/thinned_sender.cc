#include "forward/target.h"

#include <algorithm>
#include <utility>

namespace edgecase::forward {

// Damage of a record: what it told goes again.
Result<SentWindows> ThinnedSender::sent_of(const catalog::SeriesId& id) const {
  if (const auto found = unsettled_.find(id); found != unsettled_.end()) return found->second.now;
  auto sent = parts_.thinned.sent(name_, id);
  if (sent.status().code() == StatusCode::Corruption) return SentWindows();
  return sent;
}

Status ThinnedSender::load() {
  if (is_loaded_) return ok();
  const auto kept = parts_.thinned.sent_readings(name_);
  if (!kept.ok() && kept.status().code() != StatusCode::Corruption) return kept.status();
  readings_ = kept.ok() ? kept->value_or(0) : 0;
  is_loaded_ = true;
  return ok();
}

Result<bool> ThinnedSender::has_any() const {
  const auto kept = parts_.thinned.sent_readings(name_);
  if (kept.status().code() == StatusCode::Corruption) return true;
  EC_TRY(kept.status());
  return kept->has_value();
}

Result<ThinnedSender::Part> ThinnedSender::read(BatchReader& reader, std::size_t lines_max) {
  EC_TRY(load());
  if (!is_sweeping_) {
    is_sweeping_ = true;
    generation_ = parts_.thinned.generation();
    behind_.reset();
  }
  Part part;
  part.batch.revocations = parts_.engine.revocations();
  EC_ASSIGN_OR_RETURN(const std::vector<Thinned::Owed> some,
                      parts_.thinned.owed(name_, behind_, kSeriesAtOnce));
  // Windows of all that is owed: they came with it.
  const std::shared_ptr<const Snapshot> snapshot = parts_.engine.snapshot();
  part.is_whole = some.size() < kSeriesAtOnce;
  for (const auto& [id, owed] : some) {
    if (part.batch.is_full(lines_max)) {
      part.is_whole = false;
      break;
    }
    const SeriesNames::Series* const there = reader.series_of(id);
    const auto here = there == nullptr ? Result<catalog::SeriesEntry>(not_found("erased"))
                                       : parts_.catalog.series_at(there->row);
    if (!here.ok() || !(here->id == id)) {
      part.gone.push_back(id);
    } else if (there->is_wanted) {
      EC_ASSIGN_OR_RETURN(const bool is_done,
                          read_series(*here, *there, owed, snapshot, reader, lines_max, part));
      if (!is_done) {
        part.is_whole = false;
        break;
      }
    }
    part.last = id;
  }
  return part;
}

Result<bool> ThinnedSender::read_series(const catalog::SeriesEntry& here,
                                        const SeriesNames::Series& there, const OwedWindows& owed,
                                        const std::shared_ptr<const Snapshot>& snapshot,
                                        BatchReader& reader, std::size_t lines_max,
                                        Part& part) const {
  Step step{.id = here.id, .before = {}, .after = {}};
  EC_ASSIGN_OR_RETURN(step.before, sent_of(here.id));
  const std::int64_t from_ns = std::max(owed.from_ns, step.before.done_to_of(owed));
  if (from_ns >= owed.to_ns) return true;
  if (parts_.keeps_names)
    step.hash = Thinned::hash_of(here.namespace_name, here.device, here.sensor);
  step.after = step.before;
  step.after.debt = owed.debt;
  step.after.done_to_ns = owed.to_ns;
  // Columns alone have no readings beside them.
  const WindowColumns columns =
      parts_.every_ns > 0 ? kAllWindowColumns : free_columns(parts_.catalog, here);
  std::uint64_t readings = 0;
  bool is_done = true;
  EC_TRY(windows_.each_tiered(here, from_ns, owed.to_ns, snapshot, [&](const WholeWindow& window) {
    if (part.batch.is_full(lines_max)) {
      is_done = false;
      step.after.done_to_ns = std::max(from_ns, window.begin_ns);
      return false;
    }
    std::int64_t end_ns = 0;
    if (__builtin_add_overflow(window.begin_ns, window.every_ns, &end_ns)) end_ns = INT64_MAX;
    if (columns == 0) return true;
    step.after.note({window.begin_ns, end_ns, window.every_ns, columns});
    reader.add_window(here.id, there, window, columns, part.batch);
    readings += window.count;
    return true;
  }));
  // The first window may have readings that went as they came.
  const std::uint64_t left = owed.readings - std::min(owed.readings, step.before.readings);
  step.after.readings += std::min(readings, left);
  if (readings > 0) reader.add_column_rules(here.id, there, step.after, part.batch);
  part.steps.push_back(std::move(step));
  return is_done;
}

Status ThinnedSender::announce(const Part& part) {
  std::vector<Thinned::Sent> some;
  std::vector<Thinned::Named> named;
  for (const Step& each : part.steps) {
    if (each.after.spans == each.before.spans) continue;
    auto kept = parts_.thinned.sent(name_, each.id);
    if (kept.status().code() == StatusCode::Corruption) kept = SentWindows();
    EC_ASSIGN_OR_RETURN(SentWindows announced, std::move(kept));
    announced.spans = each.after.spans;
    some.emplace_back(each.id, std::move(announced));
    if (!each.hash.empty()) named.emplace_back(each.hash, each.id);
  }
  return some.empty() ? ok() : parts_.thinned.write(name_, some, readings_, named);
}

void ThinnedSender::sent(Part part, std::int64_t now_ns, bool may_forget) {
  for (Step& each : part.steps) {
    Unsettled& unsettled =
        unsettled_.try_emplace(each.id, Unsettled{{}, each.before.readings, 0}).first->second;
    unsettled.now = std::move(each.after);
    unsettled.sent_ns = now_ns;
  }
  // Where that fails, the next sweep does it.
  if (may_forget) static_cast<void>(parts_.thinned.remove_owed(name_, part.gone).ok());
  if (may_forget && !parts_.keeps_names) static_cast<void>(forget_sent(part.gone).ok());
  if (part.last) behind_ = part.last;
  if (!part.is_whole) return;
  is_sweeping_ = false;
  done_generation_ = generation_;
}

Status ThinnedSender::forget_sent(const std::vector<catalog::SeriesId>& some) {
  std::vector<Thinned::Named> nameless;
  for (const catalog::SeriesId& each : some) nameless.emplace_back(Bytes(), each);
  return parts_.thinned.remove_sent(name_, nameless);
}

Status ThinnedSender::erased(const std::vector<Thinned::Named>& some) {
  if (!parts_.keeps_names) return ok();
  for (const Thinned::Named& each : some) unsettled_.erase(each.second);
  return parts_.thinned.remove_sent(name_, some);
}

Status ThinnedSender::keep(std::int64_t now_ns) {
  std::vector<Thinned::Sent> some;
  std::uint64_t readings = readings_;
  for (const auto& [id, each] : unsettled_) {
    if (now_ns - each.sent_ns < settle_ns_) continue;
    some.emplace_back(id, each.now);
    readings += each.now.readings - std::min(each.now.readings, each.kept_readings);
  }
  if (some.empty()) return ok();
  EC_TRY(parts_.thinned.write(name_, some, readings));
  readings_ = readings;
  for (const Thinned::Sent& each : some) unsettled_.erase(each.first);
  return ok();
}

void ThinnedSender::go_back() {
  if (unsettled_.empty()) return;
  unsettled_.clear();
  is_sweeping_ = false;
  done_generation_ = 0;
}

}  // namespace edgecase::forward
