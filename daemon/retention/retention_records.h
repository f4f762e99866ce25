// Records of the namespace `_retention`, version 1. Numbers are big-endian.
//   'R' namespace name 0x00 device glob 0x00 sensor glob  ->  version (1), retention ns (8)
//   'T' namespace id (4) device id (4) sensor id (4)      ->  version (1), retention ns (8)
// Inside daemon/retention only.
#pragma once

#include <cstdint>

#include "catalog/catalog.h"
#include "retention/retention_service.h"
#include "wire/big_endian.h"
#include "wire/reading_key.h"

namespace edgecase::retention {

inline constexpr char kRuleRecord = 'R';
inline constexpr char kTopicRecord = 'T';
inline constexpr char kRecordVersion = 1;
inline constexpr std::size_t kTopicKeyBytes = 4 + wire::kSeriesPrefixBytes;

inline Bytes record_value(std::int64_t retention_ns) {
  Bytes value(1, kRecordVersion);
  wire::append_big_endian(static_cast<std::uint64_t>(retention_ns), value);
  return value;
}

inline Bytes rule_key(const std::string& namespace_name, const wire::Selector& selector) {
  Bytes key(1, kRuleRecord);
  key += namespace_name;
  key += '\0';
  key += selector.device;
  key += '\0';
  key += selector.sensor;
  return key;
}

inline Bytes device_prefix(std::uint32_t device) {
  Bytes prefix;
  wire::append_big_endian(device, prefix, 4);
  return prefix;
}

inline Bytes series_prefix(const catalog::SeriesId& id) {
  Bytes prefix = device_prefix(id.device);
  wire::append_big_endian(id.sensor, prefix, 4);
  return prefix;
}

inline Bytes topic_key(const catalog::SeriesId& id) {
  Bytes key;
  wire::append_big_endian(id.namespace_id, key, 4);
  return key + series_prefix(id);
}

inline bool same_rule(const Rule& rule, const std::string& namespace_name,
                      const wire::Selector& selector) {
  return rule.namespace_name == namespace_name && rule.selector.device == selector.device &&
         rule.selector.sensor == selector.sensor;
}

}  // namespace edgecase::retention
