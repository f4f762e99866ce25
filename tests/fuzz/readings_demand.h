// Demands what every decoder of readings owes: they could be stored, and written out they read
// back.
#pragma once

#include <cmath>
#include <string>

#include "fuzz/fuzz_targets.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"

namespace edgecase::test {

inline void demand_storable(const wire::Reading& reading) {
  demand(wire::check_name("device", reading.device).ok());
  demand(wire::check_name("sensor", reading.sensor).ok());
  const wire::Value& value = reading.value;
  if (value.type == wire::ValueType::Float64) demand(std::isfinite(value.float64));
  if (value.type == wire::ValueType::Text) demand(wire::is_valid_utf8(value.text));
}

// As `format`, times that are not set made zero.
inline std::string written(const wire::ReadingBatch& batch, wire::ReadingFormat format) {
  wire::ReadingFormatter formatter(format);
  std::string text;
  formatter.begin(text);
  for (wire::Reading reading : batch.readings) {
    if (!reading.time_ns) reading.time_ns = 0;
    formatter.reading(reading, text);
  }
  formatter.end(text);
  return text;
}

inline void demand_round_trip(const wire::ReadingBatch& batch) {
  if (batch.readings.empty()) return;
  const std::string text = written(batch, wire::ReadingFormat::Ndjson);
  wire::ReadingBatch again;
  wire::JsonDecodeOutcome outcome;
  demand(wire::decode_readings_json(text, {}, again, outcome).ok());
  demand(outcome.bad == 0 && again.readings.size() == batch.readings.size());
  demand(written(again, wire::ReadingFormat::Ndjson) == text);
}

}  // namespace edgecase::test
