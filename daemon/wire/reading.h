// Reading: one value of one sensor at one time. The type that every decoder produces and every
// formatter takes; and its key and value in the engine (reading_key.cc).
//
// Readings borrow: names and texts are views into the request they were decoded from, or into the
// batch's own stores (ReadingBatch). They live as long as both.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/options.h"
#include "edgecase/status.h"

namespace edgecase::wire {

enum class ValueType : std::uint8_t { Float64 = 1, Int64 = 2, Bool = 3, Text = 4, Bytes = 5 };

// Numbers and truth values: all that a value is fits into it.
inline bool is_plain(ValueType type) {
  return type < ValueType::Text;
}

// Which member counts is told by `type`.
struct Value {
  ValueType type = ValueType::Float64;
  union {
    double float64 = 0;
    std::int64_t int64;
    bool boolean;
  };
  std::string_view text;          // Text: UTF-8; Bytes: the bytes
  std::string_view content_type;  // Bytes only

  static Value of_float64(double v) {
    Value x;
    x.float64 = v;
    return x;
  }
  static Value of_int64(std::int64_t v) {
    Value x;
    x.type = ValueType::Int64;
    x.int64 = v;
    return x;
  }
  static Value of_bool(bool v) {
    Value x;
    x.type = ValueType::Bool;
    x.boolean = v;
    return x;
  }
  static Value of_text(std::string_view v) {
    Value x;
    x.type = ValueType::Text;
    x.text = v;
    return x;
  }
  static Value of_bytes(std::string_view v, std::string_view content_type) {
    Value x;
    x.type = ValueType::Bytes;
    x.text = v;
    x.content_type = content_type;
    return x;
  }

  // Equal in type, too: 1 is not 1.0.
  friend bool operator==(const Value& a, const Value& b) {
    if (a.type != b.type) return false;
    switch (a.type) {
      case ValueType::Float64: return a.float64 == b.float64;
      case ValueType::Int64: return a.int64 == b.int64;
      case ValueType::Bool: return a.boolean == b.boolean;
      case ValueType::Text: return a.text == b.text;
      case ValueType::Bytes: return a.text == b.text && a.content_type == b.content_type;
    }
    return false;
  }
};

// A tier of retention (wire/tiers.h): windows of `every_ns`, aligned to the epoch, that are kept
// for so long.
struct Tier {
  std::int64_t every_ns = 0;
  std::int64_t keep_ns = kRetentionForever;

  friend bool operator==(const Tier&, const Tier&) = default;
};

// What the rule of a topic says: of a device that is new, and what its readings become once their
// retention is over (Reading::retention_ns). Owned by the rule, which outlives readings.
struct TopicMetadata {
  std::string owner;
  std::vector<std::string> purposes;
  std::vector<Tier> tiers = {};

