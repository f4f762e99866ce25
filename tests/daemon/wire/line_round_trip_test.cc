// Line protocol as the formatter writes it must be what the decoder reads: export and import.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "edgecase/random.h"
#include "wire/line_protocol.h"
#include "wire/reading_format.h"
#include "wire/reading_key.h"

using namespace edgecase;
using wire::Value;

TEST_CASE("line round trip: random names and values come back, or are a comment") {
  const std::uint64_t seed = 31;
  INFO("seed " << seed);
  SeededRandom random(seed);
  const std::array<std::string_view, 20> pieces = {
      "a", "B", " ", ",", "=",        "\\", "\"", "'", "#", ".",
      "1", "-", "i", "t", "\xc3\xbc", ";",  ":",  "*", "?", "value",
  };
  const auto text_of = [&](std::uint64_t longest) {
    std::string text;
    for (std::uint64_t i = 1 + random.below(longest); i > 0; --i) {
      text += pieces[random.below(pieces.size())];
    }
    return text;
  };
  std::size_t comments = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string device = text_of(8), sensor = text_of(8);
    const std::string text = text_of(5) + "\n" + text_of(5) + "\r\n\\";
    Value value;
    switch (random.below(4)) {
      case 0: value = Value::of_float64(static_cast<double>(random.next()) / 7e9); break;
      case 1: value = Value::of_int64(static_cast<std::int64_t>(random.next())); break;
      case 2: value = Value::of_bool(random.below(2) == 0); break;
      default: value = Value::of_text(text); break;
    }
    const auto time_ns = static_cast<std::int64_t>(random.next());
    std::string line;
    wire::ReadingFormatter(wire::ReadingFormat::Line)
        .reading({"default", device, sensor, time_ns, value}, line);
    CAPTURE(line);
    wire::LineProtocolDecoder decoder(line, {});
    wire::ReadingBatch batch;
    const bool more = decoder.next(batch);
    if (line.starts_with('#')) {
      ++comments;
      CHECK_FALSE(more);
      CHECK(decoder.bad_lines() == 0);
      continue;
    }
    REQUIRE_MESSAGE(more, (decoder.errors().empty() ? "" : decoder.errors()[0].message));
    REQUIRE(batch.readings.size() == 1);
    const wire::Reading& back = batch.readings[0];
    CHECK(back.device == device);
    CHECK(back.sensor == sensor);
    CHECK(back.time_ns == time_ns);
    Bytes went_in, came_out;
    wire::append_value(value, went_in);
    wire::append_value(back.value, came_out);
    CHECK(went_in == came_out);
  }
  CHECK(comments > 100);
  CHECK(comments < 2'500);
}
