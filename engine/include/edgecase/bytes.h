// Byte strings, owned and borrowed, and those that nobody else may see: a key that wipes itself, a
// stack that is wiped, and the Sealer, which encrypts what is kept beside an encrypted store.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace edgecase {

// Arbitrary bytes, not text. A ByteView is valid for the length of a call unless the callee says
// otherwise.
using Bytes = std::string;
using ByteView = std::string_view;

// 256 bits that nobody else may know. Each copy wipes its memory when it goes.
struct SecretKey : std::array<std::uint8_t, 32> {
  ~SecretKey() { ::explicit_bzero(data(), size()); }
};

// As deep as calls here go, but for few.
inline constexpr std::size_t kWipedStackBytes = 64u << 10;

// Wipes what calls that have returned left on the stack of a thread, values, names and keys among
// it. A thread does so when it has nothing more to do.
template <std::size_t kBytes = kWipedStackBytes>
[[gnu::noinline]] void wipe_stack() {
  char dead[kBytes];
  ::explicit_bzero(dead, sizeof dead);
}

// Seals pieces of files that somebody keeps beside an encrypted store, with AES-256-GCM, under keys
// that nobody has who has not the store's (Engine::sealer()): another master key changes nothing.
//
// Each piece has a random salt of its own, which lies before it, and so a key of its own: what lay
// at its place before, in this file or an older one, need not be remembered. A piece opens in its
// own store, kind of file and place alone; that one of an earlier time was put back there, is for
// who reads it to notice. Thread-safe.
class Sealer {
 public:
  // What a sealed piece is longer by: the salt and a tag.
  static constexpr std::size_t kOverheadBytes = 24 + 16;

  virtual ~Sealer() = default;

  // `kind` is that of the file; `place` tells where in it.
  virtual Bytes seal(std::string_view kind, std::uint64_t place, ByteView plain) = 0;
  // Nothing: it was not sealed so, or has been changed.
  virtual std::optional<Bytes> open(std::string_view kind, std::uint64_t place,
                                    ByteView sealed) = 0;
};

}  // namespace edgecase
