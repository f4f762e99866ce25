// TableFormat: the head and the tail that files of value tables and metadata tables share.
//
// All integers are little-endian.
//
//   head   offset  size  field
//               0     8  magic: "ECVALUE1" (value table), "ECUMETA1" (metadata table)
//               8     4  format version
//              12     4  required features, a bit each; a reader refuses what it does not know.
//                        Bit 0: encrypted
//                        Bit 1: of value tables: parts may be packed (value/value_format.h)
//                        Bit 2: of metadata tables: records may have summaries of numbers
//                        (metadata/number_summary.h)
//              16    16  store id
//              32     8  file number
//              40     4  reserved, 0
//              44     4  crc32c of bytes 0..43
//
//   Encrypted, there follow
//              48    24  salt of the file's keys (crypto/key_ring.h)
//              72     4  reserved, 0
//              76     4  crc32c of bytes 48..75
//
//   and what the layouts below call sealed is longer by kSealBytes (crypto/file_cipher.h);
//   checksums are of what lies in the file.
//
//   ... contents, then three sections one after another, the last ending where the tail begins ...
//
//   The sections are sealed as one, their place the first one's offset.
//
//   tail   offset  size  field          (the last 56 bytes of the file)
//               0    24  offsets in the file of the three sections, 8 each
//              24     8  file number
//              32     4  crc32c of all bytes of the sections
//              36     4  format version
//              40     4  reserved, 0
//              44     4  crc32c of bytes 0..43 of the tail
//              48     8  magic, the same as in the head
//
// A file without a valid tail was never finished.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/entry.h"
#include "edgecase/file_system.h"

namespace edgecase::engine {

inline constexpr std::uint32_t kTableHeadBytes = 8 + 4 + 4 + 16 + 8 + 4 + 4;
inline constexpr std::uint32_t kTableTailBytes = 24 + 8 + 4 + 4 + 4 + 4 + 8;
static_assert(kTableHeadBytes == 48 && kTableTailBytes == 56);
inline constexpr std::uint32_t kTableSaltBytes = 24;
inline constexpr std::uint32_t kSealedTableHeadBytes = kTableHeadBytes + kTableSaltBytes + 4 + 4;
inline constexpr std::uint32_t kTableSectionsMaxBytes = 64u << 20;

inline constexpr std::uint32_t kFeatureEncrypted = 1;
inline constexpr std::uint32_t kFeaturePacked = 2;
inline constexpr std::uint32_t kFeatureNumberSummaries = 4;

struct TableFormat {
  std::string_view magic;  // 8 bytes
  std::uint32_t version = 0;
  std::uint32_t features = 0;  // that new tables need, besides kFeatureEncrypted
};

struct TableIdentity {
  StoreId store_id{};
  std::uint64_t file_number = 0;
};

using TableSalt = std::array<std::uint8_t, kTableSaltBytes>;

struct TableHead {
  TableIdentity identity;
  std::optional<TableSalt> salt;  // there when the table is encrypted

  std::uint32_t size_bytes() const { return salt ? kSealedTableHeadBytes : kTableHeadBytes; }
};

void append_table_head(Bytes& out, const TableFormat& format, const TableHead& head);
// Reads the head and compares it. Errors: Corruption (damaged, or another file's), Unavailable
// (another store's), Unsupported (newer).
Result<TableHead> check_table_head(const RandomAccessFile& file, const TableFormat& format,
                                   const TableIdentity& identity);
// Only what the head itself says, for looking at files of an unknown store.
Result<TableHead> read_table_head(const RandomAccessFile& file, const TableFormat& format);

// `offsets` are those of the sections, `sections` their bytes.
void append_table_tail(Bytes& out, const TableFormat& format, std::uint64_t file_number,
                       const std::array<std::uint64_t, 3>& offsets, ByteView sections);

struct TableSections {
  Bytes bytes;                                // of all three, and their seal
  std::array<std::uint64_t, 3> offsets{};     // in the file
  ByteView section(std::size_t index) const;  // as long as this object lives, unmoved
};
// Reads and verifies tail and sections.
Result<TableSections> read_table_sections(const RandomAccessFile& file, const TableFormat& format,
                                          std::uint64_t file_number);

// Exactly `size` bytes at `offset`; Corruption when the file is shorter. `size` has been checked
// against a limit.
Result<Bytes> read_exactly(const RandomAccessFile& file, std::uint64_t offset, std::size_t size);

// Names file and place.
Status corruption_at(const std::string& path, std::uint64_t offset, std::string_view what);

// The checksum of a block or item that belongs at `offset` of file `file_number`: bytes that
// strayed from elsewhere do not pass.
std::uint32_t placed_crc32c(std::uint64_t file_number, std::uint64_t offset, ByteView bytes);

}  // namespace edgecase::engine
