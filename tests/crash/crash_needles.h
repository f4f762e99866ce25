// Values that must be nowhere any more: what was written to keys that were erased since, once
// erase() has answered. Some bytes of each are looked for on both drives, freed files included.
#pragma once

#include <array>
#include <vector>

#include "crash/crash_state.h"
#include "support/memory_file_system.h"

namespace edgecase::test {

class Needles {
 public:
  // May lie on a drive from now on, whatever becomes of it.
  void note_handed_in(const Changes& changes);
  // As in an encrypted store: it must not lie there in clear, now or ever.
  void note_secret(const Changes& changes);
  // What was written to a namespace that is gone no range of another covers.
  void forget_place(std::size_t place) { handed_in_[place].fill({}); }
  // The range was acknowledged, or the crash may have taken all those that were.
  void note_erased(const Change& range);
  void forget_erased() { erased_.clear(); }
  // Values of a place that have expired, whose bound is over.
  void note_expired(std::size_t place, const std::vector<ValueNumber>& values);
  // erase() answers for all that is erased.
  void note_gone();
  // Corruption: one is still there.
  Status find(MemoryFileSystem& disk);

 private:
  // Numbers of values by key.
  std::array<std::array<std::vector<ValueNumber>, kKeysPerPlace>, kPlaces> handed_in_;
  std::vector<Bytes> erased_;
  std::vector<Bytes> gone_;  // of which the drives have not been told
};

}  // namespace edgecase::test
