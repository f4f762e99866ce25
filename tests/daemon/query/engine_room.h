// An engine on two simulated drives with catalog, ingest and queries above it. For tests; one
// thread.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "engine/core/engine_fixture.h"
#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "wire/reading.h"

namespace edgecase::test {

inline constexpr std::int64_t kRoomSecond = 1'000'000'000;
inline constexpr std::int64_t kRoomStart = ManualClock::kStartWallNs;  // a full hour

struct EngineRoom : EngineFixture {
  explicit EngineRoom(bool encrypted = false) {
    options.group_span_ns = 3600 * kRoomSecond;
    if (encrypted) {
      SecretKey key;
      key.fill(7);
      options.encryption = MasterKeys{key};
    }
    REQUIRE(open().ok());
    stand();
  }
  ~EngineRoom() { fall(); }
  void stand() {
    catalog = catalog::Catalog::open(*engine, {}).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(*engine, *catalog, clock);
    service = std::make_unique<query::QueryService>(*engine, *catalog);
  }
  void fall() {
    service.reset();
    pipeline.reset();
    catalog.reset();
  }
  void restart() {
    fall();
    reopen();
    stand();
  }

  // A reading each step; `value(i)` is that of step i.
  template <typename ValueOf>
  void fill(const std::string& device, std::int64_t from_s, int count, const ValueOf& value) {
    wire::ReadingBatch batch;
    for (int i = 0; i < count; ++i)
      batch.readings.push_back(
          {"default", device, "m", kRoomStart + (from_s + i) * kRoomSecond, value(i)});
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    const Status status = pipeline->ingest(*authorized);
    INFO(status.to_string());
    REQUIRE(status.ok());
  }
  void erase(const std::string& device, std::int64_t from_s, std::int64_t to_s) {
    const auto found = catalog->find("default", device, "m");
    if (!found.ok()) return;
    const auto key = [&](std::int64_t s) {
      return wire::make_reading_key(
          {found->id.device, found->id.sensor, kRoomStart + s * kRoomSecond});
    };
    WriteBatch batch;
    batch.erase_range(found->id.namespace_id, key(from_s), key(to_s));
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> service;
  auth::Principal principal{auth::PrincipalKind::Internal, "test", nullptr};
};

}  // namespace edgecase::test
