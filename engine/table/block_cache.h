// A bounded set of immutable objects read from files: blocks of metadata records, items and their
// pages. Sharded CLOCK: what was asked for since the hand last passed stays, a block of records for
// some passes more, because it leads to a hundred items and is dear to decode. Thread-safe; what is
// handed out lives on after it was evicted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace edgecase::engine {

enum class CacheClass : unsigned char { Item, Records };

class BlockCache {
 public:
  explicit BlockCache(std::uint64_t capacity_bytes);
  ~BlockCache();

  // Null when it is not there. T is what was inserted for the file: files hold objects of one type.
  template <typename T>
  std::shared_ptr<const T> find(std::uint64_t file_number, std::uint64_t offset) {
    return std::static_pointer_cast<const T>(find_object(file_number, offset));
  }
  // The same; where it is not there, `admits` tells whether an item of so many bytes is worth
  // keeping: while there is room, and afterwards what was wanted twice within as many misses as the
  // cache has items. Where all are wanted alike, taking each in for another would cost more than it
  // saves.
  template <typename T>
  std::shared_ptr<const T> find_or_note(std::uint64_t file_number, std::uint64_t offset,
                                        std::uint64_t bytes, bool& admits) {
    return std::static_pointer_cast<const T>(
        find_or_note_object(file_number, offset, bytes, admits));
  }
  // `bytes` is what the object takes. Objects larger than a part of the capacity are not kept.
  void insert(std::uint64_t file_number, std::uint64_t offset, std::shared_ptr<const void> object,
              std::uint64_t bytes, CacheClass cache_class);
  void erase_file(std::uint64_t file_number);
  // What does not fit any more goes at once.
  void set_capacity(std::uint64_t capacity_bytes);
  std::uint64_t used_bytes() const;

 private:
  class Shard;

  std::shared_ptr<const void> find_object(std::uint64_t file_number, std::uint64_t offset);
  std::shared_ptr<const void> find_or_note_object(std::uint64_t file_number, std::uint64_t offset,
                                                  std::uint64_t bytes, bool& admits);
  Shard& shard_of(std::uint64_t file_number, std::uint64_t offset);

  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace edgecase::engine
