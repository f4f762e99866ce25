#include "wire/reading.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/machine.h"

using namespace edgecase;
using wire::Value;
using wire::ValueType;

namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Bytes encode(const Value& value) {
  Bytes bytes;
  wire::append_value(value, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("reading key: byte order is the order of device, sensor, time") {
  const std::vector<wire::ReadingKey> ordered = {
      {1, 1, kMin},  {1, 1, kMin + 1}, {1, 1, -256}, {1, 1, -1},   {1, 1, 0},
      {1, 1, 1},     {1, 1, 255},      {1, 1, 256},  {1, 1, kMax}, {1, 2, kMin},
      {1, 256, 0},   {2, 1, 0},        {255, 9, 0},  {256, 1, 0},  {0x80000000, 1, 0},
      {~0u, ~0u, 0}, {~0u, ~0u, kMax},
  };
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const Bytes key = wire::make_reading_key(ordered[i]);
    REQUIRE(key.size() == wire::kReadingKeyBytes);
    if (i > 0) CHECK(wire::make_reading_key(ordered[i - 1]) < key);
    wire::ReadingKey back;
    REQUIRE(wire::decode_reading_key(key, back));
    CHECK(back.device == ordered[i].device);
    CHECK(back.sensor == ordered[i].sensor);
    CHECK(back.time_ns == ordered[i].time_ns);
    CHECK(wire::time_of_reading_key(key.data()) == ordered[i].time_ns);
  }
  wire::ReadingKey ignored;
  CHECK_FALSE(wire::decode_reading_key(Bytes(15, 'x'), ignored));
  CHECK_FALSE(wire::decode_reading_key(Bytes(17, 'x'), ignored));
}

TEST_CASE("reading key: any two times sort as their keys do") {
  const std::uint64_t seed = 3;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const auto a = static_cast<std::int64_t>(random.next()) >> random.below(64);
    const auto b = static_cast<std::int64_t>(random.next()) >> random.below(64);
    CAPTURE(a);
    CAPTURE(b);
    CHECK((a < b) == (wire::make_reading_key({7, 7, a}) < wire::make_reading_key({7, 7, b})));
  }
}

TEST_CASE("reading value: the documented bytes") {
  CHECK(encode(Value::of_float64(1.0)) == Bytes("\x01\0\0\0\0\0\0\xf0\x3f", 9));
  CHECK(encode(Value::of_int64(-2)) == Bytes("\x02\xfe\xff\xff\xff\xff\xff\xff\xff", 9));
  CHECK(encode(Value::of_bool(false)) == "\x03");
  CHECK(encode(Value::of_bool(true)) == "\x04");
  CHECK(encode(Value::of_text("hi")) == "\x05hi");
  CHECK(encode(Value::of_text("")) == "\x05");
  CHECK(encode(Value::of_bytes(Bytes("\0\xff", 2), "a/b")) == Bytes("\x06\x03"
                                                                    "a/b\0\xff",
                                                                    7));
  CHECK(encode(Value::of_float64(0))[0] == kFloatTag);
  CHECK(encode(Value::of_int64(0))[0] == kIntegerTag);
}

TEST_CASE("reading value: every value comes back as it went in") {
  for (const double number :
       {0.0, -0.0, 21.5, 1e-300, -1e300, std::numeric_limits<double>::denorm_min(),
        std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()}) {
    const Bytes bytes = encode(Value::of_float64(number));
    Value back;
    REQUIRE(wire::decode_value(bytes, back));
    CHECK(back.type == ValueType::Float64);
    CHECK(back.float64 == number);
    CHECK(std::signbit(back.float64) == std::signbit(number));
  }
  for (const std::int64_t number : {kMin, std::int64_t{-1}, std::int64_t{0}, kMax}) {
    const Bytes bytes = encode(Value::of_int64(number));
    Value back;
    REQUIRE(wire::decode_value(bytes, back));
    CHECK(back.type == ValueType::Int64);
    CHECK(back.int64 == number);
  }
  for (const std::size_t type_size : {std::size_t{0}, std::size_t{1}, std::size_t{127},
                                      std::size_t{128}, wire::kContentTypeMaxBytes}) {
    const std::string content_type(type_size, 't');
    const Bytes bytes = encode(Value::of_bytes("payload", content_type));
    Value back;
    REQUIRE(wire::decode_value(bytes, back));
    CHECK(back.type == ValueType::Bytes);
    CHECK(back.text == "payload");
    CHECK(back.content_type == content_type);
  }
}

