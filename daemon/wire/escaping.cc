#include "wire/escaping.h"

#include <array>
#include <cstdint>
#include <utility>

namespace edgecase::wire {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (std::uint8_t& digit : digits) digit = kNoDigit;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

}  // namespace

void append_base64(std::string_view bytes, std::string& out) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < taken ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(j <= taken ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=');
    }
  }
}

void Base64Encoder::append(std::string_view piece, std::string& out) {
  if (kept_bytes_ > 0) {
    while (kept_bytes_ < kept_.size() && !piece.empty()) {
      kept_[kept_bytes_++] = piece.front();
      piece.remove_prefix(1);
    }
    if (kept_bytes_ < kept_.size()) return;
    finish(out);
  }
  const std::size_t whole = piece.size() - piece.size() % kept_.size();
  append_base64(piece.substr(0, whole), out);
  kept_bytes_ = piece.copy(kept_.data(), kept_.size(), whole);
}

void Base64Encoder::finish(std::string& out) {
  append_base64({kept_.data(), std::exchange(kept_bytes_, 0)}, out);
}

Result<std::string> decode_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t size, decode_base64(text, bytes.data()));
  bytes.resize(size);
  return bytes;
}

Result<std::size_t> decode_base64(std::string_view text, char* out) {
  if (text.size() % 4 != 0) return invalid_argument("base64 length is not a multiple of 4");
  char* at = out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::size_t digits = 4;
    if (i + 4 == text.size()) {
      if (text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    }
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::uint8_t digit = j < digits ? kDigits[static_cast<unsigned char>(text[i + j])] : 0;
      if (digit == kNoDigit) {
        return invalid_argument("base64 holds a wrong character at position " +
                                std::to_string(i + j));
      }
      bits = bits << 6 | digit;
    }
    if ((digits == 2 && (bits & 0xffff) != 0) || (digits == 3 && (bits & 0xff) != 0)) {
      return invalid_argument("base64 ends in bits that stand for nothing");
    }
    for (std::size_t j = 0; j + 1 < digits; ++j) {
      *at++ = static_cast<char>(bits >> (16 - 8 * j) & 0xff);
    }
  }
  return static_cast<std::size_t>(at - out);
}

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain = 0;  // begin of what needs no escape
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      default:
        out.append("\\u00");
        out.push_back(kHex[c >> 4]);
        out.push_back(kHex[c & 15]);
    }
  }
  out.append(text.substr(plain));
}

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  append_json_escaped(text, out);
  out.push_back('"');
}

std::string percent_encode(std::string_view text) {
  constexpr char kHexDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain) {
      out += c;
    } else {
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (is_code) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace edgecase::wire
