// A store with everything that tiers touch, on a model of the engine. One thread.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "erase/erase_service.h"
#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "tiers/tier_maker.h"
#include "wire/reading_format.h"

namespace edgecase::tiers {

using wire::Aggregate;
using wire::Value;

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kMinute = 60 * kSecond;
inline constexpr std::int64_t kHour = 60 * kMinute;
// A full hour.
inline constexpr std::int64_t kNow = test::ManualClock::kStartWallNs / kHour * kHour;

inline const auth::Principal& reader() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  return principal;
}

// restart() is what a crash leaves of it.
struct TieredStore {
  TieredStore() {
    engine.set_expiry_now_ns(kNow);
    restart();
  }
  void restart() {
    maker.reset();
    service.reset();
    pipeline.reset();
    erase.reset();
    catalog = catalog::Catalog::open(engine, {}).value();
    devices = catalog::DeviceIndex::open(engine).value();
    retention = retention::RetentionService::open(engine, *catalog, kRetentionForever).value();
    erase = erase::EraseService::open(
                {engine, *catalog, *devices, *retention, clock, random, erase::DriveWatch::Look()})
                .value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock, retention.get(),
                                                        devices.get(), nullptr, &erase->fences());
    service = std::make_unique<query::QueryService>(engine, *catalog, devices.get());
    service->read_tiers(&retention->marks());
    maker = std::make_unique<TierMaker>(engine, *catalog, *retention, erase->fences());
  }
  void set(const std::string& selector, const std::string& keeping) {
    wire::Keeping keep = wire::parse_keeping(keeping).value();
    const Status done = retention->set(
        {"default", wire::parse_selector(selector).value(), keep.raw_ns, std::move(keep.tiers)});
    REQUIRE_MESSAGE(done.ok(), done.to_string());
  }
  // How many were kept.
  std::size_t write(const std::string& sensor, const std::map<std::int64_t, Value>& values) {
    wire::ReadingBatch batch;
    for (const auto& [time_ns, value] : values)
      batch.readings.push_back({"default", "kitchen", sensor, time_ns, value});
    const auto authorized = auth::authorize_write(reader(), batch);
    REQUIRE(authorized.ok());
    ingest::Outcome outcome;
    const Status stored = pipeline->ingest(*authorized, &outcome);
    REQUIRE_MESSAGE(stored.ok(), stored.to_string());
    CHECK(outcome.of(ingest::Loss::Expired) == outcome.not_stored());
    return values.size() - outcome.not_stored();
  }
  bool write(const std::string& sensor, std::int64_t time_ns, Value value) {
    return write(sensor, {{time_ns, value}}) == 1;
  }
  void pass() {
    const Status done = maker->pass();
    REQUIRE_MESSAGE(done.ok(), done.to_string());
  }

  wire::QueryRequest request(const std::string& selector, std::int64_t every_ns,
                             std::optional<Aggregate> aggregate) {
    wire::QueryRequest request;
    request.selection = wire::parse_selector(selector).value();
    request.every_ns = every_ns;
    request.aggregate = aggregate;
    return request;
  }
  std::string ask(const wire::QueryRequest& asked, std::string* tiers = nullptr) {
    query::Reach reach;
    auto cursor = service->query(reader(), asked, &reach);
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    if (tiers != nullptr) *tiers = reach.tiers.text();
    std::string text;
    wire::ReadingFormatter formatter(wire::ReadingFormat::Csv);
    wire::Reading reading;
    while (true) {
      const auto more = (*cursor)->next(reading);
      REQUIRE_MESSAGE(more.ok(), more.status().to_string());
      if (!*more) return text;
      formatter.reading(reading, text);
    }
  }
  std::string ask(const std::string& selector, std::int64_t every_ns,
                  std::optional<Aggregate> aggregate, std::string* tiers = nullptr) {
    return ask(request(selector, every_ns, aggregate), tiers);
  }
  std::uint64_t entries(const std::string& space) {
    const auto info = engine.find_namespace(space);
    return info.ok() ? engine.range_stats(info->id, {}, {}).value().entries : 0;
  }
  // Entries of the tier with windows of that length.
  std::uint64_t columns(std::int64_t every_ns) {
    const auto info = engine.find_namespace("default");
    return info.ok() ? entries(catalog::tier_space_name(info->id, every_ns)) : 0;
  }
  std::uint64_t raw() { return entries("default"); }

  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{20251129};
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<erase::EraseService> erase;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> service;
  std::unique_ptr<TierMaker> maker;
};

}  // namespace edgecase::tiers
