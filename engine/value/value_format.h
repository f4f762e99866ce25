// Bytes of a value table (`.val`) and of its groups: items of one namespace, in key order as they
// came, and enough beside them to rebuild a metadata table from the file alone. Head and tail:
// file/table_file.h, magic "ECVALUE1", version 1. Integers are little-endian, varints as in
// base/coding.h.
//
//   head (48, encrypted 80)  table head (48)  item*  index  summary  tail (56)
//
//   table head   offset  size  field
//                     0     4  namespace id
//                     4     1  placement: 0 values directory, 1 metadata directory
//                     5     1  group codec: 0 plain, 1 series
//                     6     1  bucket class; 0: never expires
//                     7     1  reserved, 0
//                     8    32  reserved, 0
//                    40     4  reserved, 0
//                    44     4  crc32c of bytes 0..43
//
//   item         offset  size  field
//                     0     4  crc32c of file number (8), the item's offset (8), bytes 4 to the
//                     end;
//                              of a plain group to its first page: each page has its own
//                     4     1  item type: 1 single, 2 plain group, 3 series group
//                     5        single: what follows here; groups: below
//
//   single       1 byte: kind, 1 put, 2 delete, 3 put of a packed value
//                varint: sequence
//                length-prefixed: full key (namespace id big-endian, user's key)
//                value, to the end of the item; empty for a delete; packed: varint: its bytes, at
//                most kPackedSingleMaxBytes, then it, packed (below)
//
//   Sealed items, of an encrypted table: an item, or what stands before the pages of a plain group,
//   and each page, are parts that are sealed for themselves. Their place is their offset in the
//   file, their key that of the scope.
//
//   sealed item  offset  size  field
//                     0     4  crc32c, as of an item, to the end of the sealed part
//                     4     1  item type
//                     5     8  key id
//                    13     4  n, bytes of the part before it was sealed
//                    17        bytes 5 to 5 + n of the item, sealed; then the sealed pages
//
//   sealed page       0     4  crc32c, as of a page
//                     4     8  key id
//                    12        bytes 4 to the end of the page, sealed
//
//   Metadata records, page indexes and the index below count the bytes in the file.
//
//   Items follow each other without gaps, so that the index holds sizes only.
//
//   The sections are sealed under the database's key (file/table_file.h).
//
//   index        (section 0)  varint: items; integers block (below) of their sizes
//   summary      (section 1)  varints: entries, deletes, smallest sequence, largest sequence;
//                             length-prefixed: smallest and largest full key;
//                             varint: 1 when all keys of each item lie behind those of the items
//                             before it, 0 when that is not known
//   namespace    (section 2)  empty, or varint: scope_bytes; length-prefixed: name of the namespace
//
//   A namespace's name stands in each of its tables, so that a store whose manifest is lost can be
//   made anew. Readers that know nothing of it pass over the section.
//
// Readers find items through metadata tables and check each by itself; index, summary and tail are
// for rebuilding and for looking.
//
// Changing anything above needs a new version and a golden file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/coding.h"
#include "base/entry.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/status.h"
#include "file/table_file.h"