  bool is_of_device() const { return !owner.empty() || !purposes.empty(); }
};

// What a reading's time is worth.
enum class TimeSource : std::uint8_t {
  Given,      // an instruction, or decided already
  Measured,   // a device says that it measured then
  LastHeard,  // somebody says that the device was heard then
};

struct SeriesIdentity;  // names.h
struct Window;          // tiers.h

// Why a window has no value, in the order of their weight.
enum class Lack : unsigned char {
  Nothing,      // it has one
  Unavailable,  // it needs a drive that is away
  Damaged,
};
std::string_view lack_name(Lack lack);  // "unavailable"

struct Reading {
  std::string_view namespace_name;
  std::string_view device;
  std::string_view sensor;
  std::optional<std::int64_t> time_ns;  // unset on the way in: stamped on arrival
  Value value;
  // On the way in: how long the topic's rule keeps the series, or a kRetention… below.
  std::int64_t retention_ns = 0;
  const TopicMetadata* metadata = nullptr;  // and what it says of new devices; null: nothing
  // The identity of its series; null: its names say all that there is. Owned like the names.
  const SeriesIdentity* identity = nullptr;
  // Not 0: under one ReadingBatch::numbering, readings with the same number are of the same
  // namespace, device and sensor.
  std::uint32_t series_number = 0;
  TimeSource time_source = TimeSource::Given;  // on the way in: of `time_ns`
  bool comes_again = false;                    // on the way in: whoever brings it says so
  Lack lack = Lack::Nothing;                   // on the way out: why `value` is none
  // What is known of readings that a tier keeps as one of its windows, which begins at `time_ns`:
  // `value` means nothing then. Null: a reading. Owned like the names.
  const Window* window = nullptr;
};
inline constexpr std::int64_t kRetentionUnsaid = 0;      // it came by no topic
inline constexpr std::int64_t kRetentionOfNoTopic = -1;  // its topic's rule says nothing

// Text and small objects, in blocks that never move: they live until clear(). One thread.
class TextStore {
 public:
  // Copies `text`.
  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    char* const copy = room(text.size());
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }
  // Copies something that needs no destructor.
  template <typename T>
  const T* keep_object(const T& object) {
    static_assert(std::is_trivially_destructible_v<T>);
    void* at = room(sizeof(T) + alignof(T));
    std::size_t space = sizeof(T) + alignof(T);
    return new (std::align(alignof(T), sizeof(T), at, space)) T(object);
  }
  // `size` bytes, not initialised.
  char* room(std::size_t size) {
    if (blocks_.empty() || blocks_.back().size - blocks_.back().used < size) add_block(size);
    Block& block = blocks_.back();
    char* const begin = block.bytes.get() + block.used;
    block.used += size;
    return begin;
  }
  void clear() {
    if (blocks_.empty()) return;
    blocks_.clear();
    kept_bytes_ = 0;
    id_ = 0;
  }
  // Nothing is kept any more, but some memory: what comes next is written over it.
  void begin_anew() {
    if (blocks_.size() == 1 && kept_bytes_ <= kBytesForNext) {
      blocks_.back().used = 0;
      id_ = 0;
    } else if (!blocks_.empty()) {
      const std::size_t size = std::min(kept_bytes_, kBytesForNext);
      clear();
      add_block(size);
    }
  }
  static constexpr std::size_t kBytesForNext = 1u << 20;
  static constexpr std::size_t kBlockMaxBytes = 256u << 10;
  // Another one whenever something that was kept has gone, and greater than all before it.
  std::uint64_t id() const {
    static std::atomic<std::uint64_t> last{0};
    if (id_ == 0) id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return id_;
  }
  std::size_t memory_bytes() const { return kept_bytes_; }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  static constexpr std::size_t kBlockBytes = 4096;

  // Twice the block before, within the two limits, or as large as the text.
  void add_block(std::size_t text_bytes) {
    std::size_t size = blocks_.empty() ? kBlockBytes : blocks_.back().size * 2;
    if (size > kBlockMaxBytes) size = kBlockMaxBytes;
    if (size < text_bytes) size = text_bytes;
    blocks_.push_back({std::unique_ptr<char[]>(new char[size]), size, 0});
    kept_bytes_ += size;
  }

  std::vector<Block> blocks_;  // text is added to the last
  std::size_t kept_bytes_ = 0;
  mutable std::uint64_t id_ = 0;  // 0: none yet
};

// What one request or message holds. Owned by one thread.
struct ReadingBatch {
  std::vector<Reading> readings;
  // The numbering of the series of `readings`; another one whenever a number may mean another
  // series than it did, in whatever batch. 0: nobody numbered them.
  std::uint64_t numbering = 0;
  // What `readings` view: goes with them.
  TextStore texts;
  // What LineNames remembers, which bounds it: stays when the next slice comes.
  TextStore names;
  // Names of `readings` that LineNames has joined. Their memory is used again for the next slice.
  TextStore joined;

