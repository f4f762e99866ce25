// A store in memory that readings go in and out of and are erased from, and that can start anew.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "erase/erase_jobs.h"
#include "erase/erase_service.h"
#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::erase::test {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kHour = 3600 * kSecond;
inline constexpr std::int64_t kNow = edgecase::test::ManualClock::kStartWallNs;

inline const auth::Principal& local() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "uid 7"};
  return principal;
}

inline auth::Principal token(const std::string& erase_scope) {
  auto grant = std::make_shared<auth::Grant>();
  grant->token_id = "cafe";
  grant->scopes.namespace_name = "default";
  if (!erase_scope.empty()) grant->scopes.erase = {wire::parse_selector(erase_scope).value()};
  return {auth::PrincipalKind::Remote, "token cafe", grant};
}

struct Room {
  Room() { restart(); }
  // As after a crash: what is durable, and nothing else.
  void restart() {
    pipeline.reset();
    service.reset();
    REQUIRE(resume_jobs(engine).ok());
    catalog = catalog::Catalog::open(engine, {}).value();
    devices = catalog::DeviceIndex::open(engine).value();
    retention = retention::RetentionService::open(engine, *catalog, kRetentionForever).value();
    service =
        EraseService::open({engine, *catalog, *devices, *retention, clock, random, look}).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock, retention.get(),
                                                        devices.get(), nullptr, &service->fences());
  }

  // One reading; false when it was refused.
  bool write(const std::string& device, const std::string& sensor, std::int64_t time_ns,
             const std::string& ns = "default", std::int64_t topic_ns = wire::kRetentionUnsaid) {
    wire::ReadingBatch batch;
    batch.readings.push_back({ns, device, sensor, time_ns, wire::Value::of_int64(1)});
    batch.readings.back().retention_ns = topic_ns;
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    ingest::Outcome outcome;
    const Status stored = pipeline->ingest(*authorized, &outcome);
    CAPTURE(stored.to_string());
    REQUIRE(stored.ok());
    return outcome.of(ingest::Loss::Erased) + outcome.of(ingest::Loss::Evicted) == 0;
  }
  // Ten readings, one an hour, the last an hour ago.
  void fill(const std::string& device, const std::string& sensor,
            const std::string& ns = "default") {
    for (int hour = 1; hour <= 10; ++hour) REQUIRE(write(device, sensor, kNow - hour * kHour, ns));
  }
  void reject(const std::string& json) {
    wire::ReadingBatch batch;
    batch.readings.push_back(
        {wire::kRejectedNamespace, "mqtt", "message", std::nullopt, wire::Value::of_text(json)});
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    REQUIRE(pipeline->ingest(*authorized).ok());
  }

  static EraseRequest request(const std::string& selector, const std::string& ns = "default") {
    EraseRequest request;
    request.namespace_name = ns;
    request.selection = wire::parse_selector(selector).value();
    return request;
  }
  Result<Certificate> erase(const std::string& selector, const std::string& ns = "default") {
    return service->erase(local(), request(selector, ns));
  }

  std::uint64_t readings(const std::string& ns = "default") {
    const auto info = engine.find_namespace(ns);
    return info.ok() ? engine.range_stats(info->id, {}, {}).value().entries : 0;
  }
  std::uint64_t readings_of(const std::string& device, const std::string& sensor) {
    const auto entry = catalog->find("default", device, sensor);
    if (!entry.ok()) return 0;
    const KeyRange range = range_of_series(entry->id, {});
    return engine.range_stats(entry->id.namespace_id, range, {}).value().entries;
  }
  // Whether `text` is in any key or value of the store.
  bool holds(const std::string& text) {
    for (const NamespaceInfo& info : engine.namespaces()) {
      auto scan = engine.scan(info.id, {}, {}).value();
      for (; scan->valid(); scan->next()) {
        if (scan->key().find(text) != ByteView::npos) return true;
        if (scan->value().find(text) != ByteView::npos) return true;
      }
    }
    return false;
  }

  edgecase::test::ModelEngine engine;
  edgecase::test::ManualClock clock;
  SeededRandom random{20251122};
  DriveWatch::Look look;  // from the next restart() on
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<EraseService> service;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
};

}  // namespace edgecase::erase::test
