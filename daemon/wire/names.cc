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

namespace {

void append_varint(std::uint64_t number, Bytes& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

// False: `bytes` is cut, or the number is longer than any text here.
bool take_number(ByteView& bytes, std::size_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 21 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool take_text(ByteView& bytes, std::string& text) {
  std::size_t size = 0;
  if (!take_number(bytes, size) || size > bytes.size()) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return is_valid_utf8(text);
}

Status damaged(std::string_view why) {
  return invalid_argument("an identity of a series " + std::string(why));
}

void add_tag(std::string_view key, std::string_view value, Identity::Tags& tags) {
  const auto at = std::lower_bound(
      tags.begin(), tags.end(), key,
      [](const auto& each, std::string_view wanted) { return each.first < wanted; });
  tags.emplace(at, key, value);
}

// What the name of a sensor says. Its strings are put into those that are there.
void read_name(std::size_t measurement_bytes, std::string_view sensor, Identity& made) {
  made.measurement = sensor.substr(0, measurement_bytes);
  made.field = kValueField;
  std::size_t tags = 0;
  std::string_view rest = sensor.substr(made.measurement.size());
  if (rest.starts_with('.')) {
    const std::size_t end = std::min(rest.find('{'), rest.size());
    made.field = rest.substr(1, end - 1);
    rest.remove_prefix(end);
  }
  const bool has_tags = rest.starts_with('{') && rest.ends_with('}');
  rest = has_tags ? rest.substr(1, rest.size() - 2) : std::string_view();
  while (!rest.empty()) {
    const std::string_view tag = rest.substr(0, rest.find(','));
    const std::size_t equals = std::min(tag.find('='), tag.size());
    if (tags == made.tags.size()) made.tags.emplace_back();
    made.tags[tags].first = tag.substr(0, equals);
    made.tags[tags].second = tag.substr(std::min(equals + 1, tag.size()));
    ++tags;
    rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
  }
  made.tags.resize(tags);
}

}  // namespace

Bytes encode_identity(const Identity& identity) {
  Bytes bytes;
  append_identity_head(identity.tags.size(), identity.measurement, identity.field, bytes);
  for (const auto& [key, value] : identity.tags) {
    append_identity_text(key, bytes);
    append_identity_text(value, bytes);
  }
  return bytes;
}

void append_identity_head(std::size_t tags, std::string_view measurement, std::string_view field,
                          Bytes& out) {
  append_varint(tags, out);
  append_identity_text(measurement, out);
  append_identity_text(field, out);
}

void append_identity_text(std::string_view text, Bytes& out) {
  append_varint(text.size(), out);
  out.append(text);
}

Result<Identity> decode_identity(ByteView bytes) {
  if (bytes.size() > kIdentityMaxBytes) return damaged("is too long");
  Identity identity;
  std::size_t tags = 0;
  const bool has_names = take_number(bytes, tags) && take_text(bytes, identity.measurement) &&
                         take_text(bytes, identity.field);
  // A tag takes two bytes at least.
  if (!has_names || tags > bytes.size() / 2) return damaged("is cut short");
  for (std::size_t i = 0; i < tags; ++i) {
    std::string key, value;
    if (!take_text(bytes, key) || !take_text(bytes, value)) return damaged("is cut short");
    if (!identity.tags.empty() && identity.tags.back().first >= key)
      return damaged("has its tags out of order");
    identity.tags.emplace_back(std::move(key), std::move(value));
  }
  if (!bytes.empty()) return damaged("goes on behind its end");
  return identity;
}

std::string_view measurement_of(ByteView bytes) {
  std::size_t tags = 0, size = 0;
  if (!take_number(bytes, tags) || !take_number(bytes, size) || size > bytes.size()) return {};
  return bytes.substr(0, size);
}

bool read_identity(const SeriesIdentity& given, std::string_view device, std::string_view sensor,
                   Identity& made) {
  bool is_whole = true;
  if (given.body.empty()) {
    read_name(given.measurement_bytes, sensor, made);
  } else {
    auto body = decode_identity(given.body);
    is_whole = body.ok();
    made = is_whole ? *std::move(body) : Identity();
  }
  if (given.device_keys.empty()) return is_whole;
  const std::size_t between = given.device_keys.find(kBetweenKeys);
  if (between == std::string_view::npos) {
    add_tag(given.device_keys, device, made.tags);
    return is_whole;
  }
  const std::size_t dot = std::min(device.find('.'), device.size());
  add_tag(given.device_keys.substr(0, between), device.substr(0, dot), made.tags);
  add_tag(given.device_keys.substr(between + 1), device.substr(std::min(dot + 1, device.size())),
          made.tags);
  return is_whole;
}

Identity identity_of(const SeriesIdentity& given, std::string_view device,
                     std::string_view sensor) {
  Identity made;
  read_identity(given, device, sensor, made);
  return made;
}

SeriesIdentity series_identity(const Identity& identity, std::string_view device,
                               std::string_view sensor, Bytes& body) {
  static constexpr std::string_view kEntityKeys = "domain\nentity_id";
  SeriesIdentity made;
  made.measurement_bytes = static_cast<std::uint16_t>(identity.measurement.size());
  const auto follows = [&](std::string_view keys) {
    made.device_keys = keys;
    return identity_of(made, device, sensor) == identity;
  };
  const bool is_begun =
      identity.measurement.size() <= sensor.size() && sensor.starts_with(identity.measurement);
  if (is_begun) {
    if (follows({}) || follows(kEntityKeys)) return made;
    for (const auto& [key, value] : identity.tags) {
      if (value == device && key.find(kBetweenKeys) == std::string::npos && follows(key))
        return made;
    }
  }
  // Which of several tags of that value names the device cannot be told: then none does.
  const auto is_device = [device](const auto& tag) { return tag.second == device; };
  const auto tag = std::find_if(identity.tags.begin(), identity.tags.end(), is_device);
  const bool is_told = std::count_if(identity.tags.begin(), identity.tags.end(), is_device) == 1 &&
                       tag->first.find(kBetweenKeys) == std::string::npos && !tag->first.empty();
  Identity rest = identity;
  if (is_told) rest.tags.erase(rest.tags.begin() + (tag - identity.tags.begin()));
  body = encode_identity(rest);
  return {0, is_told ? std::string_view(tag->first) : std::string_view(), body};
}

std::string name_of_taken(std::string_view name, ByteView identity, unsigned attempt,
                          std::size_t max_bytes) {
  if (max_bytes == 0) max_bytes = kSensorNameMaxBytes;
  // FNV-1a, written out: names that are in stores hang on it.
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const char c : identity) add(static_cast<unsigned char>(c));
  if (attempt > 0) add(static_cast<unsigned char>(attempt));
  constexpr std::size_t kHashDigits = 16;
  std::size_t end = std::min(name.size(), max_bytes - kHashDigits - 1);
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;
  std::string made(name.substr(0, end));
  made += '~';
  for (std::size_t i = kHashDigits; i-- > 0;) made += "0123456789abcdef"[hash >> 4 * i & 15];
  return made;
}

}  // namespace edgecase::wire
