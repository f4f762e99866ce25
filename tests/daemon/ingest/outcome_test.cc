#include "ingest/outcome.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "audit/audit_log.h"
#include "edgecase/machine.h"
#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"

using namespace edgecase;
using ingest::Loss;
using ingest::LossLedger;
using ingest::LossRecords;
using wire::Value;

namespace {

// The places that a search finds, and those that a map of all readings finds.
struct Replaced {
  std::vector<std::uint32_t> found, expected;
};

Replaced search_replaced(const std::vector<catalog::SeriesId>& ids,
                         const std::vector<std::int64_t>& times,
                         const std::vector<std::int64_t>& values, ingest::ReplacedSearch& search) {
  std::vector<wire::Reading> readings;
  for (const std::int64_t value : values)
    readings.push_back({"default", "d", "s", 0, Value::of_int64(value)});
  Replaced replaced;
  for (const std::uint32_t place : search.find(readings, ids, times))
    replaced.found.push_back(place);
  std::map<std::tuple<NamespaceId, std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> last;
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    const auto key = std::tuple(ids[i].namespace_id, ids[i].device, ids[i].sensor, times[i]);
    const auto [at, is_new] = last.try_emplace(key, i);
    if (!is_new && values[at->second] != values[i]) replaced.expected.push_back(at->second);
    at->second = i;
  }
  return replaced;
}

wire::Reading reading_of(std::string_view device) {
  return {"default", device, "s", 1, Value::of_int64(1)};
}

}  // namespace

TEST_CASE("outcome: what a batch replaces itself is found as a map of all readings finds it") {
  ingest::ReplacedSearch search;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    for (int round = 0; round < 60; ++round) {
      // From lines of many fields, alike or not, to single readings of one instant.
      const std::uint64_t devices = 1 + random.below(4), instants = 1 + random.below(30);
      const std::uint64_t sensors = 1 + random.below(random.below(2) == 0 ? 40 : 400);
      const std::uint64_t fields = 1 + random.below(6);
      std::vector<catalog::SeriesId> ids;
      std::vector<std::int64_t> times, values;
      for (std::uint64_t line = random.below(40); line > 0; --line) {
        const auto device = static_cast<std::uint32_t>(1 + random.below(devices));
        const auto time_ns = static_cast<std::int64_t>(random.below(instants));
        auto sensor = static_cast<std::uint32_t>(1 + random.below(sensors));
        for (std::uint64_t field = 0; field < fields; ++field) {
          ids.push_back({static_cast<NamespaceId>(1 + random.below(20) / 19), device, sensor});
          times.push_back(time_ns);
          values.push_back(static_cast<std::int64_t>(random.below(3)));
          sensor = random.below(8) == 0 ? 1 : sensor + 1;
        }
      }
      const Replaced replaced = search_replaced(ids, times, values, search);
      CHECK(replaced.found == replaced.expected);
    }
  }
}

TEST_CASE("outcome: what a batch replaces itself is found where sensors have far numbers") {
  ingest::ReplacedSearch search;
  // Neighbours on either side of a block's end, and numbers that differ by whole blocks.
  const std::vector<catalog::SeriesId> ids = {{1, 1, 63}, {1, 1, 64},        {1, 1, 127},
                                              {1, 2, 64}, {2, 1, 64},        {1, 1, 128},
                                              {1, 1, 0},  {1, 1, UINT32_MAX}};
  std::vector<std::int64_t> times(ids.size(), INT64_MIN), values(ids.size(), 1);
  CHECK(search_replaced(ids, times, values, search).found.empty());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(i);
    std::vector<catalog::SeriesId> more = ids;
    more.push_back(ids[i]);
    times.resize(more.size(), INT64_MIN);
    values.resize(more.size());
    values.back() = 2;
    CHECK(search_replaced(more, times, values, search).found ==
          std::vector<std::uint32_t>{static_cast<std::uint32_t>(i)});
    // The same value twice is the same reading twice; another time is another reading.
    values.back() = 1;
    CHECK(search_replaced(more, times, values, search).found.empty());
    values.back() = 2;
    times.back() = INT64_MAX;
    CHECK(search_replaced(more, times, values, search).found.empty());
    times.resize(ids.size());
    values.resize(ids.size());
  }
  CHECK(search_replaced({}, {}, {}, search).found.empty());
  CHECK(search_replaced({ids[0]}, {1}, {1}, search).found.empty());
}

