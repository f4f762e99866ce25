// Reads the bytes of a WriteBatch (layout: base/write_batch.cc), for applying to a memtable and for
// WAL replay. Used by one thread; what it returns points into the bytes it was given and into
// itself, until the next next().
//
//   WriteBatchReader reader(batch.encoded());
//   while (const auto* entry = reader.next()) memtable.add(...);
//   EC_TRY(reader.status());
#pragma once

#include <cstddef>
#include <span>

#include "base/entry.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

// The third kind of encoded entries, beside those of EntryKind.
inline constexpr unsigned char kNearPut = 3;
inline constexpr std::size_t kNearKeyMaxBytes = 127;

class WriteBatchReader {
 public:
  explicit WriteBatchReader(ByteView encoded)
      : begin_(encoded.data()), position_(begin_), stop_(begin_ + encoded.size()) {}
  // What the batch borrows too.
  explicit WriteBatchReader(const WriteBatch& batch) : WriteBatchReader(batch.encoded()) {
    borrowed_ = batch.borrowed();
  }
  WriteBatchReader(const WriteBatchReader&) = delete;
  WriteBatchReader& operator=(const WriteBatchReader&) = delete;

  // nullptr at the end, and at bytes that are no entry: then status() is Corruption with the offset
  // within the batch, and stays so.
  const BatchEntry* next();
  const Status& status() const { return status_; }

 private:
  const BatchEntry* next_whole(unsigned char kind);
  const BatchEntry* next_near();
  const BatchEntry* damaged(const char* what);
  const char* take_value(const char* from);
  const char* take_long_value(const char* from);
  ByteView rest_from(const char* from) const {
    return ByteView(from, static_cast<std::size_t>(stop_ - from));
  }

  const char* begin_;
  // Where the next entry begins, and the end. Pointers: a view that a call has changed goes through
  // memory, and reading it at once as a whole waits for both halves to be written.
  const char* position_;
  const char* const stop_;
  std::span<const WriteBatch::Borrowed> borrowed_;  // those that are still to come
  BatchEntry entry_;
  bool near_possible_ = false;                      // key_ holds the key of the entry before
  alignas(8) char key_[kNearKeyMaxBytes + 1] = {};  // whole words
  Status status_;
};

}  // namespace edgecase::engine
