#include "forward/summaries.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "sign/signature.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

constexpr char kStore[] = "000102030405060708090a0b0c0d0e0f";

// A store with readings, and what it signs by.
struct SummedStore {
  explicit SummedStore(std::uint64_t seed)
      : random(seed),
        catalog(std::move(catalog::Catalog::open(engine, {})).value()),
        records(std::move(Records::open(engine)).value()),
        secret(sign::make_secret(random).value()),
        summaries(engine, *catalog, *records, clock, random,
                  [this]() -> Result<Bytes> { return secret; }) {
    clock.set_wall_ns(20 * kSummedHourNs);
  }
  catalog::SeriesId store(const char* device, const char* sensor, std::int64_t time_ns,
                          const wire::Value& value) {
    wire::Reading reading{.namespace_name = "default",
                          .device = device,
                          .sensor = sensor,
                          .time_ns = time_ns,
                          .value = value};
    std::vector<catalog::SeriesId> ids;
    catalog::CatalogAdditions additions;
    REQUIRE(catalog->resolve({&reading, 1}, ids, additions).ok());
    WriteBatch batch;
    additions.append_to(batch);
    Bytes bytes;
    wire::append_value(reading.value, bytes);
    batch.put(ids[0].namespace_id, wire::make_reading_key({ids[0].device, ids[0].sensor, time_ns}),
              bytes);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->confirm(additions);
    return ids[0];
  }
  // Some readings of the tenth hour; `f` is of the first.
  void fill(double f) {
    const std::int64_t hour_ns = 10 * kSummedHourNs;
    series = {{"temp", store("pump", "temp", hour_ns, wire::Value::of_float64(f))}};
    store("pump", "temp", hour_ns + 5, wire::Value::of_float64(2));
    store("pump", "temp", hour_ns - 1, wire::Value::of_float64(3));
    series.push_back(
        {"door", store("pump", "door", hour_ns + kSummedHourNs - 1, wire::Value::of_text("open"))});
  }
  HourSum sum() {
    const auto summed = sum_hour(engine, series, {.hour_ns = 10 * kSummedHourNs});
    REQUIRE(summed.ok());
    REQUIRE(summed->has_value());
    return **summed;
  }
  Json summary() {
    return summaries.summary(kStore, "default", "pump", 10 * kSummedHourNs, sum()).value();
  }

  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<Records> records;
  Bytes secret;
  Summaries summaries;
  std::vector<SummedSeries> series;
};

const std::vector<std::string> kSensors{"door", "temp"};

TEST_CASE("summaries: an hour has one checksum, whatever the numbers of its series") {
  SummedStore one(1), other(2);
  one.fill(1);
  other.store("other", "x", 1, wire::Value::of_bool(true));
  other.fill(1);
  CHECK(one.sum().readings == 3);
  CHECK(one.sum().sensors == kSensors);
  CHECK(one.sum().checksum == other.sum().checksum);
  std::reverse(other.series.begin(), other.series.end());
  CHECK(one.sum().checksum == other.sum().checksum);
  other.series[0].sensor = "gate";
  CHECK(one.sum().checksum != other.sum().checksum);
  SummedStore changed(3);
  changed.fill(1.5);
  CHECK(one.sum().checksum != changed.sum().checksum);
}

TEST_CASE("summaries: an hour of which something is newer waits") {
  SummedStore one(1);
  one.fill(1);
  const CommitPosition upto = one.engine.committed();
  one.store("pump", "temp", 10 * kSummedHourNs + 9, wire::Value::of_float64(1));
  const HourWish wish{.hour_ns = 10 * kSummedHourNs, .upto = upto};
  CHECK_FALSE(sum_hour(one.engine, one.series, wish)->has_value());
}

TEST_CASE("summaries: a receipt confirms what is the same, and is as it always was") {
  SummedStore board(1), hub(2);
  board.fill(1);
  hub.fill(1);
  const Json summary = board.summary();
  const auto receipt =
      hub.summaries.receipt(summary, kSensors, kStore, catalog::Origins(catalog::kOwnOrigins));
  REQUIRE(receipt.ok());
  CHECK(confirms(*receipt));
  for (const char* member : {"readings", "checksum"}) {
    CAPTURE(member);
    Json other = *receipt;
    other[member] = "another";
    CHECK_FALSE(confirms(other));
    other.erase(member);
    CHECK_FALSE(confirms(other));
  }
  CHECK(sign::check_signature(*receipt).ok());
  CHECK((*receipt)["summary"] == summary);
  const auto kept = hub.summaries.list("", "");
  REQUIRE(kept.ok());
  CHECK(kept->documents == std::vector<Json>{*receipt});

  const std::string path = std::string(EDGECASE_GOLDEN_DIRECTORY) + "/summary-v1.json";
  if (std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr) std::ofstream(path) << receipt->dump(1);
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK(receipt->dump(1) == golden);
}

TEST_CASE("summaries: what is not the same there is signed as it is, and confirms nothing") {
  SummedStore board(1), hub(2);
  board.fill(1);
  hub.fill(1.5);
  const auto receipt = hub.summaries.receipt(board.summary(), kSensors, kStore,
                                             catalog::Origins(catalog::kOwnOrigins));
  REQUIRE(receipt.ok());
  CHECK((*receipt)["readings"] == 3);
  CHECK_FALSE(confirms(*receipt));
}

