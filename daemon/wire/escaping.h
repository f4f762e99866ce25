// Writes bytes and text inside other text: as base64, in a JSON string, in a URL.
#pragma once

#include <array>
#include <cstddef>
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

}  // namespace edgecase::wire