TEST_CASE("reading value: bytes that are none are told apart") {
  for (const Bytes& bytes : {
           Bytes(),
           Bytes("\0", 1),
           Bytes("\x07"),
           Bytes("\xff"),
           Bytes("\x01"),
           Bytes("\x01\0\0\0\0\0\0\xf0", 8),
           Bytes("\x01\0\0\0\0\0\0\xf0\x3f\0", 10),
           Bytes("\x02\0\0\0\0\0\0\0", 8),
           Bytes("\x03\0", 2),
           Bytes("\x04\x01"),
           Bytes("\x06"),
           Bytes("\x06\x01"),
           Bytes("\x06\x80"),
           Bytes("\x06\x80\x80\x01"
                 "xxxx"),
           Bytes("\x06\x80\x02") + Bytes(300, 'x'),
       }) {
    CAPTURE(bytes.size());
    Value value;
    CHECK_FALSE(wire::decode_value(bytes, value));
  }
}

TEST_CASE("reading value: what may be stored") {
  CHECK(wire::check_value(Value::of_float64(1e308)).ok());
  CHECK(wire::check_value(Value::of_text("K\xc3\xbc"
                                         "che\n\t"))
            .ok());
  CHECK(wire::check_value(Value::of_text("")).ok());
  CHECK(wire::check_value(Value::of_bytes("\xff", "image/jpeg")).ok());
  const std::string big(wire::kEncodedValueMaxBytes, 'x');
  CHECK(wire::check_value(Value::of_text(std::string_view(big).substr(1))).ok());
  CHECK(wire::check_value(Value::of_bytes(std::string_view(big).substr(3), "")).ok());

  const std::string long_type(wire::kContentTypeMaxBytes + 1, 't');
  for (const Value& value : {
           Value::of_float64(std::numeric_limits<double>::quiet_NaN()),
           Value::of_float64(std::numeric_limits<double>::infinity()),
           Value::of_float64(-std::numeric_limits<double>::infinity()),
           Value::of_text("\xff"),
           Value::of_text(big),
           Value::of_bytes(big, ""),
           Value::of_bytes("x", long_type),
           Value::of_bytes("x", "a\nb"),
           Value::of_bytes("x", "\xc3\xbc"),
       }) {
    CHECK(wire::check_value(value).code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("reading value: the largest values fit what the engine takes") {
  const std::string big(wire::kEncodedValueMaxBytes, 'x');
  CHECK(encode(Value::of_text(std::string_view(big).substr(1))).size() == kValueSizeMaxBytes);
  const std::string content_type(wire::kContentTypeMaxBytes, 't');
  const std::string_view most = std::string_view(big).substr(3 + content_type.size());
  REQUIRE(wire::check_value(Value::of_bytes(most, content_type)).ok());
  CHECK(encode(Value::of_bytes(most, content_type)).size() <= kValueSizeMaxBytes);
}

TEST_CASE("reading value: type names lead back") {
  for (int i = 1; i <= 5; ++i) {
    const auto type = static_cast<ValueType>(i);
    const auto got = wire::parse_value_type(wire::value_type_name(type));
    REQUIRE(got.ok());
    CHECK(*got == type);
  }
  CHECK_FALSE(wire::parse_value_type("double").ok());
  CHECK_FALSE(wire::parse_value_type("").ok());
}
