#include "value/item_checksums.h"

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/value_pointer.h"
#include "value/plain_group.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

static_assert(kPageChecksumBytes == kItemChecksumBytes);

bool is_plain_group(ByteView item) {
  return item[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup);
}

std::uint32_t checksum_of(ByteView part, std::uint64_t file_number, std::uint64_t offset) {
  return placed_crc32c(file_number, offset, part.substr(kItemChecksumBytes));
}

bool matches(ByteView part, std::uint64_t file_number, std::uint64_t offset) {
  return decode_fixed32(part.data()) == checksum_of(part, file_number, offset);
}

}  // namespace

void place_checksums(Bytes& item, std::uint64_t file_number, std::uint64_t offset, ByteView end) {
  ByteView head = item;
  if (is_plain_group(item)) {
    const auto pages = plain_pages(ByteView(item).substr(kItemHeadBytes));
    EC_CHECK(pages.has_value());
    for (const PlainPage& page : *pages) {
      const std::size_t start = kItemHeadBytes + page.offset;
      encode_fixed32(item.data() + start, checksum_of(ByteView(item).substr(start, page.size),
                                                      file_number, offset + start));
    }
    head = head.substr(0, kItemHeadBytes + pages->front().offset);
  }
  encode_fixed32(item.data(), crc32c_extend(checksum_of(head, file_number, offset), end));
}

bool checksums_match(ByteView item, std::uint64_t file_number, std::uint64_t offset) {
  if (!is_plain_group(item)) return matches(item, file_number, offset);
  const auto pages = plain_pages(item.substr(kItemHeadBytes));
  if (!pages ||
      !matches(item.substr(0, kItemHeadBytes + pages->front().offset), file_number, offset))
    return false;
  for (const PlainPage& page : *pages) {
    const std::size_t start = kItemHeadBytes + page.offset;
    if (!matches(item.substr(start, page.size), file_number, offset + start)) return false;
  }
  return true;
}

bool page_checksum_matches(ByteView page, std::uint64_t file_number, std::uint64_t offset) {
  return matches(page, file_number, offset);
}

}  // namespace edgecase::engine
