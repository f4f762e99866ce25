// Base64 with the standard alphabet and padding (RFC 4648 section 4): bytes in JSON and CSV.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

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

}  // namespace edgecase::wire
