// ValuePointer: the place of an item in the value layer, and its sort.
#pragma once

#include <cstdint>

namespace edgecase::engine {

// Stands in item heads (value_format.h) and in UMeta records (umeta_format.h): numbers never
// change.
enum class ItemType : unsigned char {
  Single = 1,       // one entry
  PlainGroup = 2,   // many, GroupCodec::Plain
  SeriesGroup = 3,  // many, GroupCodec::Series
};

struct ValuePointer {
  std::uint64_t file_number = 0;
  std::uint64_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;

  friend bool operator==(const ValuePointer&, const ValuePointer&) = default;
};

// How many bytes of a value file some table's items take.
struct ValueFileUse {
  std::uint64_t file_number = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const ValueFileUse&, const ValueFileUse&) = default;
};

}  // namespace edgecase::engine
