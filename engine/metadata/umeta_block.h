// A block of UMeta records and their filters, down to the bits (FilterShape), and the layout of the
// metadata tables that blocks are in.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "edgecase/bytes.h"
#include "edgecase/options.h"
#include "file/table_file.h"

namespace edgecase::engine {

// Bytes of a metadata table (`.meta`): one UMeta record an item of the value layer. Head and tail:
// file/table_file.h, magic "ECUMETA1", version 1. Integers are little-endian, varints as in
// base/coding.h.
//
//   head (48)  block*  index  namespaces  properties  tail (56)
//
//   block   offset  size  field
//                0     4  crc32c of file number (8), the block's offset (8), bytes 4 to the end
//                4     4  where the filters start, from the start of the block
//                8        varint: records; the records, their item key ranges ascending and
//                disjoint
//                         filters of the records that have one, in their order, without gaps; each:
//                         1 byte: probes a key; then its bits (umeta_block.h)
//
//   Of an encrypted table bytes 4 to the end are sealed, their place the block's offset.
//
//   A block is closed at kUMetaBlockBytes of records or kUMetaFilterBytes of filters.
//
//   record  1 byte: item type (value_format.h) + 8 when it has a summary of its numbers
//                   + 16 when the value file is another than the record before's
//                   + 32 when all sequences of the item are equal + 64 when it has a filter
//                   + 128 when it has a page index
//           varint: leading bytes of the first key shared with the first key of the record before
//           length-prefixed: rest of the first full key
//           groups: varint: leading bytes of the last key shared with the first
//                   length-prefixed: rest of the last full key
//                   varint: entries
//                   varint: deletes
//           single: varint: deletes (0 or 1); first and last key are the same, entries is 1
//           varint: largest sequence
//           unless + 32: varint: largest - smallest sequence
//           with + 16, and in the first record of a block: varint: value file number
//           varint, zigzag: offset in the file - end of the item of the record before; from 0 in
//           the
//                   first record of a block and with + 16
//           varint: size of the item
//           with + 64: varint: size of its filter
//           with + 128: length-prefixed: page index of a plain group (value/group.h), which
//           like the filter goes with the record from table to table
//           with + 8 (series groups): length-prefixed: summary of its numbers (number_summary.h),
//           which goes along as well
//
//   A filter belongs to one item and goes with its record, bit for bit, from table to table: a
//   merge that carries an item by reference need not read it. It holds, for every entry of a plain
//   group, the full key; of a series group, the full key without its last 8 bytes (whole when the
//   user's key is shorter). A series group whose entries share one such part has none: its first
//   and last key tell it. Singles have none: their key stands in the record.
//
//   index        (section 0)  varint: blocks; for each, in order:
//                varint: size of the block (blocks follow each other without gaps)
//                varint: leading bytes of its last key shared with the last key of the block before
//                length-prefixed: rest of the last full key of the block
//                varints: items, entries, deletes
//   namespaces   (section 1: NSTable)  varint: namespaces; for each, in order:
//                4 bytes: namespace id, big-endian
//                varints: items, entries, deletes
//                length-prefixed: smallest user key; largest user key
//   properties   (section 2)  varints: items, entries, deletes, smallest sequence, largest
//                sequence, value files; then of each, ascending: its number, the bytes of its
//                items that the records here point to
//
// Changing anything above needs a new version and a golden file.

inline constexpr TableFormat kUMetaFormat{"ECUMETA1", 1, kFeatureNumberSummaries};
inline constexpr std::string_view kUMetaPurpose = "edgecase metadata table";
inline constexpr std::size_t kUMetaBlockBytes = 4096;
inline constexpr std::size_t kUMetaFilterBytes = 8192;
inline constexpr std::size_t kUMetaBlockHeadBytes = 8;
inline constexpr std::size_t kUMetaChecksumBytes = 4;
// One record more than a full block, with the longest keys, and the filter of one more group.
inline constexpr std::size_t kUMetaBlockMaxBytes = 1u << 20;

inline constexpr std::size_t kFullKeyMax = kKeySizeMaxBytes + kNamespacePrefixBytes;

inline constexpr unsigned char kRecordTypeMask = 7;
inline constexpr unsigned char kRecordNumbers = 8;
inline constexpr unsigned char kRecordOtherFile = 16;
inline constexpr unsigned char kRecordOneSequence = 32;
inline constexpr unsigned char kRecordFilter = 64;
inline constexpr unsigned char kRecordPages = 128;
// Pages of a group (value_format.h) with keys at their longest.
inline constexpr std::size_t kPageIndexMaxBytes = 50'000;

// Finds a place among sorted keys mostly without looking at them: of each it holds the eight bytes
// behind what all of them begin with, as one number. A search touches a few neighbouring cache
// lines where one among the keys themselves would miss the cache at every step. Immutable once
// built; thread-safe.
class KeyHeads {
 public:
  // All before `begin` lie before the key that was asked for, all from `end` on at or behind it;
  // between them only the keys tell.
  struct Candidates {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // `key_at(i)`, for i below `count`, are in ascending order.
  template <typename KeyAt>
  void build(std::size_t count, const KeyAt& key_at) {
    heads_.clear();
    prefix_.clear();
    if (count == 0) return;
    const ByteView first = key_at(0);
    const ByteView last = key_at(count - 1);
    const auto length = static_cast<std::ptrdiff_t>(std::min(first.size(), last.size()));
    prefix_.assign(first.begin(),
                   std::mismatch(first.begin(), first.begin() + length, last.begin()).first);
    heads_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) heads_.push_back(head_of(key_at(i)));
  }

