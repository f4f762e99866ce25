// A value that is read in pieces, for those that are too large to lie in memory as a whole. All of
// it was checked before it is given out, and each piece is the one that was checked. Owned by one
// thread; keeps what it reads alive, as its iterator does: let go of it soon.
#pragma once

#include <cstddef>
#include <cstdint>

#include "edgecase/bytes.h"
#include "edgecase/result.h"

namespace edgecase {

inline constexpr std::size_t kLargeValuePieceBytes = 64u << 10;
inline constexpr std::uint64_t kNoLargeValues = UINT64_MAX;

class LargeValue {
 public:
  virtual ~LargeValue() = default;

  virtual std::uint64_t size_bytes() const = 0;
  // Tells values of one key apart: another one that was put later has another.
  virtual std::uint64_t sequence() const = 0;
  // What comes next, at most kLargeValuePieceBytes, until the next call; the first piece has a KiB
  // at least, where the value has, and an empty one is the end. May read a drive. NotFound: it was
  // erased, or has come under a shorter rule, since.
  virtual Result<ByteView> next_piece() = 0;
};

}  // namespace edgecase
