// AES-256 in Galois/counter mode (NIST SP 800-38D), by Nettle: nobody can read what was sealed, or
// change it unseen, without the key. A nonce must never serve twice under one key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase::engine {

// Secrets in memory: they are wiped when they go.

using edgecase::SecretKey;

inline constexpr std::size_t kSecretKeyBytes = 32;
static_assert(sizeof(SecretKey) == kSecretKeyBytes);

inline ByteView bytes_of(const SecretKey& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

// Wipes bytes that hold secrets when it goes. They must not have grown meanwhile: what they outgrew
// would stay.
class WipeAtEnd {
 public:
  explicit WipeAtEnd(Bytes& bytes) : bytes_(bytes) {}
  ~WipeAtEnd() { ::explicit_bzero(bytes_.data(), bytes_.size()); }
  WipeAtEnd(const WipeAtEnd&) = delete;
  WipeAtEnd& operator=(const WipeAtEnd&) = delete;

 private:
  Bytes& bytes_;
};

inline constexpr std::size_t kGcmTagBytes = 16;
inline constexpr std::size_t kGcmNonceBytes = 12;
inline constexpr std::size_t kGcmBlockBytes = 16;

using GcmNonce = std::array<std::uint8_t, kGcmNonceBytes>;

// Used by one thread. To make one takes about as long as to seal 500 bytes; it takes 4.4 KiB, which
// are wiped when it goes.
class AesGcm {
 public:
  explicit AesGcm(const SecretKey& key);
  ~AesGcm();
  AesGcm(const AesGcm&) = delete;
  AesGcm& operator=(const AesGcm&) = delete;

  // Writes plain.size() bytes and the tag behind them; `out` may be where `plain` is. `associated`
  // is not written but must be the same for open().
  void seal(const GcmNonce& nonce, ByteView associated, ByteView plain, char* out);
  // False when it was not sealed so, or has been changed. Writes sealed.size() - kGcmTagBytes
  // bytes, in place too; after false they mean nothing.
  [[nodiscard]] bool open(const GcmNonce& nonce, ByteView associated, ByteView sealed, char* out);

  // In pieces: each but the last a multiple of kGcmBlockBytes. `out` may be where `plain` is.
  void begin_sealing(const GcmNonce& nonce, ByteView associated);
  void seal_piece(ByteView plain, char* out);
  std::array<char, kGcmTagBytes> finish_sealing();
  // The same way back, in place too. What was opened means nothing until the tag of all of it was
  // compared.
  void begin_opening(const GcmNonce& nonce, ByteView associated);
  void open_piece(ByteView sealed, char* out);
  // As if what was sealed or opened by now were all. Only to be compared: whoever saw several of
  // one nonce could forge.
  std::array<char, kGcmTagBytes> tag_so_far() const;

 private:
  static constexpr std::size_t kContextBytes = 4400;

  void begin(const GcmNonce& nonce, ByteView associated);

  alignas(16) std::byte context_[kContextBytes];  // the library's
};

// In constant time; both have kGcmTagBytes.
[[nodiscard]] bool is_same_tag(const char* one, const char* other);

// Whether the library computes what the standard says. Internal error: it does not, and nothing may
// be sealed with it.
Status test_aes_gcm();

// The answers that test_aes_gcm() compares, in a header so that tests can plant a wrong one.

// The tag of test case 15 of the mode's specification.
inline constexpr std::array<std::uint8_t, kGcmTagBytes> kGcmTestTag = {
    0xb0, 0x94, 0xda, 0xc5, 0xd9, 0x34, 0x71, 0xbd, 0xec, 0x1a, 0x50, 0x22, 0x70, 0xe3, 0xcc, 0x6c};

// As test_aes_gcm(), which gives it the right tag. Unsupported: nothing may be sealed or opened.
Status compare_aes_gcm(const std::array<std::uint8_t, kGcmTagBytes>& right_tag);

// Seals something from where its parts lie into a room of a piece and a tag, so that no copy of all
// of it is needed. What is less than a block waits for more. Used by one thread.
//
//   PieceSealer pieces(gcm, room);
//   for (ByteView part : parts)
//     while (pieces.take(part)) write(pieces.empty_room());
//   write(pieces.finish());
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
