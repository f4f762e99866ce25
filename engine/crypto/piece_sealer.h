// Seals something from where its parts lie into a room of a piece and a tag, so that no copy of all
// of it is needed. What is less than a block waits for more. Used by one thread.
//
//   PieceSealer pieces(gcm, room);
//   for (ByteView part : parts)
//     while (pieces.take(part)) write(pieces.empty_room());
//   write(pieces.finish());
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "crypto/aes_gcm.h"
#include "edgecase/bytes.h"

namespace edgecase::engine {

class PieceSealer {
 public:
  static constexpr std::size_t kPieceBytes = 64u << 10;
  static_assert(kPieceBytes % kGcmBlockBytes == 0);
  static constexpr std::size_t kRoomBytes = kPieceBytes + kGcmTagBytes;

  // `gcm` has begun to seal. `room` has kRoomBytes.
  PieceSealer(AesGcm& gcm, char* room) : gcm_(gcm), room_(room) {}

  // Takes what has room off the front of `part`. Answers whether the room is full.
  bool take(ByteView& part) {
    while (!part.empty() && sealed_ < kPieceBytes) {
      if (end_ == sealed_ && part.size() >= kGcmBlockBytes) {
        const std::size_t most = std::min(part.size(), kPieceBytes - sealed_);
        const std::size_t size = most - most % kGcmBlockBytes;
        seal(part.substr(0, size));
        part.remove_prefix(size);
        continue;
      }
      const std::size_t size = std::min(part.size(), sealed_ + kGcmBlockBytes - end_);
      std::memcpy(room_ + end_, part.data(), size);
      end_ += size;
      part.remove_prefix(size);
      if (end_ == sealed_ + kGcmBlockBytes) seal({room_ + sealed_, kGcmBlockBytes});
    }
    return sealed_ == kPieceBytes;
  }

  // A full one.
  ByteView empty_room() {
    sealed_ = end_ = 0;
    return {room_, kPieceBytes};
  }

  // The rest, with the tag.
  ByteView finish() {
    seal({room_ + sealed_, end_ - sealed_});
    const auto tag = gcm_.finish_sealing();
    std::memcpy(room_ + end_, tag.data(), tag.size());
    return {room_, end_ + tag.size()};
  }

 private:
  void seal(ByteView plain) {
    gcm_.seal_piece(plain, room_ + sealed_);
    end_ = sealed_ += plain.size();
  }

  AesGcm& gcm_;
  char* const room_;
  std::size_t sealed_ = 0;  // up to here
  std::size_t end_ = 0;     // of what is there
};

}  // namespace edgecase::engine
