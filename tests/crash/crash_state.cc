#include "crash/crash_state.h"

#include <charconv>
#include <iterator>

#include "support/manual_clock.h"
#include "wire/reading.h"

namespace edgecase::test {
namespace {

constexpr std::size_t kTimesPerSeries = 6;
constexpr std::int64_t kTimeStepNs = 1'000'000'000;
// From the beginning of a life on; some in one bucket, others far apart.
constexpr std::int64_t kTimesMs[] = {-20'000, -9'000, -8'800, -4'000, 0, 200, 1'900, 9'000};
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::string_view kDevices[] = {"pump", "tank"};
constexpr std::string_view kSensors[] = {"level", "temp"};
static_assert(std::size(kDevices) * std::size(kSensors) * kTimesPerSeries == kKeysPerPlace);

constexpr std::size_t kLargePlace = 3;

// Mixes a number, so that neighbouring ones have nothing in common.
std::uint64_t mix(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

enum class Shape : unsigned char { Integer, Float, Text };

Shape shape_of(ValueNumber number) {
  const std::uint64_t drawn = mix(number) % 8;
  return drawn < 2 ? Shape::Integer : drawn < 4 ? Shape::Float : Shape::Text;
}

// Fillers are so many that hardly four in a row are said twice: compression leaves needles as they
// are.
constexpr std::string_view kFillers =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";

// "<number>:" and a filler.
std::string text_of(std::size_t place, ValueNumber number) {
  const std::uint64_t drawn = mix(number + 0x9e3779b97f4a7c15);
  std::uint64_t filler = drawn % 64;
  if (drawn >> 32 & 1) filler = drawn % kThresholdBytes;
  if (place == kLargePlace || (drawn >> 33) % 8 == 0) filler = drawn % (4 * kThresholdBytes);
  std::string text = std::to_string(number) + ":";
  for (std::uint64_t i = 0; i < filler; ++i)
    text.push_back(kFillers[(drawn >> i % 48) % kFillers.size()]);
  return text;
}

}  // namespace

void apply(const Changes& changes, State& state) {
  for (const Change& change : changes) {
    auto& keys = state.places[change.place];
    switch (change.kind) {
      case Change::Kind::Put: keys[change.key] = change.value; break;
      case Change::Kind::Remove: keys[change.key] = 0; break;
      case Change::Kind::RemoveRange:
      case Change::Kind::EraseRange:
        for (std::size_t key = change.key; key < change.key_end; ++key) keys[key] = 0;
        break;
    }
  }
}

std::string difference(const State& expected, const State& found) {
  constexpr int kShown = 4;
  std::string text;
  int count = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
      const ValueNumber want = expected.places[place][key];
      const ValueNumber have = found.places[place][key];
      if (want == have || ++count > kShown) continue;
      text += (text.empty() ? "" : ", ") + std::string(place_name(place)) + "/" +
              std::to_string(key) + " has value " + std::to_string(have) + " and not " +
              std::to_string(want);
    }
  }
  if (count > kShown) text += ", and " + std::to_string(count - kShown) + " more";
  return text;
}

std::string_view place_name(std::size_t place) {
  constexpr std::string_view kNames[kPlaces] = {"plain", "series", "onboard", "large",
                                                "north", "south",  "timed"};
  return kNames[place];
}

NamespaceOptions place_options(std::size_t place) {
  switch (place) {
    case 1: return {Placement::Values, GroupCodec::Series, 2};
    case kTimedPlace: return {Placement::Values, GroupCodec::Series, 2};
    case 2: return {Placement::Metadata, GroupCodec::Plain, 0};
    default: return {Placement::Values, GroupCodec::Plain, 0};
  }
}

// Two bytes of scope and a big-endian ordinal, as series have them; that suits any codec.
Bytes engine_key(std::size_t place, std::size_t key) {
  Bytes bytes{'s', static_cast<char>('0' + key / 8)};
  const std::uint64_t ordinal = place == kTimedPlace
                                    ? static_cast<std::uint64_t>(timed_time_ns(key)) ^ kSignBit
                                    : (key % 8) * (place + 1) * 1000;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(ordinal >> shift));
  return bytes;
}

std::optional<std::size_t> parse_engine_key(std::size_t place, ByteView bytes) {
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    if (engine_key(place, key) == bytes) return key;
  }
  return std::nullopt;
}

std::int64_t timed_time_ns(std::size_t key) {
  return ManualClock::kStartWallNs + kTimesMs[key % std::size(kTimesMs)] * 1'000'000;
}

std::string_view site_device(std::size_t key) {
  return kDevices[key / (kKeysPerPlace / 2)];
}
std::string_view site_sensor(std::size_t key) {
  return kSensors[key / kTimesPerSeries % 2];
}
std::int64_t site_time_ns(std::size_t key) {
  return static_cast<std::int64_t>(key % kTimesPerSeries) * kTimeStepNs - 2 * kTimeStepNs;
}
std::optional<std::size_t> find_site_key(std::string_view device, std::string_view sensor,
                                         std::int64_t time_ns) {
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    if (site_device(key) == device && site_sensor(key) == sensor && site_time_ns(key) == time_ns)
      return key;
  }
  return std::nullopt;
}

wire::Value site_value(ValueNumber number, std::string& store) {
  switch (shape_of(number)) {
    case Shape::Integer: return wire::Value::of_int64(number);
    case Shape::Float: return wire::Value::of_float64(number / 8.0);
    case Shape::Text: break;
  }
  store = text_of(kEnginePlaces, number);
  return wire::Value::of_text(store);
}

Bytes value_bytes(std::size_t place, ValueNumber number) {
  std::string store;
  Bytes bytes;
  if (is_site(place) || shape_of(number) != Shape::Text) {
    wire::append_value(site_value(number, store), bytes);
    return bytes;
  }
  return text_of(place, number);
}

std::optional<ValueNumber> parse_value(std::size_t place, ByteView bytes) {
  wire::Value value;
  std::uint64_t number = 0;
  ByteView digits = bytes;
  if (wire::decode_value(bytes, value)) {
    if (value.type == wire::ValueType::Int64) number = static_cast<std::uint64_t>(value.int64);
    if (value.type == wire::ValueType::Float64 && value.float64 > 0 && value.float64 < UINT32_MAX)
      number = static_cast<std::uint64_t>(value.float64 * 8.0);
    digits = value.type == wire::ValueType::Text ? value.text : ByteView();
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (number == 0 || number > UINT32_MAX) return std::nullopt;
  const auto parsed = static_cast<ValueNumber>(number);
  if (value_bytes(place, parsed) != bytes) return std::nullopt;
  return parsed;
}

std::optional<Bytes> needle_of(std::size_t place, ValueNumber number) {
  constexpr std::size_t kNeedleBytes = 24;
  if (is_site(place) || shape_of(number) != Shape::Text) return std::nullopt;
  const std::string text = text_of(place, number);
  const std::size_t filler = text.find(':') + 1;
  if (text.size() - filler < kNeedleBytes) return std::nullopt;
  return text.substr(filler, kNeedleBytes);
}

}  // namespace edgecase::test
