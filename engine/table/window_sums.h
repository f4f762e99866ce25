// Sums up the numbers of one group in windows, as Iterator::take_window_sums() hands them out;
// those that are asked for again TableCache keeps, under the place of the group's item. Items are
// never changed, and file numbers never used twice: what is kept goes with the file, or where an
// erasure overwrites items of it (TableCache::forget_items()). Whether a group may be taken whole
// is asked anew each time, of metadata and of what is hidden; so no sum outlives a reading that is
// in it. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "edgecase/iterator.h"

namespace edgecase::engine {

// Whether windows are so many times shorter than the group, and yet hold so many numbers each, that
// sums are worth it.
bool is_cut_by(const NumberSummary& group, std::uint64_t every);

// `columns` are all doubles of a group, forward. Null: some sum is none that a double can hold.
std::shared_ptr<const WindowSums> sum_windows(const NumberColumns& columns, std::uint64_t every,
                                              std::uint64_t phase);

}  // namespace edgecase::engine
