// The state that a store of the crash harness may have: seven places (namespaces) of a few keys
// each, and for every key the number of the value it has. A state is small and compared as a whole,
// so that a history of them costs little; keys and values are computed from their numbers, and a
// value's bytes tell its number again.
//
// The first four places belong to the engine alone; the next two, the sites, are namespaces of the
// catalog, and their keys are readings. In the last one, the engine's too, keys have times around
// the beginning of a life, and may expire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/engine.h"
#include "wire/reading.h"

namespace edgecase::test {

inline constexpr std::size_t kEnginePlaces = 4;
inline constexpr std::size_t kSites = 2;
inline constexpr std::size_t kTimedPlace = kEnginePlaces + kSites;
inline constexpr std::size_t kPlaces = kTimedPlace + 1;
inline constexpr std::size_t kKeysPerPlace = 24;
// Values from here on are items of their own.
inline constexpr std::uint32_t kThresholdBytes = 512;

using ValueNumber = std::uint32_t;  // 0: there is no such key

struct State {
  std::array<std::array<ValueNumber, kKeysPerPlace>, kPlaces> places{};

  friend bool operator==(const State&, const State&) = default;
};

struct Change {
  enum class Kind : unsigned char { Put, Remove, RemoveRange, EraseRange };
  Kind kind = Kind::Put;
  std::size_t place = 0;
  std::size_t key = 0;
  std::size_t key_end = 0;  // of ranges: keys [key, key_end)
  ValueNumber value = 0;    // Put
};
using Changes = std::vector<Change>;

void apply(const Changes& changes, State& state);

// Where two states differ, in words; at most a few places.
std::string difference(const State& expected, const State& found);

inline bool is_site(std::size_t place) {
  return place >= kEnginePlaces && place < kTimedPlace;
}
std::string_view place_name(std::size_t place);
NamespaceOptions place_options(std::size_t place);  // of an engine place

// Keys of an engine place; their order is that of their numbers.
Bytes engine_key(std::size_t place, std::size_t key);
std::optional<std::size_t> parse_engine_key(std::size_t place, ByteView bytes);

// The time of a key in the place with times.
std::int64_t timed_time_ns(std::size_t key);

// A site's key is a series and a time.
std::string_view site_device(std::size_t key);
std::string_view site_sensor(std::size_t key);
std::int64_t site_time_ns(std::size_t key);
// Nothing when no key has these.
std::optional<std::size_t> find_site_key(std::string_view device, std::string_view sensor,
                                         std::int64_t time_ns);

// The bytes the engine holds for value `number` of `place`.
Bytes value_bytes(std::size_t place, ValueNumber number);
// Some of them that no other value has; nothing when there are too few.
std::optional<Bytes> needle_of(std::size_t place, ValueNumber number);
// The same as a reading's value; `store` keeps what the value points to.
wire::Value site_value(ValueNumber number, std::string& store);
// The number of what was read. Nothing when no value has these bytes.
std::optional<ValueNumber> parse_value(std::size_t place, ByteView bytes);

}  // namespace edgecase::test
