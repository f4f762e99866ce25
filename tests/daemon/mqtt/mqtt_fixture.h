// The daemon's way in on an engine in memory, for tests of MQTT.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "mqtt/mqtt_source.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::test {

struct StoredReading {
  std::int64_t time_ns = 0;
  std::string text;  // "21.5", "true", the text itself
};

// The shortest of pauses before each attempt to reach a broker.
struct NoPauses final : Random {
  std::uint64_t next() override { return 0; }
};

class MqttFixture {
 public:
  MqttFixture() {
    auto opened = catalog::Catalog::open(engine, {});
    REQUIRE(opened.ok());
    catalog = std::move(opened).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, system_clock());
    open_rejected(config::LimitSettings{}.rejected_messages);
  }

  mqtt::MqttSourceParts parts() {
    mqtt::MqttSourceParts all{engine, *pipeline, *rejected, system_clock(), random};
    all.ack_patience_ns = ack_patience_ns;
    return all;
  }

  void open_rejected(std::uint64_t limit) {
    auto opened = mqtt::RejectedMessages::open(engine, *catalog, *pipeline, limit);
    REQUIRE(opened.ok());
    rejected = std::move(opened).value();
  }

  // Everything of one series, oldest first; empty when there is no such series.
  std::vector<StoredReading> readings(std::string_view space, std::string_view device,
                                      std::string_view sensor) {
    std::vector<StoredReading> found;
    const auto series = catalog->find(space, device, sensor);
    if (!series.ok()) return found;
    const auto each = engine.scan(series->id.namespace_id, {}, {});
    REQUIRE(each.ok());
    for (; (*each)->valid(); (*each)->next()) {
      wire::ReadingKey key;
      if (!wire::decode_reading_key((*each)->key(), key)) continue;
      if (key.device != series->id.device || key.sensor != series->id.sensor) continue;
      wire::Value value;
      REQUIRE(wire::decode_value((*each)->value(), value));
      std::string text(value.text);
      if (value.type == wire::ValueType::Float64) text = std::to_string(value.float64);
      if (value.type == wire::ValueType::Bool) text = value.boolean ? "true" : "false";
      found.push_back({key.time_ns, text});
    }
    return found;
  }

  NoPauses random;
  ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<mqtt::RejectedMessages> rejected;
  std::int64_t ack_patience_ns = mqtt::kAckPatienceNs;
};

inline config::MqttRuleSettings mqtt_rule(const char* topic) {
  config::MqttRuleSettings rule;
  rule.topic = topic;
  return rule;
}

inline std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// "3", "4", ... up to the one before `to`.
inline std::vector<std::string> numbers(int from, int to) {
  std::vector<std::string> all;
  for (int i = from; i < to; ++i) all.push_back(std::to_string(i));
  return all;
}

}  // namespace edgecase::test
