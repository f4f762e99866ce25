// Entries and cursors over them, the engine's inner currency; and the reader of batches' entries.
//
// A *full key* is the namespace id, 4 bytes big-endian, then the user's key: byte order of full
// keys is the order of namespaces, then of keys. Entries are ordered by full key; among equal full
// keys the newest comes first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/iterator.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

using SequenceNumber = std::uint64_t;  // 1 is the first write of a store; grows by one an entry

enum class EntryKind : unsigned char {
  Put = 1,
  Delete = 2,
  DeleteRange = 4,  // in batches alone
  EraseRange = 5,   // the same
};

// As a batch holds it; borrowed. It is handed on by reference: views that are copied as a whole
// just after their halves were written have to wait for both.
struct BatchEntry {
  EntryKind kind = EntryKind::Put;
  NamespaceId namespace_id = 0;
  ByteView key;
  ByteView value;  // empty for a delete; of a range the upper key, `key` being the lower
  ByteView end;    // of a batch that borrows, what belongs behind `value`

  bool is_range() const { return kind == EntryKind::DeleteRange || kind == EntryKind::EraseRange; }
};

inline constexpr std::size_t kNamespacePrefixBytes = 4;

inline void encode_namespace(char* out, NamespaceId id) {
  for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<char>(id >> shift);
}
inline void append_full_key(Bytes& out, NamespaceId id, ByteView key) {
  char prefix[kNamespacePrefixBytes];
  encode_namespace(prefix, id);
  out.append(prefix, kNamespacePrefixBytes).append(key);
}
inline Bytes make_full_key(NamespaceId id, ByteView key) {
  Bytes full;
  full.reserve(kNamespacePrefixBytes + key.size());
  append_full_key(full, id, key);
  return full;
}
inline NamespaceId namespace_of(ByteView full_key) {
  return static_cast<NamespaceId>(static_cast<unsigned char>(full_key[0])) << 24 |
         static_cast<NamespaceId>(static_cast<unsigned char>(full_key[1])) << 16 |
         static_cast<NamespaceId>(static_cast<unsigned char>(full_key[2])) << 8 |
         static_cast<NamespaceId>(static_cast<unsigned char>(full_key[3]));
}
inline ByteView user_key_of(ByteView full_key) {
  return full_key.substr(kNamespacePrefixBytes);
}

// How entries of a time series lie where many of them are handed on at once: full keys that are
// alike but for their last 8 bytes, a big-endian ordinal.
enum class SeriesClass : unsigned char { Delete = 0, Float = 1, Integer = 2, Other = 3 };

struct SeriesEntry {
  std::uint64_t ordinal;
  std::uint64_t sequence_and_class;  // sequence * 4 + SeriesClass
  std::uint64_t payload;  // what a number has behind its tag, little-endian; Other: see its owner

  SequenceNumber sequence() const { return sequence_and_class >> 2; }
  SeriesClass value_class() const { return static_cast<SeriesClass>(sequence_and_class & 3); }
};

// Entries of one series in key order, none of class Other.
struct SeriesRun {
  ByteView prefix;  // of the full keys
  std::span<const SeriesEntry> entries;
};

// One entry, borrowed.
struct EntryView {
  ByteView full_key;
  SequenceNumber sequence = 0;
  EntryKind kind = EntryKind::Put;
  ByteView value;
};

// Numbers of one series that are taken many at once, from one cursor after another.
struct NumberRun {
  // `their_sequences` becomes empty; its memory is used again.
  NumberRun(ByteView of_prefix, bool is_float, NumberColumns& into,
            std::vector<SequenceNumber>& their_sequences)
      : prefix(of_prefix), columns(into), sequences(their_sequences) {
    columns.is_float = is_float;
    sequences.clear();
  }

  const ByteView prefix;  // of the full keys
  NumberColumns& columns;
  std::vector<SequenceNumber>& sequences;

  std::size_t size() const { return columns.size(); }
  std::size_t room() const { return NumberColumns::kMax - std::min(NumberColumns::kMax, size()); }
  void add(std::uint64_t ordinal, std::uint64_t bits, SequenceNumber sequence) {
    columns.ordinals.push_back(ordinal);
    columns.bits.push_back(bits);
    sequences.push_back(sequence);
  }
};

// A group that stands where a cursor does, unread. The keys are borrowed.
struct WholeGroup {
  NumberSummary numbers;
  ByteView first;  // full keys
  ByteView last;
  SequenceNumber sequence_max = 0;
  // Where its item lies, which never changes there.
  std::uint64_t file_number = 0;
  std::uint64_t offset_bytes = 0;
};

// A cursor over one source (a memtable, a table, a merge) in one direction. Owned by one thread.
// The key of the current entry is known without reading a value, so that a merge of many tables
// reads only the groups it returns something from. Deletes are entries like any other.
class EntryCursor {
 public:
  virtual ~EntryCursor() = default;

