#include "file/table_file.h"

#include <cstring>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/status.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHeadChecksumOffset = kTableHeadBytes - 4;
constexpr std::size_t kTailChecksumOffset = kTableTailBytes - kMagicBytes - 4;

Status wrong_version(const std::string& path, std::uint32_t version) {
  return unsupported(path + ": format version " + std::to_string(version) +
                     " is newer than this program");
}

}  // namespace

void append_table_head(Bytes& out, const TableFormat& format, const TableHead& head) {
  EC_CHECK(format.magic.size() == kMagicBytes);
  const std::size_t start = out.size();
  out.append(format.magic);
  append_fixed32(out, format.version);
  append_fixed32(out, format.features | (head.salt ? kFeatureEncrypted : 0));
  for (const std::uint8_t byte : head.identity.store_id) out.push_back(static_cast<char>(byte));
  append_fixed64(out, head.identity.file_number);
  append_fixed32(out, 0);
  append_fixed32(out, crc32c(ByteView(out).substr(start)));
  if (!head.salt) return;
  for (const std::uint8_t byte : *head.salt) out.push_back(static_cast<char>(byte));
  append_fixed32(out, 0);
  append_fixed32(out, crc32c(ByteView(out).substr(start + kTableHeadBytes)));
}

Result<TableHead> read_table_head(const RandomAccessFile& file, const TableFormat& format) {
  EC_ASSIGN_OR_RETURN(const Bytes bytes, read_exactly(file, 0, kTableHeadBytes));
  const ByteView view = bytes;
  if (view.substr(0, kMagicBytes) != format.magic)
    return corruption_at(file.path(), 0, "wrong magic: not a table of this kind");
  if (decode_fixed32(bytes.data() + kHeadChecksumOffset) !=
      crc32c(view.substr(0, kHeadChecksumOffset)))
    return corruption_at(file.path(), 0, "wrong checksum of the head");
  const std::uint32_t version = decode_fixed32(bytes.data() + 8);
  if (version != format.version) return wrong_version(file.path(), version);
  const std::uint32_t features = decode_fixed32(bytes.data() + 12);
  if ((features & ~(format.features | kFeatureEncrypted)) != 0)
    return unsupported(file.path() + ": needs features this program does not have");
  TableHead head;
  std::memcpy(head.identity.store_id.data(), bytes.data() + 16, head.identity.store_id.size());
  head.identity.file_number = decode_fixed64(bytes.data() + 32);
  if ((features & kFeatureEncrypted) == 0) return head;
  EC_ASSIGN_OR_RETURN(const Bytes sealed,
                      read_exactly(file, kTableHeadBytes, kSealedTableHeadBytes - kTableHeadBytes));
  const std::size_t checksum_at = sealed.size() - 4;
  if (decode_fixed32(sealed.data() + checksum_at) !=
      crc32c(ByteView(sealed).substr(0, checksum_at)))
    return corruption_at(file.path(), kTableHeadBytes, "wrong checksum of the salt");
  std::memcpy(head.salt.emplace().data(), sealed.data(), kTableSaltBytes);
  return head;
}

Result<TableHead> check_table_head(const RandomAccessFile& file, const TableFormat& format,
                                   const TableIdentity& identity) {
  EC_ASSIGN_OR_RETURN(TableHead found, read_table_head(file, format));
  if (found.identity.store_id != identity.store_id)
    return unavailable(file.path() + " belongs to another store");
  if (found.identity.file_number != identity.file_number)
    return corruption_at(file.path(), 0, "holds another file's contents");
  return found;
}

void append_table_tail(Bytes& out, const TableFormat& format, std::uint64_t file_number,
                       const std::array<std::uint64_t, 3>& offsets, ByteView sections) {
  EC_CHECK(format.magic.size() == kMagicBytes);
  const std::uint32_t sections_checksum = crc32c(sections);
  const std::size_t start = out.size();
  for (const std::uint64_t offset : offsets) append_fixed64(out, offset);
  append_fixed64(out, file_number);
  append_fixed32(out, sections_checksum);
  append_fixed32(out, format.version);
  append_fixed32(out, 0);
  append_fixed32(out, crc32c(ByteView(out).substr(start)));
  out.append(format.magic);
}

ByteView TableSections::section(std::size_t index) const {
  const std::uint64_t begin = offsets[index] - offsets[0];
  const std::uint64_t end =
      index + 1 < offsets.size() ? offsets[index + 1] - offsets[0] : bytes.size();
  return ByteView(bytes).substr(begin, end - begin);
}

Result<TableSections> read_table_sections(const RandomAccessFile& file, const TableFormat& format,
                                          std::uint64_t file_number) {
  const std::uint64_t size = file.size_bytes();
  if (size < kTableHeadBytes + kTableTailBytes)
    return corruption_at(file.path(), 0, "file is too short for a table");
  const std::uint64_t tail_offset = size - kTableTailBytes;
  EC_ASSIGN_OR_RETURN(const Bytes tail, read_exactly(file, tail_offset, kTableTailBytes));
  if (ByteView(tail).substr(kTailChecksumOffset + 4) != format.magic)
    return corruption_at(file.path(), tail_offset, "no tail: file was never finished or is cut");
  if (decode_fixed32(tail.data() + kTailChecksumOffset) !=
      crc32c(ByteView(tail).substr(0, kTailChecksumOffset)))
    return corruption_at(file.path(), tail_offset, "wrong checksum of the tail");
  const std::uint32_t version = decode_fixed32(tail.data() + 36);
  if (version != format.version) return wrong_version(file.path(), version);
  if (decode_fixed64(tail.data() + 24) != file_number)
    return corruption_at(file.path(), tail_offset, "tail of another file");

  TableSections sections;
  for (std::size_t i = 0; i < sections.offsets.size(); ++i)
    sections.offsets[i] = decode_fixed64(tail.data() + 8 * i);
  const auto& offsets = sections.offsets;
  if (offsets[0] < kTableHeadBytes || offsets[1] < offsets[0] || offsets[2] < offsets[1] ||
      tail_offset < offsets[2] || tail_offset - offsets[0] > kTableSectionsMaxBytes)
    return corruption_at(file.path(), tail_offset, "sections are out of place");
  EC_ASSIGN_OR_RETURN(sections.bytes, read_exactly(file, offsets[0], tail_offset - offsets[0]));
  if (crc32c(sections.bytes) != decode_fixed32(tail.data() + 32))
    return corruption_at(file.path(), offsets[0], "wrong checksum of the sections");
  return sections;
}

Result<Bytes> read_exactly(const RandomAccessFile& file, std::uint64_t offset, std::size_t size) {
  if (offset > file.size_bytes() || file.size_bytes() - offset < size)
    return corruption_at(file.path(), offset, "file ends too early");
  Bytes bytes(size, '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t got, file.read(offset, size, bytes.data()));
  if (got != size) return corruption_at(file.path(), offset, "file ends too early");
  return bytes;
}

Status corruption_at(const std::string& path, std::uint64_t offset, std::string_view what) {
  return corruption_in(path, " at byte " + std::to_string(offset) + ": " + std::string(what));
}

std::uint32_t placed_crc32c(std::uint64_t file_number, std::uint64_t offset, ByteView bytes) {
  char place[16];
  encode_fixed64(place, file_number);
  encode_fixed64(place + 8, offset);
  return crc32c_extend(crc32c(ByteView(place, sizeof place)), bytes);
}

}  // namespace edgecase::engine
