#include "value/large_item.h"

#include <algorithm>
#include <string>

#include "base/coding.h"
#include "base/crc32c.h"
#include "value/item_checksums.h"
#include "value/item_seal.h"

namespace edgecase::engine {
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
