// Items of an encrypted value table as they lie in the file: between them and the items that
// everybody else knows. Layout: value_format.h.
#pragma once

#include <cstdint>
#include <functional>

#include "crypto/file_cipher.h"
#include "value/page_index.h"
#include "value/value_format.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
