// Bytes packed for the way: answers, bodies, columns. One thread each.
//
// All memory of the libraries comes from here.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace edgecase::wire {

// As Content-Encoding names them. Deflate is only read.
enum class Coding : unsigned char { Identity, Gzip, Deflate, Zstd };
std::string_view name_of(Coding coding);

// Packs what comes in pieces. About 270 KB while it lasts, for zstd 300.
class Packer {
 public:
  // Gzip or Zstd. Null: there is no memory for it.
  static std::unique_ptr<Packer> create(Coding coding);
  virtual ~Packer() = default;
  // Appends all of `piece` to `out`: nothing of it waits here. False: it failed.
  [[nodiscard]] virtual bool pack(std::string_view piece, std::string& out) = 0;
  // Appends the end.
  [[nodiscard]] virtual bool finish(std::string& out) = 0;
};

// Appends all of `bytes`, packed to at most `room` bytes. False: it takes more, or there is no
// memory; nothing is appended.
inline constexpr std::size_t kAnyRoom = std::numeric_limits<std::size_t>::max();
[[nodiscard]] bool pack_once(Coding coding, std::string_view bytes, std::string& out,
                             std::size_t room = kAnyRoom);

// Memory for zlib, as z_stream's zalloc and zfree, and for zstd, as ZSTD_customMem: it holds what
// was packed or unpacked, and is wiped when it is given back, as all is that C++ gives back. Any
// thread.

inline void* allocate_for_zlib(void* /*opaque*/, unsigned items, unsigned size) {
  return ::operator new (std::size_t{items} * size, std::nothrow);
}
inline void* allocate_for_zstd(void* /*opaque*/, std::size_t size) {
  return ::operator new(size, std::nothrow);
}
inline void give_back_for_codec(void* /*opaque*/, void* memory) {
  ::operator delete(memory);
}

}  // namespace edgecase::wire
