// A large value that is an item of its own, and not packed, read in pieces from its value table. It
// is read twice: open() goes through all of it, checks it as a whole (checksum, and where it is
// sealed, tag) and marks where each piece ends; next_piece() reads again, and gives out what is as
// it was marked. A mark is a checksum, or the tag of all that is sealed up to there.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "crypto/file_cipher.h"
#include "edgecase/large_value.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
