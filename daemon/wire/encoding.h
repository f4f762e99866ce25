// Bytes as other bytes: inside text, as base64, in a JSON string, in a URL; and packed for the way,
// by gzip or zstd (Packer). One thread each.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

// Base64 with the standard alphabet and padding (RFC 4648 section 4): bytes in JSON and CSV.
void append_base64(std::string_view bytes, std::string& out);

// The same of bytes that come in pieces.
class Base64Encoder {
 public:
  void append(std::string_view piece, std::string& out);
  // The end. Then it begins anew.
  void finish(std::string& out);

 private:
  std::array<char, 3> kept_{};  // what waits for more of its three bytes
  std::size_t kept_bytes_ = 0;
};

// InvalidArgument for any other character (line breaks too), missing padding, and bits that no
// encoder leaves set at the end: one byte string has one text.
Result<std::string> decode_base64(std::string_view text);
// The same, to where there is room for three bytes of every four characters: how many they are.
Result<std::size_t> decode_base64(std::string_view text, char* out);

// With quotes and escapes, valid UTF-8 kept as it is; and what stands between the quotes.
void append_json_string(std::string_view text, std::string& out);
void append_json_escaped(std::string_view text, std::string& out);

// As a part of a URL's path or query (RFC 3986, section 2.1): each byte that is not unreserved
// there as `%` and two digits.
std::string percent_encode(std::string_view text);
// The text that was encoded; a `%` without two digits behind it stays.
std::string percent_decode(std::string_view text);

// Bytes packed for the way: answers, bodies, columns. All memory of the libraries comes from here.

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
