// Sums of the numbers of one group in windows, as Iterator::take_window_sums() hands them out, and
// those that were asked for, kept in the cache for whoever asks again. Items are never changed, and
// file numbers never used twice: what is kept goes with the file, or where an erasure overwrites
// items of it. Whether a group may be taken whole is asked anew each time, of metadata and of what
// is hidden; so no sum outlives a reading that is in it. Any thread.
//
// A dashboard of a day has tens of thousands of groups with nine windows each. So sums are kept in
// few bytes, those of neighbours in a file together:
//
//   group   1 byte: bits 0-1: low parts: 0 none, 1 floats, 2 doubles;
//                   bit 2: windows follow each other, and all but the first and the last hold the
//                   same count
//           varint: windows
//           with bit 2, varints: counts of the first, of those between, of the last
//           else for each window, varints: how many windows behind the one before; count
//           1 byte: k, at most 6: high parts, each the double next to its sum, are m / 10^k;
//                   zigzag varints: m less the one before; 255: 8 bytes each
//           low parts, as many
#pragma once

#include <cstdint>
#include <memory>

#include "base/entry.h"
#include "edgecase/iterator.h"

namespace edgecase::engine {

class BlockCache;

// Whether windows are so many times shorter than the group, and yet hold so many numbers each, that
// sums are worth it.
bool is_cut_by(const NumberSummary& group, std::uint64_t every);

// `columns` are all doubles of a group, forward. False: some sum is none that a double can hold.
bool sum_windows(const NumberColumns& columns, std::uint64_t every, std::uint64_t phase,
                 WindowSums& sums);

// Appends `sums`; take_window_sums() takes them again, bit for bit. `sums` has every, phase and its
// ordinals already. False: malformed.
void append_window_sums(Bytes& out, const WindowSums& sums);
[[nodiscard]] bool take_window_sums(ByteView input, WindowSums& sums);

// Whether what was not found is worth keeping. Groups that lie together are told alike: a scan has
// one, from its beginning on.
struct SumsAdmission {
  std::uint64_t file_number = 0;
  std::uint64_t place = 0;
  bool admits = false;
};

class KeptSums {
 public:
  explicit KeptSums(BlockCache& cache) : cache_(cache) {}

  // What a group was summed up to, if that is kept; else `admission` tells whether to keep it.
  // Whoever asks has made sure that the group is there, and whole, for him.
  bool find(const WholeGroup& group, std::uint64_t every, std::uint64_t phase, WindowSums& sums,
            SumsAdmission& admission);
  void keep(const WholeGroup& group, const WindowSums& sums);
  // What is kept of a value file.
  void forget(std::uint64_t file_number);

 private:
  class Stretch;

  std::shared_ptr<const Stretch> stretch_of(const WholeGroup& group, std::uint64_t every,
                                            std::uint64_t phase);

  BlockCache& cache_;
};

}  // namespace edgecase::engine
