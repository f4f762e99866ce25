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
//           with + 128: length-prefixed: page index of a plain group (value/plain_group.h), which
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
#pragma once

#include <cstdint>

#include "edgecase/options.h"
#include "file/table_file.h"

namespace edgecase::engine {

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
// Pages of a group (group_format.h) with keys at their longest.
inline constexpr std::size_t kPageIndexMaxBytes = 50'000;

}  // namespace edgecase::engine