  // False at the end, and after an error: look at status().
  virtual bool valid() const = 0;
  virtual const Status& status() const = 0;
  // Only when valid(). The view holds until next() or seek().
  virtual ByteView full_key() const = 0;
  // Makes sequence(), kind() and value() answerable; may read a drive. On an error valid() becomes
  // false. Idempotent and cheap once loaded.
  virtual Status load() = 0;
  // Only after load().
  virtual SequenceNumber sequence() const = 0;
  virtual EntryKind kind() const = 0;
  virtual ByteView value() const = 0;
  // The value after load(), from a source that was opened with `large_value_bytes`, where it is
  // that large and not in memory; value() is empty then. Null: value() has it. Errors: those of
  // load(); NotFound: it was erased since.
  virtual Result<std::unique_ptr<LargeValue>> large_value() {
    return std::unique_ptr<LargeValue>();
  }

  virtual void next() = 0;
  // Instead of next(), for speed: the current entry with those behind it, as far as they lie
  // together; the cursor then stands behind them. Empty if there is no such run here: it has not
  // moved. The views hold as long as the source.
  virtual SeriesRun take_run() { return {}; }
  // For speed: the current entry and those behind it that lie decoded together. The cursor has not
  // moved; the views hold until it does. Empty where entries are not to be had like that, or not
  // before load().
  virtual std::span<const EntryView> loaded_run() { return {}; }
  // For speed: the current entry and those behind it, as far as they are numbers of the run's
  // series and class, lie before `until` (reverse: behind it; empty: no bound) and are to be had
  // without reading on. They are added to the run; the cursor then stands behind them. 0: there are
  // none, it has not moved.
  virtual std::size_t take_numbers(ByteView /*until*/, NumberRun& /*run*/) { return 0; }
  // Whether load() reads no drive, and views of entries hold as long as the source, wherever the
  // cursor goes.
  virtual bool is_in_memory() const { return false; }
  // Whether views of values of 64 KiB and more hold as long as the source: those of a memtable.
  virtual bool keeps_large_values() const { return is_in_memory(); }
  // As `count` calls of next(), for the whole of what loaded_run() answered.
  virtual void skip(std::size_t count) {
    for (; count > 0 && valid(); --count) next();
  }
  // Only when valid(): whether the current entry is the first (reverse: the last) of a group that
  // lies within the cursor's bounds, that is not read yet, and whose numbers are known all the
  // same: `group`, whose views hold until the cursor moves. Nothing is read for it.
  virtual bool whole_group(WholeGroup& /*group*/) { return false; }
  // Behind it.
  virtual void skip_group() {}
  // Forward: to the first entry with full key >= `full_key`; reverse: to the last with full key <=
  // it.
  virtual void seek(ByteView full_key) = 0;
  // After an error: the full keys, both included, that the source cannot tell of; elsewhere it can
  // still be read, by another cursor. False: the error is not of some keys alone.
  virtual bool damaged_keys(Bytes& /*first*/, Bytes& /*last*/) const { return false; }
};

// What is told of an item (a group or a large value) beside its bytes. The keys are borrowed.
struct ItemSummary {
  ByteView first;  // full keys, both included
  ByteView last;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
};

// `entries` are in key order, at least one.
inline ItemSummary summary_of(std::span<const EntryView> entries) {
  ItemSummary summary;
  summary.first = entries.front().full_key;
  summary.last = entries.back().full_key;
  summary.entries = entries.size();
  summary.sequence_min = entries.front().sequence;
  for (const EntryView& entry : entries) {
    if (entry.kind == EntryKind::Delete) ++summary.deletes;
    if (entry.sequence < summary.sequence_min) summary.sequence_min = entry.sequence;
    if (entry.sequence > summary.sequence_max) summary.sequence_max = entry.sequence;
  }
  return summary;
}

// What a point lookup found in one source.
struct FoundEntry {
  SequenceNumber sequence = 0;
  EntryKind kind = EntryKind::Put;
  Bytes value;
};

// The random number that both directories of one store share.

using StoreId = std::array<std::uint8_t, 16>;

// Stands in item heads (value_format.h) and in UMeta records (umeta_block.h): numbers never
// change.
enum class ItemType : unsigned char {
  Single = 1,       // one entry
  PlainGroup = 2,   // many, GroupCodec::Plain
  SeriesGroup = 3,  // many, GroupCodec::Series
};

// ValuePointer: the place of an item in the value layer, and its sort.
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

// Reads the bytes of a WriteBatch (layout: base/write_batch.cc), for applying to a memtable and for
// WAL replay. Used by one thread; what it returns points into the bytes it was given and into
// itself, until the next next().
//
//   WriteBatchReader reader(batch.encoded());
//   while (const auto* entry = reader.next()) memtable.add(...);
//   EC_TRY(reader.status());

// One more kind of encoded entries, beside those of EntryKind.
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
