#include "compaction/settling_source.h"

#include <algorithm>
#include <utility>

#include "compaction/picker.h"
#include "compaction/purge.h"

namespace edgecase::engine {
namespace {

// This many range deletes are applied under load, too: writers of others get Busy at
// range_deletes_max().
constexpr std::size_t kRangeDeletesSoon = 256;

}  // namespace

Result<Offer> SettlingSource::next(const LaneView& view) {
  const Version& version = *view.mergeable;
  // What range deletes and newer small values hide would otherwise stay until something else asks
  // for a merge there.
  if (view.idle || version.range_delete_list.size() >= kRangeDeletesSoon) {
    PurgeContext everywhere;
    everywhere.within.push_back({});
    if (auto plan = pick_purge(version, everywhere)) return Offer::merge(*std::move(plan));
  }
  FileNumber newest = 0;
  for (const TablePointer& table : version.tables) newest = std::max(newest, table->number);
  if (!view.idle) return Offer::waits();
  return newest == settled_up_to_ ? Offer::none() : settle(version, newest);
}

// In quiet garbage is worth less of a trigger.
Offer SettlingSource::settle(const Version& version, FileNumber newest) {
  if (auto plan = pick_level0(version, 1)) return Offer::merge(*std::move(plan));
  if (auto plan = pick_singles(version, kWindowMinIdle, kSinglesShareQuiet))
    return Offer::merge(*std::move(plan));
  if (auto plan = pick_evacuation(version, kQuietEvacuation)) return Offer::merge(*std::move(plan));
  settled_up_to_ = newest;
  garbage_.settle(version);
  return Offer::step();
}

}  // namespace edgecase::engine
