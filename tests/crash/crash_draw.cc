#include "crash/crash_draw.h"

namespace edgecase::test {

Changes draw_changes(SeededRandom& detail, const PlaceIds& ids, ValueNumber& written) {
  Changes changes;
  for (std::uint64_t n = 1 + detail.below(detail.below(8) == 0 ? 20 : 4); n > 0; --n) {
    Change change;
    change.place = detail.below(kEnginePlaces);
    change.key = detail.below(kKeysPerPlace);
    const std::uint64_t kind = detail.below(20);
    const ValueNumber number = ++written;
    if (ids[change.place] == 0) continue;
    if (kind == 0) {
      change.kind = Change::Kind::RemoveRange;
      change.key_end = change.key + 1 + detail.below(kKeysPerPlace - change.key);
    } else if (kind < 5) {
      change.kind = Change::Kind::Remove;
    } else {
      change.value = number;
    }
    changes.push_back(change);
  }
  return changes;
}

Changes draw_timed_changes(SeededRandom& detail, ValueNumber& written) {
  Changes changes;
  for (std::uint64_t n = 1 + detail.below(12); n > 0; --n) {
    Change change{Change::Kind::Put, kTimedPlace, detail.below(kKeysPerPlace), 0, ++written};
    if (detail.below(12) == 0) change = {Change::Kind::Remove, kTimedPlace, change.key, 0, 0};
    changes.push_back(change);
  }
  return changes;
}

Changes draw_readings(SeededRandom& detail, ValueNumber& written) {
  Changes changes;
  const std::size_t place = kEnginePlaces + detail.below(kSites);
  for (std::uint64_t n = 1 + detail.below(6); n > 0; --n)
    changes.push_back({Change::Kind::Put, place, detail.below(kKeysPerPlace), 0, ++written});
  return changes;
}

}  // namespace edgecase::test