TEST_CASE("outcome: the ledger tells few devices apart, and sums the others by cause") {
  LossLedger ledger;
  constexpr std::size_t kDevices = LossLedger::kDevicesMax + 10;
  for (std::size_t i = 0; i < kDevices; ++i) {
    const std::string device = "d" + std::to_string(i);
    ledger.note(Loss::Expired, reading_of(device), static_cast<std::int64_t>(i), 1);
    ledger.note(Loss::Replaced, reading_of(device), static_cast<std::int64_t>(i), 1);
  }
  ledger.note(Loss::Erased, reading_of("gone"), 1, 1);
  LossLedger::Told told = ledger.tell(1);
  CHECK(told.devices.size() == LossLedger::kDevicesMax);
  const auto of = [](Loss loss) { return static_cast<std::size_t>(loss); };
  CHECK(told.others[of(Loss::Expired)] == 10);
  CHECK(told.others[of(Loss::Replaced)] == 10);
  CHECK(told.others[of(Loss::Erased)] == 1);
  CHECK(ledger.total(Loss::Expired) == kDevices);

  SUBCASE("an erasure takes the names along, not the counts") {
    told = ledger.tell(2);
    CHECK(told.devices.empty());
    CHECK(told.others[of(Loss::Expired)] == kDevices);
    CHECK(told.others[of(Loss::Erased)] == 1);
  }
}

TEST_CASE("outcome: records of losses are one an hour by device and cause, and few in all") {
  LossRecords records;
  const auto first = records.note(7, Loss::Expired, 3, 0);
  REQUIRE(first.has_value());
  CHECK(first->pseudonym == std::optional<std::uint64_t>(7));
  CHECK(first->readings == 3);
  CHECK_FALSE(records.note(7, Loss::Expired, 2, 1).has_value());
  CHECK(records.note(7, Loss::Replaced, 1, 1).has_value());
  // What was not told is told an hour later.
  const auto later = records.note(7, Loss::Expired, 1, LossRecords::kSpacingNs);
  REQUIRE(later.has_value());
  CHECK(later->readings == 3);

  std::size_t named = 0, shared = 0;
  for (std::uint64_t device = 100; device < 100 + 2 * LossRecords::kDevicesMax; ++device) {
    const auto due = records.note(device, Loss::Evicted, 1, LossRecords::kSpacingNs);
    if (due) (due->pseudonym ? named : shared) += 1;
  }
  CHECK(named == LossRecords::kDevicesMax - 1);
  CHECK(shared == 1);
  // Once these are old there is room for others.
  const auto other = records.note(9'999, Loss::Evicted, 1, 3 * LossRecords::kSpacingNs);
  REQUIRE(other.has_value());
  CHECK(other->pseudonym == std::optional<std::uint64_t>(9'999));
}

TEST_CASE("outcome: a device that sends only what is not kept has one audit record by cause") {
  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{1};
  const test::TempDirectory directory;
  const auto catalog = catalog::Catalog::open(engine, {}).value();
  erase::Fences fences{engine.create_namespace("_erasures", {}).value(),
                       auth::Pseudonyms(Bytes(32, 'k'))};
  const auto log =
      audit::AuditLog::open(
          {.mode = audit::Mode::Batched, .head_directory = directory.path(), .runs_thread = false},
          {engine, posix_file_system(), clock, random})
          .value();
  ingest::IngestPipeline pipeline(engine, *catalog, clock, nullptr, nullptr, log.get(), &fences);
  const auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  fences.set(fences.pseudonyms().of_device("default", "erased"), {{{{0, 100}, 1}}});

  const auto store = [&](const char* device, std::int64_t time_ns) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", device, "s", time_ns, Value::of_int64(1)});
    REQUIRE(pipeline.ingest(*auth::authorize_write(principal, batch)).ok());
  };
  for (int i = 0; i < 5; ++i) store("erased", 50);
  store("kept", 50);
  REQUIRE(log->flush().ok());

  std::size_t records = 0;
  const auto cursor = audit::RecordCursor::open(*log, {}).value();
  for (audit::Record record; cursor->next(record).value();) {
    if (record.operation != ingest::Losses::kOperation) continue;
    ++records;
    CHECK(record.detail == "erased");
    CHECK(record.actor == "test");
    CHECK(record.count == 1);
    REQUIRE(record.targets.size() == 1);
    CHECK(record.targets[0].pseudonym == log->names().of_device("default", "erased"));
  }
  CHECK(records == 1);
  CHECK(pipeline.losses().total(Loss::Erased) == 5);
}
