// An engine with one namespace whose readings expire.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/coding.h"
#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "expiry/retention_rules.h"

namespace edgecase::test {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kHour = 3600 * kSecond;
inline constexpr std::int64_t kStartNs = ManualClock::kStartWallNs;

inline Bytes key_at(const std::string& part, std::int64_t time_ns) {
  Bytes key = part;
  key.resize(key.size() + 8);
  engine::store_ordinal(key.data() + part.size(), engine::ordinal_of_time(time_ns));
  return key;
}

struct ExpiringStore : EngineFixture {
  ExpiringStore() {
    options.group_bytes = 256;
    REQUIRE(open().ok());
    id = make_namespace("plant", {Placement::Values, GroupCodec::Series, 1});
  }
  void set(const std::string& prefix, std::optional<std::int64_t> retention_ns) {
    const RetentionRule rule{id, prefix, retention_ns};
    const Status done = engine->set_retention({rule});
    CAPTURE(done.to_string());
    REQUIRE(done.ok());
  }
  // A reading a second, the first at `begin_ns`.
  void fill(const std::string& part, std::int64_t begin_ns, int count) {
    WriteBatch batch;
    for (int i = 0; i < count; ++i) batch.put(id, key_at(part, begin_ns + i * kSecond), "v");
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }
  bool has(const std::string& part, std::int64_t time_ns) {
    return engine->get(id, key_at(part, time_ns), {}).ok();
  }
  std::map<Bytes, Bytes> scan(const ReadOptions& how = {}, const KeyRange& range = {}) {
    std::map<Bytes, Bytes> all;
    auto iterator = engine->scan(id, range, how);
    REQUIRE(iterator.ok());
    for (; (*iterator)->valid(); (*iterator)->next())
      all[Bytes((*iterator)->key())] = Bytes((*iterator)->value());
    const Status end = (*iterator)->status();
    CAPTURE(end.to_string());
    REQUIRE(end.ok());
    return all;
  }
  std::size_t count() {
    const auto stats = engine->range_stats(id, {}, {});
    REQUIRE(stats.ok());
    CHECK(scan().size() == stats->entries);
    ReadOptions reverse;
    reverse.direction = Direction::Reverse;
    CHECK(scan(reverse).size() == stats->entries);
    return stats->entries;
  }
  void expect_sound() {
    close();
    RecordingObserver observer;
    const auto report = check_store(disk, options, observer);
    REQUIRE(report.ok());
    CAPTURE(observer.all());
    CHECK(report->problems == 0);
    REQUIRE(open().ok());
  }

  NamespaceId id = 0;
};

}  // namespace edgecase::test