  // Copies `text` into the batch; the view lives as long as the readings at hand.
  std::string_view keep(std::string_view text) { return texts.keep(text); }
  void clear() {
    clear_readings();
    numbering = 0;
    names.clear();
    joined.clear();
  }
  // For the next slice, of this request or another.
  void clear_readings() {
    readings.clear();
    texts.clear();
  }
  // Another one whenever text may have gone: two names that were seen under one number are the
  // same name if they have the same address and size.
  std::uint64_t text_id() const { return std::max({texts.id(), names.id(), joined.id()}); }
  std::size_t memory_bytes() const {
    return texts.memory_bytes() + names.memory_bytes() + joined.memory_bytes() +
           readings.capacity() * sizeof(Reading);
  }
};

inline constexpr std::size_t kNameMaxBytes = 128;
inline constexpr std::size_t kDeviceNameMaxBytes = 256;
inline constexpr std::size_t kSensorNameMaxBytes = 1'024;
inline constexpr std::string_view kDefaultNamespace = "default";
inline constexpr std::string_view kRejectedNamespace =
    "_rejected";  // what no rule took or no decoder understood
inline constexpr std::string_view kViewsNamespace = "_views";  // views of the page, kept by name

// Names that begin with `_` are the store's own. People read two of them, and write one.
inline bool is_readable_namespace(std::string_view name) {
  return !name.starts_with('_') || name == kRejectedNamespace || name == kViewsNamespace;
}
inline bool is_writable_namespace(std::string_view name) {
  return !name.starts_with('_') || name == kViewsNamespace;
}

// Why decoding left something out: `line` counts from 1 within the request, 0 when lines mean
// nothing there.
struct LineError {
  std::uint64_t line = 0;
  std::string message;
};

// Numbers are readings of one series side by side: times and values of one type, float64 or int64,
// as a scan has them at hand. Borrowed.

struct Numbers {
  std::span<const std::int64_t> times_ns;  // in the order of the scan
  std::span<const std::uint64_t> bits;     // of the values; as many
  bool is_float = true;

  std::size_t size() const { return times_ns.size(); }
  bool empty() const { return times_ns.empty(); }
  Numbers first(std::size_t count) const {
    return {times_ns.first(count), bits.first(count), is_float};
  }
  Numbers from(std::size_t begin) const {
    return {times_ns.subspan(begin), bits.subspan(begin), is_float};
  }
  double float64(std::size_t i) const { return std::bit_cast<double>(bits[i]); }
  std::int64_t int64(std::size_t i) const { return static_cast<std::int64_t>(bits[i]); }
  Value value(std::size_t i) const {
    return is_float ? Value::of_float64(float64(i)) : Value::of_int64(int64(i));
  }

  // How many from the first on lie within [first_ns, last_ns]; the first one does. Takes few steps
  // where they are few.
  std::size_t count_within(std::int64_t first_ns, std::int64_t last_ns) const {
    const auto is_within = [=](std::int64_t time_ns) {
      return time_ns >= first_ns && time_ns <= last_ns;
    };
    std::size_t known = 1, step = 4;
    while (known + step <= size() && is_within(times_ns[known + step - 1])) {
      known += step;
      step *= 2;
    }
    const auto rest = times_ns.subspan(known, std::min(step, size() - known));
    return known + static_cast<std::size_t>(
                       std::partition_point(rest.begin(), rest.end(), is_within) - rest.begin());
  }
};

// A reading as the engine holds it: a key that sorts by series, then time, and a value.
//
//   key      offset  size  field                                     (16 bytes, all big-endian)
//                 0     4  device id
//                 4     4  sensor id
//                 8     8  time, signed nanoseconds, its sign bit flipped: byte order is time order
//
//   value    offset  size  field
//                 0     1  tag
//                 1     n  by tag:
//     1 float64    8  IEEE 754 double, little-endian; finite
//     2 int64      8  signed, little-endian
//     3 false      0
//     4 true       0
//     5 text       n  UTF-8
//     6 bytes      n  varint (LEB128) length c of the content type, c bytes of it, the bytes
//
// Tags 1 and 2 are the engine's kFloatTag and kIntegerTag, which its series codec packs best.
// Changing anything above needs a new tag and a test that reads the old one.

