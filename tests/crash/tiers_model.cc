#include "crash/tiers_model.h"

#include <algorithm>

#include "query/cursors.h"

namespace edgecase::test {
namespace {

bool holds(const std::vector<std::int64_t>& lengths, std::int64_t every_ns) {
  return std::find(lengths.begin(), lengths.end(), every_ns) != lengths.end();
}

}  // namespace

void ModelWindow::add(const ModelWindow& later) {
  if (later.count == 0) return;
  if (count == 0) {
    *this = later;
    return;
  }
  count += later.count;
  sum += later.sum;
  min = std::min(min, later.min);
  max = std::max(max, later.max);
  last = later.last;
}

bool ModelSeries::is_erased(std::int64_t time_ns) const {
  return std::any_of(erased_.begin(), erased_.end(), [=](const auto& range) {
    return range.first <= time_ns && time_ns < range.second;
  });
}

void ModelSeries::erase(const Range& range) {
  raw_.erase(raw_.lower_bound(range.from_ns), raw_.lower_bound(range.to_ns));
  for (auto& [every_ns, windows] : tiers_) {
    windows.erase(windows.lower_bound(query::window_start(range.from_ns, every_ns)),
                  windows.lower_bound(range.to_ns));
  }
  erased_.emplace_back(range.from_ns, range.to_ns);
}

// A tier that is new is made of the finest that fits; one that is no longer named goes.
void ModelSeries::follow_rule(const std::vector<std::int64_t>& every_ns) {
  std::map<std::int64_t, Windows> next;
  for (const std::int64_t wanted : every_ns) {
    Windows& windows = next[wanted];
    if (holds(mark_.every_ns, wanted)) {
      windows = tiers_[wanted];
      continue;
    }
    const auto source = std::find_if(mark_.every_ns.begin(), mark_.every_ns.end(),
                                     [=](std::int64_t each) { return wanted % each == 0; });
    if (source == mark_.every_ns.end()) continue;
    for (const auto& [begin_ns, window] : tiers_[*source])
      windows[query::window_start(begin_ns, wanted)].add(window);
  }
  tiers_ = std::move(next);
  mark_.every_ns = every_ns;
}

std::string ModelSeries::follow(const retention::TierMark& mark) {
  if (mark.every_ns.empty()) {
    tiers_.clear();
    mark_ = {};
    return "";
  }
  if (mark.before_ns < mark_.before_ns) return "a mark goes back";
  if (mark.every_ns != mark_.every_ns) follow_rule(mark.every_ns);
  const auto end = raw_.lower_bound(mark.before_ns);
  for (auto at = raw_.begin(); at != end; ++at) {
    for (const std::int64_t every_ns : mark.every_ns)
      tiers_[every_ns][query::window_start(at->first, every_ns)].add(at->second);
  }
  raw_.erase(raw_.begin(), end);
  mark_.before_ns = mark.before_ns;
  return "";
}

ModelSeries::Windows ModelSeries::answer(std::int64_t every_ns) const {
  Windows windows;
  const auto tier = std::find_if(mark_.every_ns.rbegin(), mark_.every_ns.rend(),
                                 [=](std::int64_t each) { return every_ns % each == 0; });
  if (tier != mark_.every_ns.rend() && tiers_.contains(*tier)) {
    for (const auto& [begin_ns, window] : tiers_.at(*tier))
      windows[query::window_start(begin_ns, every_ns)].add(window);
  }
  for (const auto& [time_ns, value] : raw_)
    windows[query::window_start(time_ns, every_ns)].add(value);
  return windows;
}

}  // namespace edgecase::test
