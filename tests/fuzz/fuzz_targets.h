// The decoders that bytes of others reach, each as a function that takes any bytes. A target ends
// the process where something does not hold that has to, whatever the bytes.
#pragma once

#include <cstdlib>
#include <span>
#include <string_view>

namespace edgecase::test {

struct FuzzTarget {
  const char* name;  // of its folder in corpus/, too
  void (*take)(std::string_view bytes);
};

std::span<const FuzzTarget> fuzz_targets();
// Null: there is none of that name.
const FuzzTarget* find_fuzz_target(std::string_view name);

inline void demand(bool holds) {
  if (!holds) std::abort();
}

void take_broker_packets(std::string_view bytes);
void take_config(std::string_view bytes);
void take_csv_import(std::string_view bytes);
void take_forward_records(std::string_view bytes);
void take_http_front(std::string_view bytes);
void take_influxql(std::string_view bytes);
void take_json_readings(std::string_view bytes);
void take_key_ring(std::string_view bytes);
void take_line_protocol(std::string_view bytes);
void take_manifest(std::string_view bytes);
void take_mqtt_packets(std::string_view bytes);
void take_selectors(std::string_view bytes);
void take_tables(std::string_view bytes);
void take_tokens(std::string_view bytes);
void take_value_tables(std::string_view bytes);
void take_wal(std::string_view bytes);

}  // namespace edgecase::test
