// SELECT on the engine itself: functions that the metadata drive answers give what those give that
// read every value. A condition on a field makes a statement read.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "daemon/influxql/select_room.h"
#include "edgecase/random.h"
#include "engine/core/engine_fixture.h"
#include "support/test_seed.h"
#include "support/test_share.h"
#include "wire/reading_key.h"

using namespace edgecase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = test::ManualClock::kStartWallNs;  // a full hour

struct EngineRoom : test::EngineFixture {
  explicit EngineRoom(bool encrypted = false) {
    options.group_span_ns = 3600 * kSecond;
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
      batch.readings.push_back({"default", device, "m", kStart + (from_s + i) * kSecond, value(i)});
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
      return wire::make_reading_key({found->id.device, found->id.sensor, kStart + s * kSecond});
    };
    WriteBatch batch;
    batch.erase_range(found->id.namespace_id, key(from_s), key(to_s));
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  struct Answer {
    std::vector<std::string> words;
    std::string notice;
  };
  // `explains`: the lines of EXPLAIN ANALYZE.
  Answer ask(const std::string& text, bool explains = false) {
    auto statements = influxql::parse_statements(text, 1);
    REQUIRE_MESSAGE(statements.ok(), statements.status().to_string());
    const influxql::Asking asking{principal, "default", {}, nullptr, kStart, {}};
    auto select = std::move(statements->front().select);
    auto rows = explains ? influxql::explain_select(std::move(select), asking, *service, true)
                         : influxql::run_select(std::move(select), asking, *service);
    Answer answer;
    std::string words;
    Status status = rows.status();
    if (status.ok()) status = test::SelectRoom::append_rows(**rows, words);
    if (rows.ok()) answer.notice = (*rows)->notice();
    if (!status.ok()) words = "ERR " + std::string(status.message());
    std::istringstream parts(words);
    for (std::string word; parts >> word;) answer.words.push_back(word);
    return answer;
  }
  std::uint64_t explained(const std::string& text, const std::string& line) {
    std::string all;
    for (const std::string& word : ask(text, true).words) all += word + " ";
    const std::size_t at = all.find(line + ": ");
    REQUIRE_MESSAGE(at != std::string::npos, all);
    return std::stoull(all.substr(at + line.size() + 2));
  }

  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> service;
  auth::Principal principal{auth::PrincipalKind::Internal, "test", nullptr};
};

// Sums of floats may differ by rounding.
bool is_close(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const double x = std::strtod(a.c_str(), nullptr), y = std::strtod(b.c_str(), nullptr);
  return a.find('.') != std::string::npos && std::fabs(x - y) <= 1e-12 * (std::fabs(y) + 1);
}

const std::vector<std::string> kFunctions = {"count", "sum",   "mean", "min",
                                             "max",   "first", "last", "spread"};

// One function by itself and all beside each other, known and read. Answers how many groups were
// not read.
std::uint64_t compare(EngineRoom& room, const std::string& alone, const std::string& where,
                      const std::string& behind) {
  std::string all;
  for (const std::string& function : kFunctions)
    all += (all.empty() ? "" : ", ") + function + "(value)";
  std::uint64_t groups = 0;
  for (const std::string& select : {all, alone + "(value)"}) {
    const std::string known = "SELECT " + select + " FROM m WHERE " + where + " " + behind;
    const std::string read =
        "SELECT " + select + " FROM m WHERE " + where + " AND value > -1000000 " + behind;
    CAPTURE(known);
    const EngineRoom::Answer got = room.ask(known), want = room.ask(read);
    CAPTURE(got.words);
    CAPTURE(want.words);
    REQUIRE(got.words.size() == want.words.size());
    for (std::size_t i = 0; i < got.words.size(); ++i) {
      CAPTURE(i);
      CHECK_MESSAGE(is_close(got.words[i], want.words[i]), got.words[i], " ", want.words[i]);
    }
    groups += room.explained(known, "GROUPS KNOWN FROM METADATA");
  }
  return groups;
}

wire::Value tenth(int i) {
  return wire::Value::of_float64(static_cast<double>(i % 97) / 10 - 3);
}

}  // namespace

