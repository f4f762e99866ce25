#include "ingest/redating.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "daemon/erase/erase_room.h"
#include "support/temp_directory.h"
#include "wire/time_text.h"

using namespace edgecase;
using erase::test::kHour;
using erase::test::kNow;
using erase::test::kSecond;

namespace {

// What redates the readings of a store whose clock becomes right.
struct Dater {
  Dater(Engine& store, catalog::Catalog& names, test::ManualClock& time)
      : engine(store), catalog(names), clock(time) {
    start();
  }
  void start() {
    redating.reset();
    clock.set_wall_ns(5 * kSecond);
    clock.set_trust(ClockTrust::Untrusted);
    periods = ingest::UndatedPeriods::open(engine, clock, random, "boot").value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, catalog, clock, nullptr, nullptr,
                                                        nullptr, &fences);
    pipeline->date_later(periods.get());
    redating = std::make_unique<ingest::Redating>(ingest::RedatingParts{.engine = engine,
                                                                        .catalog = catalog,
                                                                        .clock = clock,
                                                                        .fences = fences,
                                                                        .periods = *periods});
  }
  void send(const std::string& text) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "d", "n", std::nullopt, wire::Value::of_text(text)});
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    REQUIRE(pipeline->ingest(*auth::authorize_write(principal, batch)).ok());
  }
  Status look() {
    clock.set_wall_ns(kNow);
    clock.set_trust(ClockTrust::Trusted);
    return redating->look();
  }
  std::size_t records() {
    const auto id = engine.find_namespace(wire::kUndatedNamespace)->id;
    const KeyRange of_copies{Bytes(1, ingest::kCopiesRecord), Bytes(1, ingest::kCopiesRecord + 1)};
    return engine.range_stats(id, of_copies, {})->entries;
  }
  // Counts the readings of the device, as of a snapshot.
  std::size_t readings(const std::shared_ptr<const Snapshot>& snapshot = nullptr) {
    const auto id = catalog.find("default", "d", "n")->id;
    ReadOptions options;
    options.snapshot = snapshot;
    const auto at = engine.scan(id.namespace_id, erase::range_of_series(id, {}), options).value();
    std::size_t count = 0;
    for (; at->valid(); at->next()) ++count;
    return count;
  }

  Engine& engine;
  catalog::Catalog& catalog;
  test::ManualClock& clock;
  SeededRandom random{3};
  erase::Fences fences{0, erase::Pseudonyms(Bytes(auth::kPseudonymKeyBytes, 'k'))};
  std::unique_ptr<ingest::UndatedPeriods> periods;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<ingest::Redating> redating;
};

struct ModelStore {
  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  Dater dater{engine, *catalog, clock};
};

std::size_t times_in_files(const std::string& directory, const std::string& needle) {
  std::size_t times = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const std::string_view all = bytes.view();
    for (std::size_t at = all.find(needle); at != std::string_view::npos;
         at = all.find(needle, at + 1)) {
      ++times;
    }
  }
  return times;
}

}  // namespace

TEST_CASE("left copies: no file holds a reading twice once it has its time") {
  const test::TempDirectory directory;
  EventListener listener;
  const std::unique_ptr<Executor> executor = make_thread_executor();
  Options options;
  options.metadata_directory = directory / "m";
  options.values_directory = directory / "v";
  options.memory_limit_bytes = 8u << 20;
  options.removal = Removal::Overwrite;
  test::ManualClock clock;
  clock.set_trust(ClockTrust::Untrusted);
  auto engine =
      Engine::open(options, {posix_file_system(), clock, system_random(), *executor, listener});
  REQUIRE_MESSAGE(engine.ok(), engine.status().to_string());
  const auto catalog = catalog::Catalog::open(**engine, {}).value();
  Dater dater(**engine, *catalog, clock);
  const std::string canary = "qzvkxjwyhfgbpmtdncrslauo";
  for (int i = 0; i < 100; ++i) dater.send((i == 50 ? canary : "") + std::string(300, 'a'));
  REQUIRE((*engine)->flush().ok());
  CHECK(times_in_files(directory.path(), canary) >= 1);
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 0);
  REQUIRE((*engine)->erase().ok());
  REQUIRE((*engine)->flush().ok());
  CHECK(times_in_files(directory.path(), canary) == 1);
  CHECK(dater.readings() == 100);
}

TEST_CASE("left copies: who reads as of before still sees them, and then they go") {
  ModelStore store;
  Dater& dater = store.dater;
  dater.send("a");
  auto before = store.engine.snapshot();
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 1);
  CHECK(dater.readings(before) == 1);
  CHECK(dater.readings() == 1);
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 1);
  const auto after = store.engine.snapshot();  // holds nothing up
  before.reset();
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 0);
  CHECK(dater.readings(after) == 1);
  CHECK(dater.readings() == 1);
}

TEST_CASE("left copies: what a process leaves is erased by the next") {
  ModelStore store;
  Dater& dater = store.dater;
  dater.send("a");
  {
    const auto before = store.engine.snapshot();
    REQUIRE(dater.look().ok());
  }
  CHECK(dater.records() == 1);
  dater.start();
  dater.send("b");  // waits in the same series
  store.engine.fail_next_write(out_of_space("full"));
  CHECK_FALSE(dater.look().ok());
  CHECK(dater.readings() == 2);
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 0);
  CHECK(dater.readings() == 2);
}

TEST_CASE("left copies: those of a namespace that was dropped are forgotten") {
  ModelStore store;
  Dater& dater = store.dater;
  dater.send("a");
  auto before = store.engine.snapshot();
  REQUIRE(dater.look().ok());
  REQUIRE(store.engine.drop_namespace(store.engine.find_namespace("default")->id).ok());
  before.reset();
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 0);
}

TEST_CASE("left copies: slots are not used anew while any lie in them") {
  ModelStore store;
  Dater& dater = store.dater;
  for (std::uint32_t slot = 0; slot < wire::kUndatedSlots / 2; ++slot) {
    dater.send("a");
    ingest::UndatedPeriod period = dater.periods->periods().back();
    if (period.slot >= wire::kUndatedSlots / 2) break;
    period.state = ingest::UndatedPeriod::State::Done;
    REQUIRE(dater.periods->change({&period, 1}).ok());
  }
  const auto before = store.engine.snapshot();
  REQUIRE(dater.look().ok());
  CHECK(dater.records() == 1);
  dater.start();
  CHECK(wire::undated_slot_of(*dater.periods->arrival_ns()) > wire::kUndatedSlots / 2);
}
