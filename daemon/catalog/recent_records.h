// Records that were read lately, by their names, so that who reads the same again and again asks
// the engine once. When they take more than kBytesMax all go.
//
// A reader takes changes() before it reads, and notes what it found with that: it is kept only if
// no record has changed since. Who changes a record forgets it when the change is durable.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "edgecase/bytes.h"
#include "edgecase/mutex.h"

namespace edgecase::catalog {

class RecentRecords {
 public:
  static constexpr std::size_t kBytesMax = 1u << 20;
  static constexpr std::size_t kRecordMaxBytes = 1024;  // longer ones are not kept

  std::optional<Bytes> find(const Bytes& name) const EC_EXCLUDES(mutex_);
  std::uint64_t changes() const EC_EXCLUDES(mutex_);
  void note(const Bytes& name, const Bytes& record, std::uint64_t changes_before);
  void forget(const Bytes& name);
  // Where it is not known what has changed.
  void forget_all();
  std::size_t memory_bytes() const;

 private:
  // What an entry takes besides its bytes: the node of the map, and what the heap adds.
  static constexpr std::size_t kEntryBytes = 144;
  static std::size_t bytes_of(const Bytes& name, const Bytes& record) {
    return kEntryBytes + name.capacity() + record.capacity();
  }

  mutable SharedMutex mutex_;
  std::uint64_t changes_ EC_GUARDED_BY(mutex_) = 0;
  std::map<Bytes, Bytes> records_ EC_GUARDED_BY(mutex_);
  std::size_t bytes_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::catalog
