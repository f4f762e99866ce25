// Reads strips: positions within a lane of one, a cursor over many strips. See series_strips.h.
#pragma once

#include <memory>
#include <vector>

#include "base/entry.h"
#include "buffer/series_strips.h"

namespace edgecase::engine {

inline constexpr std::size_t kOrdinalKeyBytes = 8;
inline constexpr std::size_t kTaggedBytes = 9;

EntryKind strip_kind(const SeriesEntry& entry);
// A number's bytes are put together in `number`.
ByteView strip_value(const SeriesEntry& entry, char (&number)[kTaggedBytes]);

// A place in a lane; no entry means past either end.
struct StripPosition {
  const StripChunk* chunk = nullptr;
  std::uint32_t index = 0;

  const SeriesEntry* entry() const { return chunk == nullptr ? nullptr : chunk->entries() + index; }
  void next();
  void previous();
  // Ahead, within this chunk and one behind it.
  void advance(std::uint32_t count);
  // Entries from here to the end of the chunk.
  std::uint32_t left_in_chunk() const;
};

StripPosition first_of(const StripLane& lane);
StripPosition last_of(const StripLane& lane);
// Entries that are added meanwhile may be found or not.
StripPosition first_at_or_after(const StripLane& lane, std::uint64_t ordinal);
// A lane's sequences ascend as its ordinals do.
StripPosition first_newer(const StripLane& lane, SequenceNumber than);

// Over strips[from, from + count), which are in order, within [lower, upper), the entries with
// newer_than < sequence <= visible. Keeps `owner`.
std::unique_ptr<EntryCursor> make_strip_cursor(
    std::shared_ptr<const void> owner, std::shared_ptr<const std::vector<const Strip*>> strips,
    std::size_t from, std::size_t count, ByteView lower, ByteView upper, Direction direction,
    SequenceNumber visible, SequenceNumber newer_than);

}  // namespace edgecase::engine