  Candidates candidates(ByteView key) const {
    const int order = key.substr(0, prefix_.size()).compare(prefix_);
    if (order < 0) return {0, 0};
    if (order > 0) return {heads_.size(), heads_.size()};
    const std::uint64_t head = head_of(key);
    // Halves without a branch: which half it is, nobody could guess.
    const std::uint64_t* begin = heads_.data();
    for (std::size_t left = heads_.size(); left > 0;) {
      const std::size_t half = (left + 1) / 2;
      begin = begin[half - 1] < head ? begin + half : begin;
      left -= half;
    }
    const std::uint64_t* end = begin;
    const std::uint64_t* const last = heads_.data() + heads_.size();
    while (end != last && *end == head) ++end;
    return {static_cast<std::size_t>(begin - heads_.data()),
            static_cast<std::size_t>(end - heads_.data())};
  }

  // The first of `count` keys, as they were at build(), that is not before `key`; `count` for none.
  template <typename KeyAt>
  std::size_t lower_bound(ByteView key, const KeyAt& key_at) const {
    auto [begin, end] = candidates(key);
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      if (key_at(middle) < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  // What a key and its head are known to share if their heads are equal: so many bytes of the key,
  // or all of it where it is shorter.
  std::size_t reach() const { return prefix_.size() + sizeof(std::uint64_t); }

  std::size_t memory_bytes() const {
    return heads_.capacity() * sizeof(std::uint64_t) + prefix_.capacity();
  }

 private:
  // Shorter keys are filled up with zeros: of two keys the smaller never has the larger head.
  std::uint64_t head_of(ByteView key) const {
    std::uint64_t head = 0;
    if (key.size() >= prefix_.size() + sizeof head) {
      std::memcpy(&head, key.data() + prefix_.size(), sizeof head);
      return std::endian::native == std::endian::little ? __builtin_bswap64(head) : head;
    }
    for (std::size_t i = prefix_.size(); i < prefix_.size() + sizeof head; ++i)
      head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
    return head;
  }

  Bytes prefix_;
  std::vector<std::uint64_t> heads_;
};

// What the metadata layer knows of one item. The keys are borrowed.
struct UMetaRecord {
  ItemType type = ItemType::Single;
  ByteView first;  // full keys, both included
  ByteView last;
  std::uint64_t entries = 1;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  ValuePointer pointer;
  ByteView filter;   // of the item's keys (append_item_filter()); empty: none
  ByteView pages;    // page index of a plain group; empty: it is read whole
  ByteView numbers;  // summary of a series group (number_summary.h); empty: none
};

// What of a full key goes into a filter, for an item of `type`; nullopt for none.
std::optional<std::uint64_t> filter_hash(ItemType type, ByteView full_key);
// The filter of an item of `type` and that size with these entries, if it needs one.
void append_item_filter(Bytes& out, ItemType type, std::uint64_t item_bytes,
                        std::span<const EntryView> entries);

// Gathers records; owned by one thread.
class UMetaBlockBuilder {
 public:
  // `record` lies behind all before it.
  void add(const UMetaRecord& record);

  bool empty() const { return count_ == 0; }
  bool full() const;
  // The block, checksum included, as it belongs at `offset` of file `file_number`. Valid until the
  // next call. The builder is empty afterwards.
  ByteView finish(std::uint64_t file_number, std::uint64_t offset);

 private:
  Bytes records_;
  Bytes filters_;
  Bytes block_;
  std::uint64_t count_ = 0;
  Bytes previous_first_;
  ValuePointer previous_;
};

// Reads records one behind the other. Owned by one thread; borrows their bytes.
class UMetaDecoder {
 public:
  UMetaDecoder() = default;
  UMetaDecoder(UMetaDecoder&&) = default;  // views go along
  UMetaDecoder& operator=(UMetaDecoder&&) = default;

  // All that the next record is told by, but the first key of the one before.
  struct State {
    std::uint32_t input_offset = 0;
    std::uint32_t filter_offset = 0;
    // Where the item of the record before lies.
    std::uint64_t file_number = 0;
    std::uint64_t end_offset = 0;
  };

  void begin(ByteView records, ByteView filters) { resume(records, filters, State(), ByteView()); }
  void resume(ByteView records, ByteView filters, const State& state, ByteView first_before);

  // False when what follows is malformed, which it is also where it does not lie behind the record
  // that was read before it; there are no more calls then.
  bool next();
  bool at_end() const { return state_.input_offset == records_.size(); }
  // Views hold until the next call of next() or resume().
  const UMetaRecord& record() const { return record_; }
  const State& state() const { return state_; }
  std::size_t memory_bytes() const { return keys_.capacity(); }
  // The first key of the record before the next one.
  ByteView first() const { return ByteView(keys_.data(), first_size_); }

 private:
  struct KeyParts {
    std::uint32_t shared = 0;  // with the first key as it stands
    ByteView rest;
  };

  bool take_key(ByteView& input, KeyParts& key) const;
  bool lies_behind_last(const KeyParts& key) const;
  std::size_t put_together(const KeyParts& key, std::size_t place);
  char* key_memory(std::size_t place, std::size_t size);

  ByteView records_;
  ByteView filters_;
  State state_;
  UMetaRecord record_;
  std::vector<char> keys_;  // room for a first key and a last one, each of key_room_ bytes
  std::size_t key_room_ = 0;
  std::size_t first_size_ = 0;
  bool knows_last_ = false;  // record_ is the record before
};

// Where a get goes on: a record whose keys nobody has put together.
struct UMetaPlace {
  UMetaRecord record;      // without keys and smallest sequence; its views are of the block
  std::size_t shared = 0;  // how many bytes its first and its last key both begin with
};

// A block in memory, immutable: the bytes as they lie in the file and, where it was parsed, what
// finds one record among the others, all of which were read for that.
class UMetaBlock {
 public:
  static bool checksum_matches(ByteView block, std::uint64_t file_number, std::uint64_t offset);
  // Nothing when it is malformed. Looks at no checksum.
  static std::optional<UMetaBlock> parse(Bytes block);
  // Looks at the head alone: for a cursor that walks along, which comes to what is malformed.
  static std::optional<UMetaBlock> begin(Bytes block);

  std::size_t size() const { return count_; }

  // What can be said of a key without reading any that lies before its record's.
  enum class Sought : unsigned char { Here, Nowhere, Unknown };
  // Asks a parsed block. Here: if the block has `full_key`, then in the item of `place`; of a
  // Single it is the key. Unknown: only UMetaCursor::find() tells. Takes no memory.
  Sought locate(ByteView full_key, UMetaPlace& place) const;

  std::size_t filter_bytes() const { return filters().size(); }
  std::size_t memory_bytes() const;

 private:
  friend class UMetaCursor;

  // Where reading may begin: at every kAnchorRecords-th record.
  static constexpr std::size_t kAnchorRecords = 4;
  struct Anchor {
    UMetaDecoder::State state;
    std::uint32_t key_offset = 0;  // of the first key of the record before, in anchor_keys_
    std::uint32_t key_size = 0;
  };

  bool is_parsed() const { return !anchors_.empty(); }
  // Whether nothing is left behind what `decoder` has read.
  bool ends_with(const UMetaDecoder& decoder) const;
  ByteView records() const;
  ByteView filters() const { return ByteView(bytes_).substr(filter_offset_); }
  ByteView key_before(const Anchor& anchor) const {
    return ByteView(anchor_keys_).substr(anchor.key_offset, anchor.key_size);
  }

  Bytes bytes_;
  std::size_t count_ = 0;
  std::size_t record_offset_ = 0;
  std::size_t filter_offset_ = 0;
  std::vector<Anchor> anchors_;
  Bytes anchor_keys_;
  KeyHeads last_keys_;
};

// A place in a block, which it keeps. Owned by one thread.
class UMetaCursor {
 public:
  // Stands nowhere yet.
  void open(std::shared_ptr<const UMetaBlock> block);
  // Lets go of the block.
  void close();

  bool is_open() const { return block_ != nullptr; }
  // Only when open, as all that follows.
  const UMetaBlock& block() const { return *block_; }
  std::size_t size() const { return block_->size(); }
  // To record `index`, below size(). The next ones cost least; of a block that was not parsed, all
  // up to it are read. False, here and below, where one of these is malformed: it stands nowhere.
  bool select(std::size_t index);
  // To the first record, then from each to the next. False behind the last; then it stands nowhere.
  bool next();
  // To the first record whose last key is at or after `full_key`. False when there is none; then it
  // stands nowhere.
  bool find(ByteView full_key);
  // size() where it stands nowhere.
  std::size_t index() const { return index_; }
  // Only where it stands somewhere. Views hold until it moves.
  const UMetaRecord& record() const { return decoder_.record(); }

 private:
  bool walk(std::size_t index);
  bool walk_to(ByteView full_key);

  std::shared_ptr<const UMetaBlock> block_;
  std::size_t index_ = 0;
  UMetaDecoder decoder_;
};

// A filter of hashes: what was added is always found, what was not once in a hundred times or so,
// or in seven hundred where it is fine. All bits of a hash lie in one line of at most 64
// bytes, so that asking costs a cache miss or two. Lines are as long as the number of keys asks
// for: whole ones of 64 bytes would be a quarter empty in a filter of a hundred keys.
//
//   1 byte: probes; 0: everything may be in it. Then the bits: lines of equal size, as few as there
//   can be of at most 64 bytes (bytes that are left over are not used). low, high: halves of the
//   hash. Line: low * lines >> 32. Probe i looks at bit place * (bits of a line) >> 32 of it, bits
//   of a byte counted from the lowest, where place is high + i * step modulo 2^32 and step is (hash
//   >> 16) modulo 2^32, made odd.

struct FilterShape {
  std::size_t bits_per_key;
  unsigned probes;
};
inline constexpr FilterShape kUsualFilter{10, 6};
inline constexpr FilterShape kFineFilter{16, 7};
inline constexpr unsigned kFilterProbesMax = 30;
inline constexpr std::size_t kFilterLineMaxBytes = 64;

namespace bloom_inside {

inline std::size_t line_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kFilterLineMaxBytes - 1) / kFilterLineMaxBytes);
}

// Calls `visit(bit)` for every probe until it answers false; whether all answered true. `bytes` is
// the size of the bits.
template <typename Visit>
bool for_each_probe(std::uint64_t hash, unsigned probes, std::size_t bytes, Visit visit) {
  const std::size_t lines = line_count(bytes);
  const std::size_t line_bytes = bytes / lines;
  const std::uint64_t start = (static_cast<std::uint32_t>(hash) * lines >> 32) * line_bytes;
  auto place = static_cast<std::uint32_t>(hash >> 32);
  const std::uint32_t step = static_cast<std::uint32_t>(hash >> 16) | 1;
  for (unsigned i = 0; i < probes; ++i, place += step)
    if (!visit(static_cast<std::size_t>(start * 8 + (place * (8 * line_bytes) >> 32))))
      return false;
  return true;
}

}  // namespace bloom_inside

