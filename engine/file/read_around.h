// A file read at random for the first time since it was opened, from a drive that takes nearly as
// long for a page as for a hundred: after the first read in each region the kernel loads all of it,
// so that a store which fits in memory is there soon. Each region once; none where the whole store
// would fill more than half of this machine's memory: its files would push each other out, and the
// drive would read half a megabyte for each value. What counts is the store, not what is open of
// it, of which there are never more than so many files. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "file/descriptor.h"

namespace edgecase::engine {

class ReadAround {
 public:
  static constexpr std::uint64_t kRegionBytes = 512u << 10;

  ReadAround(std::uint64_t file_bytes, std::uint64_t store_bytes);

  // After a read of it, which had to wait for no more than it asked for; nor does anybody for the
  // rest.
  void touch(const Descriptor& file, std::uint64_t offset, std::uint64_t size);

 private:
  const std::uint64_t file_bytes_;                               // 0: not read around
  const std::unique_ptr<std::atomic<std::uint64_t>[]> touched_;  // a bit a region
};

}  // namespace edgecase::engine
