// Any bytes as the body of POST /api/v1/readings.
#include "fuzz/readings_demand.h"

namespace edgecase::test {

void take_json_readings(std::string_view bytes) {
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  const wire::JsonDecodeOptions options;
  const Status status = wire::decode_readings_json(bytes, options, batch, outcome);
  demand(status.ok() || (batch.readings.empty() && outcome.good == 0));
  demand(outcome.good == batch.readings.size());
  demand(outcome.errors.size() <= options.errors_max && outcome.errors.size() <= outcome.bad);
  for (const wire::Reading& reading : batch.readings) demand_storable(reading);
  demand_round_trip(batch);
}

}  // namespace edgecase::test
