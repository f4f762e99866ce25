// A large value that lies in memory all the same.
#pragma once

#include <memory>

#include "base/entry.h"
#include "edgecase/large_value.h"

namespace edgecase::engine {

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
