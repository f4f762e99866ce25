// Records of the namespace `_retention`. Numbers are big-endian.
//   'R' namespace name 0x00 device glob 0x00 sensor glob  ->  version (1), retention ns (8)
//   'T' namespace id (4) device id (4) sensor id (4)      ->  the same
//   'W' tier_marks.h
//   'H' alone  ->  version (1): something was held (Hold); it names nothing
// Version 2 is that of what has tiers: then of each of them, the finest first, window ns (8) and
// retention ns (8). Inside daemon/retention only.
#pragma once

#include <cstdint>

#include "catalog/catalog.h"
#include "retention/retention_service.h"
#include "wire/keeping.h"
#include "wire/reading_key.h"

namespace edgecase::retention {

inline constexpr char kRuleRecord = 'R';
inline constexpr char kTopicRecord = 'T';
inline constexpr char kHoldRecord = 'H';
inline constexpr char kRecordVersion = 1;
inline constexpr char kTieredRecordVersion = 2;
inline constexpr std::size_t kTopicKeyBytes = 4 + wire::kSeriesPrefixBytes;

inline Bytes record_value(std::int64_t retention_ns, const std::vector<wire::Tier>& tiers = {}) {
  Bytes value(1, tiers.empty() ? kRecordVersion : kTieredRecordVersion);
  wire::append_big_endian(static_cast<std::uint64_t>(retention_ns), value);
  for (const wire::Tier& tier : tiers) {
    wire::append_big_endian(static_cast<std::uint64_t>(tier.every_ns), value);
    wire::append_big_endian(static_cast<std::uint64_t>(tier.keep_ns), value);
  }
  return value;
}

// Corruption, Unsupported.
inline Result<wire::Keeping> read_record_value(ByteView value) {
  constexpr std::size_t kHeadBytes = 1 + 8, kTierBytes = 8 + 8;
  if (value.size() < kHeadBytes) return corruption("a record of a retention rule is cut");
  if (value.front() != kRecordVersion && value.front() != kTieredRecordVersion)
    return unsupported("a retention rule was written by a newer version of EdgeCase");
  const auto number_at = [&](std::size_t at) {
    return static_cast<std::int64_t>(wire::read_big_endian(value.substr(at, 8)));
  };
  wire::Keeping keeping{number_at(1), {}};
  for (std::size_t at = kHeadBytes; at + kTierBytes <= value.size(); at += kTierBytes)
    keeping.tiers.push_back({number_at(at), number_at(at + 8)});
  const bool is_whole = value.size() == kHeadBytes + keeping.tiers.size() * kTierBytes;
  const bool has_tiers = value.front() == kTieredRecordVersion;
  if (!is_whole || has_tiers == keeping.tiers.empty())
    return corruption("a record of a retention rule is cut");
  if (has_tiers && !wire::check_keeping(keeping).ok())
    return corruption("a record of a retention rule is malformed");
  return keeping;
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
