#include "compaction/survey.h"

#include <algorithm>

namespace edgecase::engine {

Result<bool> Survey::step(std::uint64_t turns) {
  for (; merge_.valid() && turns > 0; --turns) {
    const UMetaRecord& record = merge_.top().record();
    std::erase_if(open_, [&](const Open& open) { return ByteView(open.last) < record.first; });
    const bool overlaps = !open_.empty();
    if (overlaps) {
      overlap_.overlapping_bytes += record.pointer.size_bytes;
      for (Open& open : open_) {
        if (!open.counted) overlap_.overlapping_bytes += open.bytes;
        open.counted = true;
      }
    }
    open_.push_back({Bytes(record.last), record.pointer.size_bytes, overlaps});
    overlap_.depth = std::max(overlap_.depth, open_.size());
    ++overlap_.items;
    overlap_.item_bytes += record.pointer.size_bytes;
    merge_.top().next_record();
    merge_.settle();
  }
  EC_TRY(merge_.status());
  return !merge_.valid();
}

}  // namespace edgecase::engine
