// Any bytes as a line protocol body: decoding ends, and what it yields could be stored.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/line_protocol.h"
#include "wire/names.h"

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

void check_reading(const edgecase::wire::Reading& reading) {
  using edgecase::wire::ValueType;
  demand(edgecase::wire::check_name("device", reading.device).ok());
  demand(edgecase::wire::check_name("sensor", reading.sensor).ok());
  const edgecase::wire::Value& value = reading.value;
  if (value.type == ValueType::Float64) demand(std::isfinite(value.float64));
  if (value.type == ValueType::Text) demand(edgecase::wire::is_valid_utf8(value.text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  edgecase::wire::LineProtocolOptions options;
  options.unit_ns = size % 2 == 0 ? 1 : 1'000'000'000;
  edgecase::wire::LineProtocolDecoder decoder(body, options);
  edgecase::wire::ReadingBatch batch;
  while (decoder.next(batch)) {
    for (const auto& reading : batch.readings) check_reading(reading);
    batch.clear();
  }
  demand(decoder.errors().size() <= options.error_limit);
  demand(decoder.errors().size() <= decoder.bad_lines());
  return 0;
}