TEST_CASE("select on the engine: windows of hours read no value") {
  EngineRoom room;
  for (const char* device : {"a", "b", "c"}) room.fill(device, -1'800, 9'000, tenth);
  REQUIRE(room.engine->flush().ok());
  const std::string hours =
      "SELECT mean(value), max(value) FROM m WHERE time >= '2025-11-20' AND "
      "time < '2025-11-21' GROUP BY time(1h)";
  for (const std::string behind : {"", ", device", " ORDER BY time DESC"}) {
    CAPTURE(behind);
    CHECK(room.explained(hours + behind, "POINTS READ") == 0);
    CHECK(room.explained(hours + behind, "POINTS KNOWN FROM METADATA") == 27'000);
    CHECK(room.explained(hours + behind, "GROUPS DECODED") == 0);
    CHECK(room.explained(hours + behind, "BYTES READ FROM THE VALUES DRIVE") == 0);
  }
  // A condition on tags alone holds for whole series.
  CHECK(room.explained("SELECT sum(value) FROM m WHERE device =~ /a|b/", "POINTS READ") == 0);
  CHECK(room.explained("SELECT sum(value) FROM m WHERE device = 'a'",
                       "POINTS KNOWN FROM METADATA") == 9'000);
  // When the largest was is told by the group that it is in, and by those before.
  const std::string lone = "SELECT max(value) FROM m WHERE device = 'a'";
  CHECK(room.explained(lone, "GROUPS DECODED") > 0);
  CHECK(room.explained(lone, "POINTS KNOWN FROM METADATA") > 0);
  // What a window's edge cuts is decoded.
  const std::string cut =
      "SELECT count(value) FROM m WHERE time >= '2025-11-20T14:00:30Z' AND "
      "device = 'a'";
  CHECK(room.explained(cut, "GROUPS DECODED") == 1);
  CHECK(room.explained(cut, "BYTES READ FROM THE VALUES DRIVE") == 0);  // it was cached
  CHECK(room.explained("SELECT median(value) FROM m", "POINTS KNOWN FROM METADATA") == 0);
}

TEST_CASE("select on the engine: what is known of groups and what is read give the same") {
  const std::uint64_t first = test::test_seed(20261130);
  std::uint64_t groups = 0;
  for (std::uint64_t run = 0; run < test::seeds_of(6, 2); ++run) {
    const std::uint64_t seed = first + run;
    CAPTURE(seed);
    SeededRandom random(seed);
    EngineRoom room(random.below(2) == 0);
    const auto some_device = [&] {
      return std::string(1, static_cast<char>('a' + random.below(3)));
    };
    const auto some_s = [&] { return static_cast<std::int64_t>(random.below(9'000)); };
    for (int step = 0; step < 24; ++step) {
      CAPTURE(step);
      const std::string device = some_device();
      switch (random.below(10)) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const bool is_odd = random.below(4) == 0;
          const bool is_integer = device == "c" && random.below(2) == 0;
          room.fill(device, some_s(), 900, [&](int i) {
            if (is_odd && i % 300 == 7) return wire::Value::of_text("late");
            if (is_integer) return wire::Value::of_int64(i % 50);
            return wire::Value::of_float64(static_cast<double>(random.below(5'000)) / 10 - 200);
          });
          break;
        }
        case 4: room.fill(device, some_s(), 3, tenth); break;
        case 5: {
          const std::int64_t from = some_s();
          room.erase(device, from, from + static_cast<std::int64_t>(random.below(1'000)));
          break;
        }
        case 6: REQUIRE(room.engine->compact({}, {}).ok()); break;
        case 7:
          if (random.below(2) == 0) REQUIRE(room.engine->erase().ok());
          room.restart();
          break;
        case 8: {
          const auto id = room.engine->find_namespace("default");
          if (!id.ok() || random.below(3) != 0) break;
          REQUIRE(room.engine->set_retention({{id->id, "", 9'000 * kSecond}}).ok());
          room.clock.advance(static_cast<std::int64_t>(random.below(12'000)) * kSecond);
          break;
        }
        default: REQUIRE(room.engine->flush().ok());
      }
      room.executor.run_all();
      if (step % 4 != 3) continue;
      const auto time = [](std::int64_t s) { return std::to_string(kStart + s * kSecond); };
      std::string where =
          "time >= " + time(some_s() - 4'000) + " AND time < " + time(some_s() + 6'000);
      if (random.below(3) == 0) where += " AND device != 'b'";
      const std::string groupings[] = {"",
                                       "GROUP BY device",
                                       "GROUP BY time(1h)",
                                       "GROUP BY time(1h), device",
                                       "GROUP BY time(30m, 7m), * fill(none) ORDER BY time DESC",
                                       "GROUP BY time(2h) fill(previous)"};
      groups += compare(room, kFunctions[random.below(kFunctions.size())], where,
                        groupings[random.below(std::size(groupings))]);
    }
  }
  CHECK(groups > 0);
}
