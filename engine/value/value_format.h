// Bytes of a value table (`.val`): items of one namespace, in key order as they came, and enough
// beside them to rebuild a metadata table from the file alone. Head and tail: file/table_file.h,
// magic "ECVALUE1", version 1. Integers are little-endian, varints as in base/coding.h.
//
//   head (48, encrypted 80)  table head (48)  item*  index  summary  tail (56)
//
//   table head   offset  size  field
//                     0     4  namespace id
//                     4     1  placement: 0 values directory, 1 metadata directory
//                     5     1  group codec: 0 plain, 1 series
//                     6     1  expiry class; 0: never expires
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
//                     5        single: what follows here; groups: group_format.h
//
//   single       1 byte: kind, 1 put, 2 delete, 3 put of a packed value
//                varint: sequence
//                length-prefixed: full key (namespace id big-endian, user's key)
//                value, to the end of the item; empty for a delete; packed: varint: its bytes, at
//                most kPackedSingleMaxBytes, then it, packed (group_format.h)
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
//   index        (section 0)  varint: items; integers block (group_format.h) of their sizes
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

#include <cstdint>

#include "base/check.h"
#include "base/coding.h"
#include "base/entry.h"
#include "edgecase/engine.h"
#include "file/table_file.h"
#include "value/group_format.h"

namespace edgecase::engine {

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
