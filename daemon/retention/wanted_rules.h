// The rules that the engine is to have in one namespace, in the order of their prefixes: 24 bytes
// each. Inside daemon/retention only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "retention/retention_records.h"

namespace edgecase::retention {

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
