// The parts of a daemon that tiers touch, on the real engine and two simulated drives: what a life
// of tiers_life.h opens, crashes and opens again. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "catalog/device_index.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "erase/erase_service.h"
#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "tiers/tier_maker.h"

namespace edgecase::test {

inline constexpr std::int64_t kTierSecondNs = 1'000'000'000;

// It asks, writes and erases.
const auth::Principal& somebody();

struct TierStore {
  using Rows = std::map<std::int64_t, std::int64_t>;  // by time

  TierStore(std::uint64_t seed, bool is_encrypted);
  ~TierStore() { close(); }
  TierStore(const TierStore&) = delete;
  TierStore& operator=(const TierStore&) = delete;

  Status open();
  void close();
  bool is_open() const { return maker != nullptr; }

  // All that ails the drives ends.
  void cure();
  // Time passes, and nothing is done.
  void pass(std::int64_t ns);
  // The same, and all background work. Not empty: it does not come to an end.
  std::string rest(int seconds);
  Status compact();

  // Windows of a series of the device `board`, or its readings, which are whole numbers.
  Result<Rows> ask(const char* sensor, std::int64_t every_ns,
                   std::optional<wire::Aggregate> aggregate);
  retention::TierMark mark(const char* sensor) const;
  // The drives of a closed store. Not empty: the first problem.
  std::string check();

  MemoryFileSystem disk{{"/m", "/v"}};
  ManualClock clock;
  SeededRandom random;
  ManualExecutor executor;
  EventListener listener;
  Options options;
  std::uint64_t windows = 0;  // that were made, by makers that are closed
  std::unique_ptr<Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<erase::EraseService> erase;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> query;
  std::unique_ptr<tiers::TierMaker> maker;
};

}  // namespace edgecase::test