namespace edgecase::engine {

// Bytes of a group: many entries of one namespace and one scope, in key order. Groups are items of
// value tables; the item's head above stands before what is described here.
//
// All fixed integers are little-endian unless said otherwise; varints and zigzag as in
// base/coding.h.
//
//   group   offset  size  field
//                0     1  flags: bit 0: there is a sequence column (series groups alone); others 0
//                1     4  namespace id, big-endian, as in a full key
//                5        varint: entries, 1 to kGroupEntriesMax
//                         varint: sequence, the largest of all entries
//                         integers block: each entry's sequence, only with flag bit 0; without it
//                         every entry answers with the largest
//                         body, to the end
//
// Plain body: a directory, then pages of about kPlainPageBytes of keys and values, or of
// kPackedPageBytes where they are packed, each of which can be read, checked and decoded without
// the rest of the group. An item's own checksum covers what stands before its first page.
//
//   body    varint: pages; for each: varint: its entries; varint: its bytes
//           pages, without gaps
//
//   page    offset  size  field
//                0     4  crc32c of file number (8), the page's offset in the file (8), bytes 4 to
//                         the end
//                4        varint: bytes of all heads * 2, + 1 when they tell sequences
//                         heads, one an entry
//                         values, one after another
//
//   packed page, which a page's first varint tells: it is never 0
//                0     4  crc32c, as of a page
//                4     1  0
//                5        varint: bytes of the page but for its checksum
//                         they, packed
//
//   head    varint: leading bytes shared with the key before; 0 for the first
//           varint: bytes of the key that follow
//           varint: value size * 2, + 1 for a delete (whose size is 0)
//           varint: the group's sequence - the entry's, only where heads tell sequences; without
//           it every entry answers with the group's
//           rest of the key
//
// Series body: runs. A run is a stretch of entries whose keys share all but their last 8 bytes, the
// big-endian ordinal; or a stretch of keys shorter than 8 bytes ("short").
//
//   body    varint: runs, at least 1; then the runs, whose entries add up to the group's
//
//   run     1 byte flags: bit 0: short keys
//                         bits 1-2: unit of ordinal differences: 1, 10^3, 10^6 or 10^9
//                         bit 3: all entries are of one class
//           varint: entries, at least 1
//           not short: varint: leading bytes shared with the prefix of the run before (0 after a
//                      short run or none), length-prefixed: rest of the prefix
//           varint: bytes of the rest of the run
//           not short: 8 bytes: the first ordinal; integers block: differences / unit, one fewer
//                      than entries
//           short: bytes block: the keys
//           classes: 1 byte with flag bit 3, else integers block
//           doubles block: values of class Double, in order
//           integers block: values of class Integer, in order
//           bytes block: values of class Other, in order
//
//   class   0 Delete: no value
//           1 Double: value is 9 bytes, kFloatTag and a little-endian double
//           2 Integer: value is 9 bytes, kIntegerTag and a little-endian signed integer
//           3 Other: any value
//
// A block of no values takes no bytes.
//
//   integers block   64-bit numbers, two's complement where signed
//           1 byte: transform * 16 + layout
//           varint, zigzag: base
//           transform 0: base is the first number; differences of neighbours follow, zigzag
//           transform 1: base is the smallest (signed); each number's difference from it follows
//           layout of what follows:
//             0 constant: varint, the same for all; nothing if there are none
//             1 runs: pairs of varints: number, how often (at least 1)
//             2 varints
//             3 packed: per 64 (the last may be fewer): 1 byte width, 0 to 56 or 64; then that many
//               bits each, low bits first, padded to a whole byte
//
//   doubles block
//           1 byte encoding:
//             0 raw: 8 bytes each
//             1 decimal: 1 byte: k, at most 15; varint: exceptions; per exception varint: entries
//               since the last one's (the first: since the start), 8 bytes; then an integers block
//               of all m: the double is m / 10^k, rounded to nearest; an exception's m means
//               nothing
//             2 planes: each double's bits exclusive-or the one's before (the first: 0), then for
//               each of the 8 bytes, lowest first, an integers block of that byte of all of them
//             3 dictionary: varint: distinct values, 8 bytes each; integers block of indexes
//
//   bytes block
//           1 byte encoding:
//             0 raw: integers block of sizes; then the bytes
//             1 dictionary: varint: distinct strings; they, as a raw bytes block with its encoding
//               byte; integers block of indexes
//             2 packed: varint: bytes of a raw or dictionary block; length-prefixed: it, packed
//
//   packed: an LZ4 block (packing.h), which is not longer than what it stands for less an eighth

inline constexpr std::size_t kGroupEntriesMax = 65536;
// Keys and values of one group, as they were handed in. Bounds what a reader takes memory for.
inline constexpr std::size_t kGroupRawMaxBytes = 4u << 20;
// A group's keys and values, as they were handed in, are spread over as many pages of this size as
// they fill, but no more than so many.
inline constexpr std::size_t kPlainPageBytes = 1536;
inline constexpr std::size_t kPackedPageBytes = 3072;
inline constexpr std::size_t kPlainPagesMax = 48;
inline constexpr std::size_t kPageChecksumBytes = 4;
inline constexpr char kPackedPageMark = 0;
inline constexpr std::size_t kOrdinalBytes = 8;
inline constexpr std::size_t kTaggedNumberBytes = 9;

inline constexpr unsigned char kGroupFlagSequences = 1;
inline constexpr unsigned char kRunFlagShortKeys = 1;
inline constexpr unsigned kRunUnitShift = 1;
inline constexpr unsigned char kRunUnitMask = 3;
inline constexpr unsigned char kRunFlagOneClass = 8;
inline constexpr unsigned char kRunFlagsKnown = 15;
inline constexpr std::uint64_t kOrdinalUnits[] = {1, 1'000, 1'000'000, 1'000'000'000};

enum class ValueClass : unsigned char { Delete = 0, Double = 1, Integer = 2, Other = 3 };
inline constexpr unsigned kValueClassCount = 4;

inline constexpr unsigned char kTransformDifferences = 0;
inline constexpr unsigned char kTransformOffsets = 1;
inline constexpr unsigned char kLayoutConstant = 0;
inline constexpr unsigned char kLayoutRuns = 1;
inline constexpr unsigned char kLayoutVarints = 2;
inline constexpr unsigned char kLayoutPacked = 3;
inline constexpr std::size_t kPackedBlock = 64;
inline constexpr unsigned kPackedWidthMax = 56;  // or exactly 64

inline constexpr unsigned char kDoublesRaw = 0;
inline constexpr unsigned char kDoublesDecimal = 1;
inline constexpr unsigned char kDoublesPlanes = 2;
inline constexpr unsigned char kDoublesDictionary = 3;
inline constexpr unsigned kDecimalPlacesMax = 15;

inline constexpr unsigned char kBytesRaw = 0;
inline constexpr unsigned char kBytesDictionary = 1;
inline constexpr unsigned char kBytesPacked = 2;

// GroupHead: the bytes that every group begins with; layout above.
struct GroupHead {
  unsigned char flags = 0;
  ByteView prefix;  // the namespace's
  std::uint64_t entries = 0;
  SequenceNumber sequence_max = 0;
};

inline void append_group_head(Bytes& out, const GroupHead& head) {
  out.push_back(static_cast<char>(head.flags));
  out.append(head.prefix);
  append_varint64(out, head.entries);
  append_varint64(out, head.sequence_max);
}

[[nodiscard]] inline bool take_group_head(ByteView& group, GroupHead& head) {
  if (group.empty()) return false;
  head.flags = static_cast<unsigned char>(group.front());
  group.remove_prefix(1);
  return take_bytes(group, kNamespacePrefixBytes, head.prefix) &&
         take_varint64(group, head.entries) && head.entries > 0 &&
         head.entries <= kGroupEntriesMax && take_varint64(group, head.sequence_max);
}

// SeriesKey: a user key as GroupCodec::Series sees it, a prefix and a big-endian 64-bit ordinal
// behind it. A key may be too short for one.

inline bool is_short_key(ByteView user_key) {
  return user_key.size() < kOrdinalBytes;
}

// The prefix of a key that is not short.
inline ByteView series_prefix(ByteView user_key) {
  return user_key.substr(0, user_key.size() - kOrdinalBytes);
}

inline constexpr TableFormat kValueTableFormat{"ECVALUE1", 1, kFeaturePacked};
inline constexpr std::string_view kValueTablePurpose = "edgecase value table";
inline constexpr std::uint32_t kValueTableHeadBytes = 48;
inline constexpr std::uint32_t kKeyIdBytes = 8;
inline constexpr std::uint32_t kSealedHeadSizeBytes = 4;
inline constexpr std::uint32_t kItemChecksumBytes = 4;
inline constexpr std::uint32_t kItemHeadBytes = kItemChecksumBytes + 1;
inline constexpr std::size_t kFullKeyMaxBytes = kKeySizeMaxBytes + 4;
// A single with the largest key and value and every varint at its longest, or the largest group.
inline constexpr std::uint32_t kItemMaxBytes = kValueSizeMaxBytes + kKeySizeMaxBytes + 256;
enum class SingleKind : unsigned char { Put = 1, Delete = 2, PackedPut = 3 };
// Larger values are read in pieces, and lie as they are.
inline constexpr std::uint32_t kPackedSingleMaxBytes = 64u << 10;
static_assert(kItemMaxBytes > kGroupRawMaxBytes + kGroupEntriesMax * 24);

// SingleHead: the bytes before the value of a Single. All of it is known to whoever knows the
// entry. Layout above.
class SingleHead {
 public:
  static constexpr std::size_t kMaxBytes =
      kItemHeadBytes + 1 + 2 * kVarint64MaxBytes + kFullKeyMaxBytes;

  // `full_key` has at most kFullKeyMaxBytes.
  SingleHead(SingleKind kind, SequenceNumber sequence, ByteView full_key) {
    EC_CHECK(full_key.size() <= kFullKeyMaxBytes);
    char* at = bytes_;
    encode_fixed32(at, 0);
    at += kItemChecksumBytes;
    *at++ = static_cast<char>(ItemType::Single);
    *at++ = static_cast<char>(kind);
    at = encode_varint64(at, sequence);
    at = encode_varint64(at, full_key.size());
    at += full_key.copy(at, full_key.size());
    size_ = static_cast<std::size_t>(at - bytes_);
  }

  // The checksum is left open.
  ByteView bytes() const { return {bytes_, size_}; }

 private:
  char bytes_[kMaxBytes];
  std::size_t size_ = 0;
};

}  // namespace edgecase::engine