// How many bytes append_filter() takes for `hashes` hashes.
inline std::size_t filter_bytes(std::size_t hashes, const FilterShape& shape) {
  if (hashes == 0) return 1;
  const std::size_t bytes = std::max<std::size_t>(8, (hashes * shape.bits_per_key + 7) / 8);
  const std::size_t lines = bloom_inside::line_count(bytes);
  return 1 + (bytes + lines - 1) / lines * lines;
}

inline void append_filter(Bytes& out, std::span<const std::uint64_t> hashes,
                          const FilterShape& shape) {
  if (hashes.empty()) {
    out.push_back(0);
    return;
  }
  out.push_back(static_cast<char>(shape.probes));
  const std::size_t start = out.size();
  const std::size_t bytes = filter_bytes(hashes.size(), shape) - 1;
  out.append(bytes, '\0');
  for (const std::uint64_t hash : hashes)
    bloom_inside::for_each_probe(hash, shape.probes, bytes, [&](std::size_t bit) {
      char& byte = out[start + bit / 8];
      byte = static_cast<char>(static_cast<unsigned char>(byte) | 1u << bit % 8);
      return true;
    });
}

// Whether `hash` may have been added. An empty or senseless filter says yes.
inline bool filter_may_contain(ByteView filter, std::uint64_t hash) {
  if (filter.size() < 2) return true;
  const unsigned probes = static_cast<unsigned char>(filter.front());
  if (probes == 0 || probes > kFilterProbesMax) return true;
  filter.remove_prefix(1);
  return bloom_inside::for_each_probe(hash, probes, filter.size(), [filter](std::size_t bit) {
    return (static_cast<unsigned char>(filter[bit / 8]) >> bit % 8 & 1) != 0;
  });
}

}  // namespace edgecase::engine
