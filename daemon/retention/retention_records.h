// Records of the namespace `_retention`. Numbers are big-endian.
//   'R' namespace name 0x00 device glob 0x00 sensor glob  ->  version (1), retention ns (8)
//   'T' namespace id (4) device id (4) sensor id (4)      ->  the same
//   'W' TierMarks (retention_service.h)
//   'H' alone  ->  version (1): something was held (Hold); it names nothing
// Version 2 is that of what has tiers: then of each of them, the finest first, window ns (8) and
// retention ns (8). Inside daemon/retention only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "retention/retention_service.h"
#include "wire/reading.h"
#include "wire/tiers.h"

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

// The rules that the engine is to have in one namespace, in the order of their prefixes: 24 bytes
// each. Inside daemon/retention only.

// What the engine has for this very scope.
inline std::optional<std::int64_t> engine_has(const Engine& engine, NamespaceId id,
                                              const Bytes& prefix) {
  std::optional<std::int64_t> found;
  engine.each_retention_rule(id, {prefix, prefix + '\0'},
                             [&](ByteView, std::int64_t retention_ns) { found = retention_ns; });
  return found;
}

class WantedRules {
 public:
  void add_namespace(std::int64_t retention_ns) { add({0, 0, false, retention_ns}); }
  void add_device(std::uint32_t device, bool is_new, std::int64_t retention_ns) {
    add({std::uint64_t{device} << 32, 4, is_new, retention_ns});
    last_device_ = device;
  }
  // Series of a device come one after another: its rule needs to be added once.
  bool added_last(std::uint32_t device) const { return last_device_ == device; }
  void add_series(const catalog::SeriesId& id, bool is_new, std::int64_t retention_ns) {
    add({std::uint64_t{id.device} << 32 | id.sensor, 8, is_new, retention_ns});
  }

  // More than the engine takes: what is added then is left out, and everything else means nothing.
  bool is_full() const { return rules_.size() > kRetentionRulesMax; }

  // What turns the engine's rules of namespace `id` into these.
  void append_changes(const Engine& engine, NamespaceId id, std::vector<RetentionRule>& changes) {
    sort();
    changes.reserve(changes.size() + rules_.size());
    auto at = rules_.begin();
    engine.each_retention_rule(id, {}, [&](ByteView prefix, std::int64_t retention_ns) {
      for (; at != rules_.end() && at->prefix_bytes() < prefix; ++at)
        changes.push_back(at->as_engines(id));
      if (at == rules_.end() || at->prefix_bytes() != prefix) {
        changes.push_back({id, Bytes(prefix), std::nullopt});
        return;
      }
      if (at->retention_ns != retention_ns) changes.push_back(at->as_engines(id));
      ++at;
    });
    for (; at != rules_.end(); ++at) changes.push_back(at->as_engines(id));
  }
  // What adds to the rules that `engine` has, or changes some of them.
  void append_additions(const Engine& engine, NamespaceId id, std::vector<RetentionRule>& changes) {
    sort();
    for (const Rule& each : rules_) {
      if (engine_has(engine, id, each.prefix_bytes()) != each.retention_ns)
        changes.push_back(each.as_engines(id));
    }
  }

 private:
  struct Rule {
    std::uint64_t prefix = 0;  // its bytes first, then zeros
    std::uint8_t size = 0;     // of the prefix
    bool is_new = false;
    std::int64_t retention_ns = 0;

    Bytes prefix_bytes() const {
      Bytes bytes;
      wire::append_big_endian(prefix, bytes);
      bytes.resize(size);
      return bytes;
    }
    RetentionRule as_engines(NamespaceId id) const {
      return {id, prefix_bytes(), retention_ns, is_new};
    }
    bool is_same(const Rule& other) const { return prefix == other.prefix && size == other.size; }
  };

  void add(const Rule& rule) {
    if (!is_full()) rules_.push_back(rule);
  }
  void sort() {
    std::ranges::sort(rules_, [](const Rule& a, const Rule& b) {
      return a.prefix != b.prefix ? a.prefix < b.prefix : a.size < b.size;
    });
    const auto is_same = [](const Rule& a, const Rule& b) { return a.is_same(b); };
    rules_.erase(std::unique(rules_.begin(), rules_.end(), is_same), rules_.end());
  }

  std::vector<Rule> rules_;
  std::optional<std::uint32_t> last_device_;
};

}  // namespace edgecase::retention