// Numbers in the keys and values of records: big-endian, so that byte order is their order.

// The lowest `bytes` bytes of it.
inline void append_big_endian(std::uint64_t number, Bytes& out, int bytes = 8) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(number >> shift));
}

// The number in the first 8 bytes, or in as many as there are.
inline std::uint64_t read_big_endian(ByteView bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(0, 8))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

inline constexpr std::size_t kSeriesPrefixBytes = 8;
inline constexpr std::size_t kReadingKeyBytes = 16;
inline constexpr std::size_t kNumberValueBytes = 9;
inline constexpr std::size_t kContentTypeMaxBytes = 255;
// What a stored value may take in all: the engine's limit.
inline constexpr std::size_t kEncodedValueMaxBytes = 16u << 20;
inline constexpr std::string_view kDefaultContentType = "application/octet-stream";

enum class ValueTag : char {
  Float64 = 1,
  Int64 = 2,
  False = 3,
  True = 4,
  Text = 5,
  Bytes = 6,
};

struct ReadingKey {
  std::uint32_t device = 0;
  std::uint32_t sensor = 0;
  std::int64_t time_ns = 0;
};

// Writes kReadingKeyBytes at `out`.
void encode_reading_key(const ReadingKey& key, char* out);
Bytes make_reading_key(const ReadingKey& key);
// False when `bytes` is no reading's key.
bool decode_reading_key(ByteView bytes, ReadingKey& key);

// The time whose eight bytes of a key, read as one big-endian number, are these.
inline std::int64_t time_of_ordinal(std::uint64_t ordinal) {
  return static_cast<std::int64_t>(ordinal ^ std::uint64_t{1} << 63);
}

// And back.
inline std::uint64_t ordinal_of_time(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns) ^ std::uint64_t{1} << 63;
}

// The time of a key known to be kReadingKeyBytes long: the inner loop of scans.
inline std::int64_t time_of_reading_key(const char* key) {
  std::uint64_t bits = 0;
  for (std::size_t i = kSeriesPrefixBytes; i < kReadingKeyBytes; ++i) {
    bits = bits << 8 | static_cast<unsigned char>(key[i]);
  }
  return time_of_ordinal(bits);
}

// What may be stored: finite floats, UTF-8 text, a content type of printable ASCII and at most
// kContentTypeMaxBytes, kEncodedValueMaxBytes in all. InvalidArgument says what is wrong.
Status check_value(const Value& value);

// Whether it is a number that passes check_value(): most are.
inline bool is_good_number(const Value& value) {
  return value.type == ValueType::Float64 ? std::isfinite(value.float64)
                                          : value.type == ValueType::Int64;
}
// The encoding of a number; false: it is none.
inline bool encode_number(const Value& value, char (&out)[kNumberValueBytes]) {
  if (value.type != ValueType::Float64 && value.type != ValueType::Int64) return false;
  const bool is_float = value.type == ValueType::Float64;
  std::uint64_t bits = is_float ? std::bit_cast<std::uint64_t>(value.float64)
                                : static_cast<std::uint64_t>(value.int64);
  if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
  out[0] = static_cast<char>(is_float ? ValueTag::Float64 : ValueTag::Int64);
  std::memcpy(out + 1, &bits, sizeof bits);
  return true;
}

// Appends the encoding of a value that passed check_value(), but for the end that it answers: the
// bytes of a text or of bytes, where they are.
std::string_view append_value_begin(const Value& value, Bytes& out);
// All of it.
void append_value(const Value& value, Bytes& out);
// The value's views point into `bytes`. False when `bytes` is no value.
bool decode_value(ByteView bytes, Value& value);

// "float", "int", "bool", "text", "bytes".
std::string_view value_type_name(ValueType type);
Result<ValueType> parse_value_type(std::string_view name);

}  // namespace edgecase::wire
