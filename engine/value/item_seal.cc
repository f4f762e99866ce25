#include "value/item_seal.h"

#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/value_pointer.h"
#include "crypto/piece_sealer.h"
#include "value/item_checksums.h"
#include "value/plain_group.h"

namespace edgecase::engine {
namespace {

static_assert(kPageChecksumBytes == kItemChecksumBytes);

constexpr std::size_t kSealedPageAt = kPageChecksumBytes + kKeyIdBytes;

void place_checksum(char* part, std::size_t size, std::uint64_t file_number, std::uint64_t offset) {
  encode_fixed32(
      part, placed_crc32c(file_number, offset, ByteView(part, size).substr(kItemChecksumBytes)));
}

// Answers where it ends. `out` has room for it.
char* seal_page(char* out, ByteView page, PartCipher& cipher, std::uint64_t file_number,
                std::uint64_t offset) {
  const std::size_t size = page.size() + kPageSealBytes;
  encode_fixed64(out + kPageChecksumBytes, cipher.id());
  cipher.seal(offset, page.substr(kPageChecksumBytes), out + kSealedPageAt);
  place_checksum(out, size, file_number, offset);
  return out + size;
}

// In place; `page` becomes a view of it.
SealProblem open_page(char* bytes, ByteView& page, PartCipher& cipher, std::uint64_t offset) {
  const Opened opened = cipher.open(offset, page.substr(kSealedPageAt), bytes + kSealedPageAt);
  if (opened != Opened::Yes) return {nullptr, opened};
  page = ByteView(bytes + kSealedPageAt - kPageChecksumBytes, page.size() - kPageSealBytes);
  return {};
}

// Whether it is what was written there. `page` says how large it is.
bool is_page(ByteView page, std::uint64_t file_number, std::uint64_t offset) {
  return page.size() > kPageChecksumBytes + kPageSealBytes &&
         page_checksum_matches(page, file_number, offset);
}

// The pages of a plain group, from `at` on in `bytes`, which end with the last one; they move to
// `end`, and `end` to their end.
SealProblem open_pages(Bytes& bytes, std::size_t at, std::size_t& end, PartCipher& cipher,
                       std::uint64_t file_number, std::uint64_t offset) {
  const auto sizes = plain_page_sizes(ByteView(bytes).substr(kItemHeadBytes, end - kItemHeadBytes));
  if (!sizes) return {"item is malformed"};
  for (const std::size_t size : *sizes) {
    const std::size_t sealed_size = size + kPageSealBytes;
    if (sealed_size > bytes.size() - at) return {"item is malformed"};
    ByteView page(bytes.data() + at, sealed_size);
    if (!is_page(page, file_number, offset + at)) return {"wrong checksum of a page"};
    const bool same_key = decode_fixed64(page.data() + kPageChecksumBytes) == cipher.id();
    if (!same_key) return {nullptr, Opened::Changed};
    if (SealProblem problem = open_page(bytes.data() + at, page, cipher, offset + at);
        !problem.none())
      return problem;
    std::memmove(bytes.data() + end, page.data(), page.size());
    end += page.size();
    at += sealed_size;
  }
  if (at != bytes.size()) return {"item is malformed"};
  return {};
}

}  // namespace

ByteView seal_item(Bytes& room, ByteView item, ByteView end, PartCipher& cipher,
                   std::uint64_t file_number, std::uint64_t offset) {
  std::vector<PlainPage> pages;
  std::size_t head_end = item.size();
  if (item[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup)) {
    auto found = plain_pages(item.substr(kItemHeadBytes));
    EC_CHECK(found.has_value());
    pages = *std::move(found);
    head_end = kItemHeadBytes + pages.front().offset;
  }
  const std::size_t size =
      item.size() + end.size() + kItemSealBytes + pages.size() * kPageSealBytes;
  if (room.size() < size) room.resize(size);
  char* const out = room.data();
  const std::size_t head_bytes = head_end - kItemHeadBytes + end.size();
  std::memcpy(out, item.data(), kItemHeadBytes);
  encode_fixed64(out + kKeyIdAt, cipher.id());
  encode_fixed32(out + kHeadSizeAt, static_cast<std::uint32_t>(head_bytes));
  char* const head = out + kSealedHeadAt;
  std::memcpy(head, item.data() + kItemHeadBytes, head_end - kItemHeadBytes);
  if (!end.empty()) std::memcpy(head + head_end - kItemHeadBytes, end.data(), end.size());
  cipher.seal(offset, {head, head_bytes}, head);
  char* at = head + head_bytes + kSealBytes;
  place_checksum(out, static_cast<std::size_t>(at - out), file_number, offset);
  for (const PlainPage& page : pages)
    at = seal_page(at, item.substr(kItemHeadBytes + page.offset, page.size), cipher, file_number,
                   offset + static_cast<std::size_t>(at - out));
  EC_CHECK(at == out + size);
  return {out, size};
}

Status seal_item_in_pieces(ByteView item, ByteView end, PartCipher& cipher,
                           std::uint64_t file_number, std::uint64_t offset,
                           const std::function<Status(ByteView)>& take) {
  const ByteView begin = item.substr(kItemHeadBytes);
  Bytes head(item.substr(0, kItemHeadBytes));
  head.resize(kSealedHeadAt);
  encode_fixed64(head.data() + kKeyIdAt, cipher.id());
  encode_fixed32(head.data() + kHeadSizeAt, static_cast<std::uint32_t>(begin.size() + end.size()));
  Bytes room(PieceSealer::kRoomBytes, '\0');
  const auto seal = [&](const std::function<Status(ByteView)>& take_piece) -> Status {
    PieceSealer pieces(cipher.begin_sealing(offset), room.data());
    for (ByteView part : {begin, end})
      while (pieces.take(part)) EC_TRY(take_piece(pieces.empty_room()));
    return take_piece(pieces.finish());
  };
  std::uint32_t checksum =
      placed_crc32c(file_number, offset, ByteView(head).substr(kItemChecksumBytes));
  EC_TRY(seal([&](ByteView piece) {
    checksum = crc32c_extend(checksum, piece);
    return ok();
  }));
  encode_fixed32(head.data(), checksum);
  EC_TRY(take(head));
  return seal(take);
}

SealProblem open_sealed_item(Bytes& bytes, const FileCipher& cipher, std::uint64_t file_number,
                             std::uint64_t offset) {
  constexpr SealProblem kWrongChecksum{"wrong checksum of an item"};
  if (bytes.size() < kSealedHeadAt + kSealBytes) return kWrongChecksum;
  const std::size_t head_bytes = decode_fixed32(bytes.data() + kHeadSizeAt);
  if (head_bytes > bytes.size() - kSealedHeadAt - kSealBytes) return kWrongChecksum;
  const std::size_t head_end = kSealedHeadAt + head_bytes + kSealBytes;
  if (!page_checksum_matches(ByteView(bytes).substr(0, head_end), file_number, offset))
    return kWrongChecksum;
  const bool is_plain = bytes[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup);
  if (!is_plain && head_end != bytes.size()) return kWrongChecksum;

  std::optional<PartCipher> part = cipher.opener(decode_fixed64(bytes.data() + kKeyIdAt));
  if (!part) return {nullptr, Opened::Destroyed};
  char* const head = bytes.data() + kSealedHeadAt;
  const Opened opened = part->open(offset, {head, head_bytes + kSealBytes}, head);
  if (opened != Opened::Yes) return {nullptr, opened};
  std::memmove(bytes.data() + kItemHeadBytes, head, head_bytes);
  std::size_t end = kItemHeadBytes + head_bytes;
  if (is_plain) {
    if (SealProblem problem = open_pages(bytes, head_end, end, *part, file_number, offset);
        !problem.none())
      return problem;
  }
  bytes.resize(end);
  return {};
}

SealProblem open_sealed_page(char* bytes, ByteView& page, const FileCipher& cipher,
                             std::uint64_t file_number, std::uint64_t offset) {
  if (!is_page(page, file_number, offset)) return {"wrong checksum of a page"};
  std::optional<PartCipher> part = cipher.opener(decode_fixed64(bytes + kPageChecksumBytes));
  if (!part) return {nullptr, Opened::Destroyed};
  return open_page(bytes, page, *part, offset);
}

}  // namespace edgecase::engine
