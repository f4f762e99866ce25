#include "wire/names.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "wire/reading.h"

namespace edgecase::wire {
namespace {

constexpr char32_t kNoCharacter = 0xffffffff;

// Decodes the character at `position` and moves past it; kNoCharacter for overlong forms,
// surrogates, values above U+10FFFF and cut sequences.
char32_t next_character(std::string_view text, std::size_t& position) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte_at(position);
  if (lead < 0x80) {
    ++position;
    return lead;
  }
  std::size_t length = 0;
  char32_t character = 0;
  char32_t smallest = 0;
  if ((lead & 0xe0) == 0xc0) {
    length = 2, character = lead & 0x1f, smallest = 0x80;
  } else if ((lead & 0xf0) == 0xe0) {
    length = 3, character = lead & 0x0f, smallest = 0x800;
  } else if ((lead & 0xf8) == 0xf0) {
    length = 4, character = lead & 0x07, smallest = 0x10000;
  } else {
    return kNoCharacter;
  }
  if (text.size() - position < length) return kNoCharacter;
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char next = byte_at(position + i);
    if ((next & 0xc0) != 0x80) return kNoCharacter;
    character = character << 6 | (next & 0x3f);
  }
  if (character < smallest || character > 0x10ffff) return kNoCharacter;
  if (character >= 0xd800 && character <= 0xdfff) return kNoCharacter;
  position += length;
  return character;
}

// How many bytes to begin with are surely ASCII, in steps of eight: most texts are that throughout.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t size = 0;
  for (std::uint64_t eight = 0; text.size() - size >= sizeof eight; size += sizeof eight) {
    std::memcpy(&eight, text.data() + size, sizeof eight);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  return size;
}

// Most characters of most names.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && byte != '/';
}

// How many characters to begin with are plain: most names are that throughout.
std::size_t plain_prefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  // Eight at a time. The high bit of each byte: below `limit`, where all are ASCII; of some byte,
  // where there is such a one.
  const auto below = [](std::uint64_t word, unsigned limit) { return word - kOnes * limit; };
  std::size_t size = 0;
  for (std::uint64_t eight = 0; text.size() - size >= sizeof eight; size += sizeof eight) {
    std::memcpy(&eight, text.data() + size, sizeof eight);
    const std::uint64_t bad = eight | below(eight, 0x20) | below(eight ^ kOnes * 0x7f, 1) |
                              below(eight ^ kOnes * static_cast<unsigned char>('/'), 1);
    if ((bad & kHighs) != 0) break;
  }
  while (size < text.size() && is_plain(text[size])) ++size;
  return size;
}

Status bad_name(std::string_view what, std::string_view why) {
  return invalid_argument(std::string(what) + " name " + std::string(why));
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  return valid_utf8_bytes(text) == text.size();
}

std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    position += ascii_prefix(text.substr(position));
    const std::size_t character = position;
    if (position < text.size() && next_character(text, position) == kNoCharacter) return character;
  }
  return text.size();
}

std::size_t name_max_bytes(std::string_view what) {
  return what == "device"                       ? kDeviceNameMaxBytes
         : what == "sensor" || what == "stored" ? kSensorNameMaxBytes
                                                : kNameMaxBytes;
}

void make_name(std::string& text, std::size_t bytes_max, std::size_t begin) {
  // Most names are good as they are.
  std::size_t kept = begin + plain_prefix(std::string_view(text).substr(begin));
  // A character of C1 takes two bytes and becomes one.
  for (std::size_t i = kept; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) ++i;
    const bool is_bad = byte < 0x20 || byte == 0x7f || byte == '/' || is_c1;
    text[kept++] = is_bad ? ':' : static_cast<char>(byte);
  }
  text.resize(kept);
  if (text.size() <= bytes_max) return;
  // FNV-1a, written out: names that are in stores hang on it.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  constexpr std::size_t kHashDigits = 16;
  std::size_t end = bytes_max - kHashDigits - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  text += '~';
  for (std::size_t i = kHashDigits; i-- > 0;) text += "0123456789abcdef"[hash >> 4 * i & 15];
}

bool is_made_name(std::string_view text) {
  const std::size_t plain = plain_prefix(text);
  if (plain == text.size()) return true;
  std::string made(text);
  make_name(made, SIZE_MAX, plain);
  return made == text;
}

Status check_name(std::string_view what, std::string_view name) {
  if (name.empty()) return bad_name(what, "is empty");
  if (const std::size_t bytes_max = name_max_bytes(what); name.size() > bytes_max) {
    return bad_name(what, "has " + std::to_string(name.size()) + " bytes; at most " +
                              std::to_string(bytes_max) + " are allowed");
  }
  std::size_t position = plain_prefix(name);
  while (position < name.size()) {
    const char32_t character = next_character(name, position);
    if (character == kNoCharacter) return bad_name(what, "is not UTF-8");
    if (character == U'/') return bad_name(what, "holds a '/', which is not allowed");
    if (character < 0x20 || (character >= 0x7f && character <= 0x9f)) {
      return bad_name(what, "holds a control character, which is not allowed");
    }
  }
  return ok();
}

namespace {

constexpr std::size_t kDistanceMax = 2;
constexpr std::size_t kWordMaxBytes = 64;

// How many letters must change to make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = kDistanceMax + 1;
  if (word.size() > kWordMaxBytes) return best;
  for (const std::string_view candidate : known) {
    const bool begins = word.size() > 1 && candidate.starts_with(word);
    const std::size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance < best_distance && 2 * distance <= word.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace edgecase::wire
