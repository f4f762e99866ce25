#include "value/value_item.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "base/hash.h"
#include "crypto/aes_gcm.h"
#include "edgecase/status.h"
#include "value/group.h"
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

namespace {

static_assert(kLargeValuePieceBytes % kGcmBlockBytes == 0);

}  // namespace

Result<Bytes> LargeItem::read_head(const ValueTableReader& table, const ValuePointer& pointer) {
  const bool sealed = table.cipher() != nullptr;
  const std::size_t size = sealed ? kSealedHeadAt : kItemHeadBytes;
  if (pointer.size_bytes > kItemMaxBytes || pointer.size_bytes <= size + kSealBytes)
    return table.damaged(pointer, "item of impossible size");
  return read_exactly(table.file(), pointer.offset_bytes, size);
}

Result<bool> LargeItem::has_key(const ValueTableReader& table, const ValuePointer& pointer) {
  if (table.cipher() == nullptr) return true;
  EC_ASSIGN_OR_RETURN(const Bytes head, read_head(table, pointer));
  return table.cipher()->opener(decode_fixed64(head.data() + kKeyIdAt)).has_value();
}

Result<std::unique_ptr<LargeItem>> LargeItem::open(std::shared_ptr<const ValueTableReader> table,
                                                   const ValuePointer& pointer, ByteView full_key) {
  EC_ASSIGN_OR_RETURN(const Bytes head, read_head(*table, pointer));
  std::unique_ptr<LargeItem> item(new LargeItem(std::move(table), pointer, head));
  EC_TRY(item->check(head, full_key));
  return item;
}

LargeItem::LargeItem(std::shared_ptr<const ValueTableReader> table, const ValuePointer& pointer,
                     const Bytes& head)
    : table_(std::move(table)),
      pointer_(pointer),
      part_(table_->cipher() == nullptr
                ? std::nullopt
                : table_->cipher()->opener(decode_fixed64(head.data() + kKeyIdAt))),
      begin_(pointer.offset_bytes + head.size()),
      end_(pointer.offset_bytes + pointer.size_bytes - (is_sealed() ? kSealBytes : 0)) {
  buffer_.resize(std::min<std::size_t>(kLargeValuePieceBytes, end_ - begin_));
  marks_.reserve((end_ - begin_ + kLargeValuePieceBytes - 1) / kLargeValuePieceBytes);
}

Status LargeItem::read_at(std::uint64_t offset, std::size_t size) {
  EC_ASSIGN_OR_RETURN(const std::size_t got, table_->file().read(offset, size, buffer_.data()));
  return got == size ? ok() : damaged("file ends within an item");
}

Result<ByteView> LargeItem::read_piece(std::size_t index, std::uint32_t* checksum) {
  const std::uint64_t at = begin_ + index * kLargeValuePieceBytes;
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>(kLargeValuePieceBytes, end_ - at));
  EC_TRY(read_at(at, size));
  const ByteView piece(buffer_.data(), size);
  if (checksum != nullptr) *checksum = crc32c_extend(*checksum, piece);
  if (opening_ != nullptr) opening_->open_piece(piece, buffer_.data());
  return piece;
}

LargeItem::Mark LargeItem::mark_of(ByteView piece) const {
  if (opening_ != nullptr) return opening_->tag_so_far();
  Mark mark{};
  encode_fixed32(mark.data(), crc32c(piece));
  return mark;
}

Status LargeItem::check(ByteView head, ByteView full_key) {
  const bool wrong_size = is_sealed() && decode_fixed32(head.data() + kHeadSizeAt) != end_ - begin_;
  if (wrong_size) return damaged("wrong checksum of an item");
  if (part_) opening_ = &part_->begin_opening(pointer_.offset_bytes);
  std::uint32_t checksum = placed_crc32c(table_->head().identity.file_number, pointer_.offset_bytes,
                                         head.substr(kItemChecksumBytes));
  bool is_right = true;
  for (std::uint64_t at = begin_; at < end_; at += kLargeValuePieceBytes) {
    EC_ASSIGN_OR_RETURN(const ByteView piece, read_piece(marks_.size(), &checksum));
    if (marks_.empty() && (part_ || !is_sealed())) is_right = take_head(piece, full_key);
    marks_.push_back(mark_of(piece));
  }
  if (is_sealed()) {
    EC_TRY(read_at(end_, kSealBytes));
    checksum = crc32c_extend(checksum, ByteView(buffer_.data(), kSealBytes));
  }
  if (checksum != decode_fixed32(head.data())) return damaged("wrong checksum of an item");
  if (is_sealed()) {
    const bool opens = part_ && is_same_tag(marks_.back().data(), buffer_.data());
    const Opened opened = !part_ ? Opened::Destroyed : opens ? Opened::Yes : Opened::Changed;
    EC_TRY(table_->explain({nullptr, opened}, pointer_));
    opening_ = &part_->begin_opening(pointer_.offset_bytes);
  }
  if (!is_right || head[kItemChecksumBytes] != static_cast<char>(ItemType::Single))
    return damaged("item is malformed or not what its metadata record says");
  return ok();
}

bool LargeItem::take_head(ByteView piece, ByteView full_key) {
  if (piece.empty() || piece.front() != static_cast<char>(SingleKind::Put)) return false;
  Bytes unused;
  const std::optional<EntryView> entry = parse_single(piece, unused);
  if (!entry || entry->full_key != full_key) return false;
  value_at_ = piece.size() - entry->value.size();
  sequence_ = entry->sequence;
  return true;
}

Result<ByteView> LargeItem::next_piece() {
  if (next_ == marks_.size()) return ByteView();
  EC_ASSIGN_OR_RETURN(const ByteView piece, read_piece(next_, nullptr));
  const Mark mark = mark_of(piece);
  if (!is_same_tag(mark.data(), marks_[next_].data())) {
    const std::uint64_t at = begin_ + next_ * kLargeValuePieceBytes;
    EC_TRY(read_at(at, piece.size()));
    if (!is_blank({buffer_.data(), piece.size()}))
      return damaged("item was changed while it was read");
    return not_found(table_->file().path() + " at byte " + std::to_string(at) +
                     ": item was erased while it was read");
  }
  const bool is_first = next_++ == 0;
  return is_first ? piece.substr(value_at_) : piece;
}

}  // namespace edgecase::engine
