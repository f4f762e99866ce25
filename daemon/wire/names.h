// Names of series: of namespaces, devices and sensors, and the identity that a series has where it
// came from.
//
// Nothing here has state. Views last as long as what they were taken from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase::wire {

bool is_valid_utf8(std::string_view text);
// How many bytes of it are, from its begin on.
std::size_t valid_utf8_bytes(std::string_view text);
// A name is UTF-8 without control characters and `/`; of a device 1 to 256 bytes, of a sensor 1 to
// 1,024, of anything else 1 to 128. InvalidArgument says what is wrong with it; `what` is "device",
// "sensor", "namespace", …
Status check_name(std::string_view what, std::string_view name);
std::size_t name_max_bytes(std::string_view what);

// What is derived from something else becomes a name: `/` and control characters are `:`; what is
// longer than `bytes_max` is cut between two characters and ends in `~` and 16 hexadecimal digits,
// a hash of all of it, the same for good. `text` is UTF-8; from `begin` on it may be changed.
void make_name(std::string& text, std::size_t bytes_max, std::size_t begin = 0);
// Whether that changes nothing of `text` but its length. The same of two texts is so of them
// joined.
bool is_made_name(std::string_view text);

// "did you mean": the known word that a mistyped one was probably meant to be. Empty when none is
// near: at most two letters and half of `word` differ, or `word` is the beginning of one.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

// The identity of a series, as it is called where it came from: measurement, tags and field of line
// protocol. Two identities never share a series, whatever characters they are
// made of.
//
// Kept as bytes, in the catalog's records and between programs:
//
//   identity   count of tags (varint), measurement, field, then key and value of each tag, in the
//              order of the keys; each text: its length (varint), that many bytes
//
// In memory, and while lines come in, a series says of its identity only what its names do not
// (SeriesIdentity): mostly how long the measurement is, and which tag is the device.
inline constexpr std::size_t kIdentityMaxBytes = 16u << 10;
inline constexpr std::string_view kValueField = "value";
inline constexpr std::string_view kDeviceTag = "device";
// Between the two keys of SeriesIdentity::device_keys, where the device is named by two tags.
inline constexpr char kBetweenKeys = '\n';

struct Identity {
  using Tags = std::vector<std::pair<std::string, std::string>>;

  std::string measurement;
  Tags tags;  // ordered by key, no key twice
  std::string field;

  friend bool operator==(const Identity&, const Identity&) = default;
};

Bytes encode_identity(const Identity& identity);
// The same in parts: this, then key and value of each tag.
void append_identity_head(std::size_t tags, std::string_view measurement, std::string_view field,
                          Bytes& out);
void append_identity_text(std::string_view text, Bytes& out);
// InvalidArgument: cut, too long, tags out of order or twice, text that is not UTF-8.
Result<Identity> decode_identity(ByteView bytes);

// The measurement of such bytes; empty where they are cut.
std::string_view measurement_of(ByteView bytes);

// What the names of a series leave open of its identity. The sensor's name is measurement, `.` and
// field (not `value`), `{key=value,…}`; `device_keys` are the tags that the device's name is the
// value of: one, or two whose values it joins by `.`, or none.
struct SeriesIdentity {
  std::uint16_t measurement_bytes = 0;
  std::string_view device_keys;
  // An identity's bytes, without the tags of `device_keys`, where the sensor's name does not tell
  // them: it was cut, or has characters of its own replaced. Empty: it does.
  std::string_view body;

  friend bool operator==(const SeriesIdentity&, const SeriesIdentity&) = default;
};
// `body` must be an identity's bytes, or empty.
Identity identity_of(const SeriesIdentity& given, std::string_view device, std::string_view sensor);
// The same, put into what another one was in. False: `body` is no identity's bytes.
bool read_identity(const SeriesIdentity& given, std::string_view device, std::string_view sensor,
                   Identity& made);
// The way back; `body` is where the bytes lie that the result may view, beside `identity`.
SeriesIdentity series_identity(const Identity& identity, std::string_view device,
                               std::string_view sensor, Bytes& body);
// The identity of what did not come as line protocol: the sensor is the measurement, `device` the
// only tag, `value` the field.
inline SeriesIdentity identity_of_names(std::string_view sensor) {
  return {static_cast<std::uint16_t>(sensor.size()), kDeviceTag, {}};
}

// `name`, cut where it must be, `~` and a hash of the identity: what a series is called whose name
// belongs to another identity. `attempt`, from 0, gives another one where that is taken as well.
// `max_bytes`: how long it may be; 0: as a sensor's.
std::string name_of_taken(std::string_view name, ByteView identity, unsigned attempt,
                          std::size_t max_bytes = 0);

}  // namespace edgecase::wire
