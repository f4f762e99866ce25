#include "fuzz/fuzz_targets.h"

namespace edgecase::test {
namespace {

constexpr FuzzTarget kFuzzTargets[] = {
    {"broker_packets", take_broker_packets},
    {"config", take_config},
    {"csv_import", take_csv_import},
    {"forward_records", take_forward_records},
    {"http_front", take_http_front},
    {"influxql", take_influxql},
    {"json_readings", take_json_readings},
    {"key_ring", take_key_ring},
    {"line_protocol", take_line_protocol},
    {"manifest", take_manifest},
    {"mqtt_packets", take_mqtt_packets},
    {"selectors", take_selectors},
    {"tables", take_tables},
    {"tokens", take_tokens},
    {"value_tables", take_value_tables},
    {"wal", take_wal},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() {
  return kFuzzTargets;
}

const FuzzTarget* find_fuzz_target(std::string_view name) {
  for (const FuzzTarget& target : kFuzzTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace edgecase::test
