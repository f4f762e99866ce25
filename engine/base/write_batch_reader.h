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

struct BatchEntry {
  EntryKind kind = EntryKind::Put;
  NamespaceId namespace_id = 0;
  ByteView key;
  ByteView value;  // empty for a delete; of a range the upper key, `key` being the lower
  ByteView end;    // of a batch that borrows, what belongs behind `value`

  bool is_range() const { return kind == EntryKind::DeleteRange || kind == EntryKind::EraseRange; }
};

class WriteBatchReader {
 public:
  explicit WriteBatchReader(ByteView encoded) : begin_(encoded.data()), rest_(encoded) {}
  // What the batch borrows too.
  explicit WriteBatchReader(const WriteBatch& batch)
      : begin_(batch.encoded().data()), rest_(batch.encoded()), borrowed_(batch.borrowed()) {}
  WriteBatchReader(const WriteBatchReader&) = delete;
  WriteBatchReader& operator=(const WriteBatchReader&) = delete;

  // nullptr at the end, and at bytes that are no entry: then status() is Corruption with the offset
  // within the batch, and stays so.
  const BatchEntry* next();
  const Status& status() const { return status_; }

 private:
  const BatchEntry* next_whole(unsigned char kind, ByteView input);
  const BatchEntry* next_near(ByteView input);
  const BatchEntry* damaged(const char* what);
  bool take_value(ByteView& input);

  const char* begin_;
  ByteView rest_;
  std::span<const WriteBatch::Borrowed> borrowed_;  // those that are still to come
  BatchEntry entry_;
  bool near_possible_ = false;  // key_ holds the key of the entry before
  char key_[kNearKeyMaxBytes];
  Status status_;
};

}  // namespace edgecase::engine
