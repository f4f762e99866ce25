#include "value/item_seal.h"

#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "base/value_pointer.h"
#include "value/plain_group.h"

namespace edgecase::engine {
namespace {

static_assert(kPageChecksumBytes == kItemChecksumBytes);

constexpr std::size_t kKeyIdAt = kItemHeadBytes;
constexpr std::size_t kHeadSizeAt = kKeyIdAt + kKeyIdBytes;
constexpr std::size_t kSealedHeadAt = kHeadSizeAt + kSealedHeadSizeBytes;
constexpr std::size_t kSealedPageAt = kPageChecksumBytes + kKeyIdBytes;

void place_checksum(char* part, std::size_t size, std::uint64_t file_number, std::uint64_t offset) {
  encode_fixed32(
      part, placed_crc32c(file_number, offset, ByteView(part, size).substr(kItemChecksumBytes)));
}

bool matches(ByteView part, std::uint64_t file_number, std::uint64_t offset) {
  return decode_fixed32(part.data()) ==
         placed_crc32c(file_number, offset, part.substr(kItemChecksumBytes));
}

void append_sealed_page(Bytes& out, ByteView page, const FileCipher& cipher, KeyId key,
                        std::uint64_t file_number, std::uint64_t offset) {
  const std::size_t start = out.size();
  out.append(kPageChecksumBytes, '\0');
  append_fixed64(out, key);
  out.resize(start + page.size() + kPageSealBytes);
  cipher.seal(key, offset, page.substr(kPageChecksumBytes), out.data() + start + kSealedPageAt);
  place_checksum(out.data() + start, out.size() - start, file_number, offset);
}

}  // namespace

void append_sealed_item(Bytes& out, ByteView item, const FileCipher& cipher, KeyId key,
                        std::uint64_t file_number, std::uint64_t offset) {
  std::vector<PlainPage> pages;
  std::size_t head_end = item.size();
  if (item[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup)) {
    auto found = plain_pages(item.substr(kItemHeadBytes));
    EC_CHECK(found.has_value());
    pages = *std::move(found);
    head_end = kItemHeadBytes + pages.front().offset;
  }
  const std::size_t start = out.size();
  const std::size_t head_bytes = head_end - kItemHeadBytes;
  out.append(item.substr(0, kItemHeadBytes));
  append_fixed64(out, key);
  append_fixed32(out, static_cast<std::uint32_t>(head_bytes));
  out.resize(start + head_end + kItemSealBytes);
  cipher.seal(key, offset, item.substr(kItemHeadBytes, head_bytes),
              out.data() + start + kSealedHeadAt);
  place_checksum(out.data() + start, out.size() - start, file_number, offset);
  for (const PlainPage& page : pages)
    append_sealed_page(out, item.substr(kItemHeadBytes + page.offset, page.size), cipher, key,
                       file_number, offset + (out.size() - start));
}

SealProblem open_sealed_item(Bytes& bytes, const FileCipher& cipher, std::uint64_t file_number,
                             std::uint64_t offset) {
  constexpr SealProblem kWrongChecksum{"wrong checksum of an item"};
  if (bytes.size() < kSealedHeadAt + kSealBytes) return kWrongChecksum;
  const std::size_t head_bytes = decode_fixed32(bytes.data() + kHeadSizeAt);
  if (head_bytes > bytes.size() - kSealedHeadAt - kSealBytes) return kWrongChecksum;
  const std::size_t head_end = kSealedHeadAt + head_bytes + kSealBytes;
  if (!matches(ByteView(bytes).substr(0, head_end), file_number, offset)) return kWrongChecksum;
  const KeyId key = decode_fixed64(bytes.data() + kKeyIdAt);
  const bool is_plain = bytes[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup);
  if (!is_plain && head_end != bytes.size()) return kWrongChecksum;

  Bytes item(bytes, 0, kItemHeadBytes);
  item.resize(kItemHeadBytes + head_bytes);
  const Opened opened =
      cipher.open(key, offset, ByteView(bytes).substr(kSealedHeadAt, head_bytes + kSealBytes),
                  item.data() + kItemHeadBytes);
  if (opened != Opened::Yes) return {nullptr, opened};
  if (is_plain) {
    const auto sizes = plain_page_sizes(ByteView(item).substr(kItemHeadBytes));
    if (!sizes) return {"item is malformed"};
    std::size_t at = head_end;
    for (const std::size_t size : *sizes) {
      const std::size_t sealed_size = size + kPageSealBytes;
      if (sealed_size > bytes.size() - at) return {"item is malformed"};
      ByteView page(bytes.data() + at, sealed_size);
      const SealProblem problem =
          open_sealed_page(bytes.data() + at, page, cipher, file_number, offset + at);
      if (!problem.none()) return problem;
      item.append(page);
      at += sealed_size;
    }
    if (at != bytes.size()) return {"item is malformed"};
  }
  bytes = std::move(item);
  return {};
}

SealProblem open_sealed_page(char* bytes, ByteView& page, const FileCipher& cipher,
                             std::uint64_t file_number, std::uint64_t offset) {
  if (page.size() <= kPageChecksumBytes + kPageSealBytes || !matches(page, file_number, offset))
    return {"wrong checksum of a page"};
  const KeyId key = decode_fixed64(bytes + kPageChecksumBytes);
  const Opened opened = cipher.open(key, offset, page.substr(kSealedPageAt), bytes + kSealedPageAt);
  if (opened != Opened::Yes) return {nullptr, opened};
  page = ByteView(bytes + kSealedPageAt - kPageChecksumBytes, page.size() - kPageSealBytes);
  return {};
}

}  // namespace edgecase::engine
