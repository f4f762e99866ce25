// Any bytes as a line protocol body: decoding ends, and what it yields could be stored.
#include "fuzz/readings_demand.h"
#include "wire/line_protocol.h"

namespace edgecase::test {

void take_line_protocol(std::string_view bytes) {
  wire::LineProtocolOptions options;
  options.unit_ns = bytes.size() % 2 == 0 ? 1 : 1'000'000'000;
  wire::LineProtocolDecoder decoder(bytes, options);
  wire::ReadingBatch batch;
  while (decoder.next(batch)) {
    for (const wire::Reading& reading : batch.readings) demand_storable(reading);
    demand_round_trip(batch);
    batch.clear();
  }
  demand(decoder.errors().size() <= options.error_limit);
  demand(decoder.errors().size() <= decoder.bad_lines());
}

}  // namespace edgecase::test
