// Items of value tables as a whole: their checksums and seals, and large values, which are read in
// pieces.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/entry.h"
#include "crypto/file_cipher.h"
#include "edgecase/bytes.h"
#include "edgecase/iterator.h"
#include "value/group.h"
#include "value/value_format.h"
#include "value/value_table.h"

namespace edgecase::engine {

// The checksums of an item: one of all of it, or, of a plain group, one of what stands before its
// pages and one of each page. All are salted with where they lie. Layout: value_format.h.

// Fills in the checksums of an item that is whole but for them, as it belongs at `offset` of file
// `file_number`. For an item that is no plain group, `end` belongs behind it.
void place_checksums(Bytes& item, std::uint64_t file_number, std::uint64_t offset,
                     ByteView end = {});

// `item` is larger than an item's head.
bool checksums_match(ByteView item, std::uint64_t file_number, std::uint64_t offset);
// Whether the checksum of one page holds; the page is larger than its checksum.
bool page_checksum_matches(ByteView page, std::uint64_t file_number, std::uint64_t offset);

// Items of an encrypted value table as they lie in the file: between them and the items that
// everybody else knows. Layout: value_format.h.

// What an item is longer by in the file, and each page of a plain group.
inline constexpr std::uint32_t kItemSealBytes = kKeyIdBytes + kSealedHeadSizeBytes + kSealBytes;
inline constexpr std::uint32_t kPageSealBytes = kKeyIdBytes + kSealBytes;
// Where parts of a sealed item lie.
inline constexpr std::size_t kKeyIdAt = kItemHeadBytes;
inline constexpr std::size_t kHeadSizeAt = kKeyIdAt + kKeyIdBytes;
inline constexpr std::size_t kSealedHeadAt = kHeadSizeAt + kSealedHeadSizeBytes;

// For a cipher, or none.
inline SealOverhead overhead_of(const FileCipher* cipher) {
  return cipher == nullptr ? SealOverhead{} : SealOverhead{kItemSealBytes, kPageSealBytes};
}

// `item`, which is whole but for its checksums, as it belongs at `offset` of the file. It lies in
// `room`, which grows as needed and never shrinks: memory for many of them in turn. For an item
// that is no plain group, `end` belongs behind it.
ByteView seal_item(Bytes& room, ByteView item, ByteView end, PartCipher& cipher,
                   std::uint64_t file_number, std::uint64_t offset);

// As seal_item(), of one that is no plain group; what lies in the file goes to `take` in pieces,
// and no copy is made. It is sealed twice: its checksum comes first. Errors: those of `take`.
Status seal_item_in_pieces(ByteView item, ByteView end, PartCipher& cipher,
                           std::uint64_t file_number, std::uint64_t offset,
                           const std::function<Status(ByteView)>& take);

// Why something cannot be opened; nullptr: it was.
struct SealProblem {
  const char* damage = nullptr;  // its bytes are damaged
  Opened opened = Opened::Yes;   // they are right but do not open

  bool none() const { return damage == nullptr && opened == Opened::Yes; }
};

// Replaces what lies in the file by the item. Looks at all checksums.
SealProblem open_sealed_item(Bytes& bytes, const FileCipher& cipher, std::uint64_t file_number,
                             std::uint64_t offset);

// One page, in place: `page` becomes a view of it, which begins somewhere in its own bytes.
SealProblem open_sealed_page(char* bytes, ByteView& page, const FileCipher& cipher,
                             std::uint64_t file_number, std::uint64_t offset);

// A large value that is an item of its own, and not packed, read in pieces from its value table. It
// is read twice: open() goes through all of it, checks it as a whole (checksum, and where it is
// sealed, tag) and marks where each piece ends; next_piece() reads again, and gives out what is as
// it was marked. A mark is a checksum, or the tag of all that is sealed up to there.
class LargeItem final : public LargeValue {
 public:
  // The item at `pointer`, which is a Put of `full_key`. Errors: as those of
  // ValueTableReader::read().
  static Result<std::unique_ptr<LargeItem>> open(std::shared_ptr<const ValueTableReader> table,
                                                 const ValuePointer& pointer, ByteView full_key);
  // Whether it can be opened, as far as its head tells: false, its key seems to be destroyed.
  static Result<bool> has_key(const ValueTableReader& table, const ValuePointer& pointer);

  std::uint64_t size_bytes() const override { return end_ - begin_ - value_at_; }
  std::uint64_t sequence() const override { return sequence_; }
  Result<ByteView> next_piece() override;

 private:
  using Mark = std::array<char, kGcmTagBytes>;

  LargeItem(std::shared_ptr<const ValueTableReader> table, const ValuePointer& pointer,
            const Bytes& head);
  static Result<Bytes> read_head(const ValueTableReader& table, const ValuePointer& pointer);

  bool is_sealed() const { return table_->cipher() != nullptr; }
  Status check(ByteView head, ByteView full_key);
  bool take_head(ByteView piece, ByteView full_key);
  Status read_at(std::uint64_t offset, std::size_t size);
  // Reads piece `index`, which is `checksum` longer then. A view of it, opened where it is sealed.
  Result<ByteView> read_piece(std::size_t index, std::uint32_t* checksum);
  Mark mark_of(ByteView piece) const;
  Status damaged(std::string_view what) const { return table_->damaged(pointer_, what); }

  const std::shared_ptr<const ValueTableReader> table_;
  const ValuePointer pointer_;
  std::optional<PartCipher> part_;  // none: not sealed, or the key is destroyed
  AesGcm* opening_ = nullptr;       // of part_
  // Where what follows the head lies: kind, sequence, key, value.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::size_t value_at_ = 0;  // in the first piece
  SequenceNumber sequence_ = 0;
  std::vector<Mark> marks_;
  std::size_t next_ = 0;
  Bytes buffer_;
};

// A large value that lies in memory all the same.
class MemoryValue final : public LargeValue {
 public:
  // `keeper` keeps `value` where it is.
  MemoryValue(ByteView value, SequenceNumber sequence, std::shared_ptr<const void> keeper)
      : keeper_(std::move(keeper)), sequence_(sequence), size_(value.size()), rest_(value) {}

  std::uint64_t size_bytes() const override { return size_; }
  std::uint64_t sequence() const override { return sequence_; }
  Result<ByteView> next_piece() override {
    const ByteView piece = rest_.substr(0, kLargeValuePieceBytes);
    rest_.remove_prefix(piece.size());
    return piece;
  }

 private:
  const std::shared_ptr<const void> keeper_;
  const SequenceNumber sequence_;
  const std::size_t size_;
  ByteView rest_;
};

}  // namespace edgecase::engine