TEST_CASE("summaries: a summary that was altered, or is another's, gets no receipt") {
  SummedStore board(1), hub(2);
  board.fill(1);
  hub.fill(1);
  const Json good = board.summary();
  struct Case {
    const char* member;
    Json value;
    StatusCode want;
  };
  for (const Case& c :
       {Case{"readings", 4U, StatusCode::Corruption},
        Case{"checksum", "00", StatusCode::Corruption},
        Case{"device", "tank", StatusCode::Corruption}, Case{"summary", 2, StatusCode::Unsupported},
        Case{"hour", 5, StatusCode::InvalidArgument},
        Case{"readings", -1, StatusCode::InvalidArgument},
        Case{"signature", Json::object(), StatusCode::InvalidArgument}}) {
    CAPTURE(c.member);
    Json altered = good;
    altered[c.member] = c.value;
    CHECK(hub.summaries.receipt(altered, kSensors, kStore, catalog::Origins(catalog::kOwnOrigins))
              .status()
              .code() == c.want);
  }
  CHECK(hub.summaries.receipt(good, kSensors, "ff", catalog::Origins(catalog::kOwnOrigins))
            .status()
            .code() == StatusCode::InvalidArgument);
  CHECK(hub.summaries.list("", "")->documents.empty());
}

TEST_CASE("summaries: they are found in pages, by target, and go with it") {
  SummedStore board(1);
  board.fill(1);
  std::vector<Summaries::Kept> some;
  for (int i = 0; i < 250; ++i)
    some.push_back({board.series[0].id, i * kSummedHourNs, R"({"summary":{}})"});
  REQUIRE(board.summaries.keep("hub", some, board.engine.revocations()).ok());
  REQUIRE(board.summaries.keep("other", {some.front()}, board.engine.revocations()).ok());
  REQUIRE(board.summaries.keep_position("hub", 7).ok());
  auto page = board.summaries.list("hub", "");
  CHECK(page->documents.size() == Summaries::kPageMax);
  page = board.summaries.list("hub", page->next);
  CHECK(page->documents.size() == 50);
  CHECK(page->next.empty());
  CHECK(board.summaries.position("hub").value() == 7);
  REQUIRE(board.summaries.forget("hub").ok());
  CHECK(board.summaries.position("hub").value() == 0);
  CHECK(board.summaries.list("hub", "")->documents.empty());
  CHECK(board.summaries.list("other", "")->documents.size() == 1);
}

TEST_CASE("summaries: they are bounded, and the oldest hours go") {
  SummedStore board(1);
  board.fill(1);
  // As many at once as a turn sends.
  for (std::size_t hour = 0; hour <= Summaries::kKeptMax;) {
    std::vector<Summaries::Kept> some;
    for (int i = 0; i < 32; ++i, ++hour)
      some.push_back({board.series[0].id, static_cast<std::int64_t>(hour) * kSummedHourNs, "{}"});
    REQUIRE(board.summaries.keep("hub", some, board.engine.revocations()).ok());
  }
  const auto stats =
      board.engine.range_stats(board.records->id(), {Bytes("Y"), Bytes("Z")}, ReadOptions());
  CHECK(stats->entries < Summaries::kKeptMax);
  CHECK(stats->entries > Summaries::kKeptMax / 2);
}

TEST_CASE("summaries: those of a dropped namespace go, and no others") {
  SummedStore board(1);
  board.fill(1);
  catalog::SeriesId other = board.series[0].id;
  ++other.namespace_id;
  REQUIRE(board.summaries
              .keep("hub", {{board.series[0].id, 0, "{}"}, {other, 0, "{}"}},
                    board.engine.revocations())
              .ok());
  REQUIRE(board.summaries.forget_namespace(board.series[0].id.namespace_id).ok());
  CHECK(board.summaries.list("hub", "")->documents.size() == 1);
  REQUIRE(board.summaries.forget_namespace(other.namespace_id).ok());
  CHECK(board.summaries.list("hub", "")->documents.empty());
}

TEST_CASE("summaries: an erasure takes those of its devices and hours along") {
  SummedStore board(1);
  board.fill(1);
  const catalog::SeriesId tank = board.store("tank", "x", 1, wire::Value::of_bool(true));
  const std::int64_t hour_ns = 10 * kSummedHourNs;
  REQUIRE(board.summaries
              .keep("hub",
                    {{board.series[0].id, hour_ns, "{}"},
                     {board.series[0].id, hour_ns + kSummedHourNs, "{}"},
                     {tank, hour_ns, "{}"}},
                    board.engine.revocations())
              .ok());
  erase::EraseTarget target;
  target.series = board.catalog->select_rows("default", wire::Selector{"pump", "temp"});
  const auto erase = [&](erase::TimeRange range) {
    WriteBatch batch;
    REQUIRE(board.summaries
                .tell_erased(*board.catalog, target, range,
                             [&](catalog::KeySpan span) {
                               batch.erase_range(span.namespace_id, span.lower, span.upper);
                               return ok();
                             })
                .ok());
    REQUIRE(board.engine.write(batch, Durability::Sync).ok());
    return board.summaries.list("hub", "")->documents.size();
  };
  CHECK(erase({hour_ns + 5, hour_ns + 6}) == 2);
  CHECK(erase({INT64_MIN, std::nullopt}) == 1);
  // What was computed before is not kept after.
  CHECK(board.summaries.keep("hub", {{tank, hour_ns, "{}"}}, board.engine.revocations()).ok());
}

}  // namespace
}  // namespace edgecase::forward
