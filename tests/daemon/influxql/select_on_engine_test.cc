// SELECT on the engine itself: functions that the metadata drive answers give what those give that
// read every value. A condition on a field makes a statement read.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "daemon/influxql/select_room.h"
#include "daemon/query/engine_room.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "support/test_share.h"

using namespace edgecase;

namespace {

constexpr std::int64_t kSecond = test::kRoomSecond;
constexpr std::int64_t kStart = test::kRoomStart;

struct EngineRoom : test::EngineRoom {
  using test::EngineRoom::EngineRoom;

  struct Answer {
    std::vector<std::string> words;
    std::string notice;
  };
  // `explains`: the lines of EXPLAIN ANALYZE. `by_row`: no rows are taken many at once.
  Answer ask(const std::string& text, bool explains = false, bool by_row = false) {
    auto statements = influxql::parse_statements(text, 1);
    REQUIRE_MESSAGE(statements.ok(), statements.status().to_string());
    const influxql::Asking asking{principal, "default", {}, {}, nullptr, kStart, {}};
    auto select = std::move(statements->front().select);
    auto rows = explains ? influxql::explain_select(std::move(select), asking, *service, true)
                         : influxql::run_select(std::move(select), asking, *service);
    Answer answer;
    std::string words;
    Status status = rows.status();
    if (status.ok()) status = test::SelectRoom::append_rows(**rows, words, by_row);
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
    const std::uint64_t known_groups = room.explained(known, "GROUPS KNOWN FROM METADATA");
    // A series that is read alone has the sums of the same numbers in the same order.
    const bool is_exact = known_groups == 0 && behind.find("device") != std::string::npos;
    for (std::size_t i = 0; i < got.words.size(); ++i) {
      CAPTURE(i);
      const bool is_alike =
          is_exact ? got.words[i] == want.words[i] : is_close(got.words[i], want.words[i]);
      CHECK_MESSAGE(is_alike, got.words[i], " ", want.words[i]);
    }
    CHECK(room.ask(known, false, true).words == got.words);
    groups += known_groups;
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
  // What is selected and compared is read once.
  CHECK(room.explained("SELECT value FROM m WHERE device = 'a' AND value < 1", "POINTS READ") ==
        9'000);
  CHECK(room.explained("SELECT max(value) FROM m WHERE value > 1", "POINTS READ") == 27'000);
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

TEST_CASE("select on the engine: without the values drive windows that need it are null") {
  for (const bool is_turned : {false, true}) {
    CAPTURE(is_turned);
    EngineRoom room;
    room.fill("a", 0, 3 * 3'600, tenth);
    room.fill("b", 0, 3 * 3'600, tenth);
    REQUIRE(room.engine->flush().ok());
    room.restart();
    const auto ask = [&](const std::string& what, const std::string& behind) {
      return room.ask("SELECT " + what +
                      " FROM m WHERE device = 'a' AND time >= '2025-11-20T14:30:00Z' AND "
                      "time < '2025-11-20T17:00:00Z' GROUP BY " +
                      behind + (is_turned ? " ORDER BY time DESC" : ""));
    };
    const EngineRoom::Answer whole = ask("count(value), max(value)", "time(1h)");
    CHECK(whole.notice.empty());
    room.restart();  // nothing is cached
    room.disk.set_gone("/v", true);
    // The first window is cut, the others are known.
    for (const std::string fill : {"", " fill(0)", " fill(none)", " fill(previous)"}) {
      CAPTURE(fill);
      const EngineRoom::Answer away = ask("count(value), max(value)", "time(1h)" + fill);
      CAPTURE(away.words);
      CHECK_FALSE(away.notice.empty());
      REQUIRE(away.words.size() == whole.words.size());
      const std::size_t lacking = is_turned ? whole.words.size() - 4 : 4;
      for (std::size_t i = 0; i < whole.words.size(); ++i) {
        const bool is_lacking = i >= lacking + 2 && i < lacking + 4;
        CHECK(away.words[i] == (is_lacking ? "-" : whole.words[i]));
      }
    }
    // Every window needs values, also those behind the first that were passed over.
    const EngineRoom::Answer all = ask("mean(value)", "time(10m) fill(0)");
    CAPTURE(all.words);
    CHECK(std::count(all.words.begin(), all.words.end(), "-") == 15);
    CHECK(std::count(all.words.begin(), all.words.end(), "0") == 0);
    // What has no place for it says so as a whole.
    const EngineRoom::Answer medians = ask("median(value)", "time(1h)");
    CHECK(std::count(medians.words.begin(), medians.words.end(), "-") == 3);
    CHECK(ask("derivative(mean(value))", "time(10m)").words.front() == "ERR");
    CHECK(room.ask("SELECT stddev(value) FROM m").words.front() == "ERR");
    CHECK(room.ask("SELECT sum(x) FROM (SELECT count(value) AS x FROM m WHERE time >= "
                   "'2025-11-20T14:30:00Z' AND time < '2025-11-20T17:00:00Z' GROUP BY time(1h))")
              .words.front() == "ERR");
    CHECK(room.ask("SELECT count(value), mean(value) FROM m").words.back() != "ERR");
    room.disk.set_gone("/v", false);
    CHECK(ask("count(value), max(value)", "time(1h)").words == whole.words);
  }
}

TEST_CASE("select on the engine: more series than have open scans are fed window by window") {
  EngineRoom room;
  constexpr int kDevices = 70;
  for (int i = 0; i < kDevices; ++i) room.fill("d" + std::to_string(i), 0, 400, tenth);
  REQUIRE(room.engine->flush().ok());
  const std::string from =
      "SELECT count(value), sum(value) FROM m WHERE time >= '2025-11-20' AND "
      "time < '2025-11-21'";
  compare(room, "mean", "time >= '2025-11-20T14:00:30Z'", "GROUP BY time(1m)");
  // Where nothing is cut they take turns, so that groups are known, not read.
  for (const std::string function : {"sum", "spread", "count"})
    CHECK(compare(room, function, "time >= '2025-11-20'", "") >= kDevices);
  CHECK(room.explained("SELECT mean(value) FROM m", "POINTS READ") == 0);
  const EngineRoom::Answer whole = room.ask(from + " GROUP BY time(5m) fill(none)");
  CHECK(std::find(whole.words.begin(), whole.words.end(), std::to_string(kDevices * 300)) !=
        whole.words.end());
  room.restart();
  room.disk.set_gone("/v", true);
  const EngineRoom::Answer away = room.ask(from + " GROUP BY time(5m) fill(none)");
  CHECK_FALSE(away.notice.empty());
  CHECK(away.words.size() == whole.words.size());
  CHECK(std::count(away.words.begin(), away.words.end(), "-") == 4);
  room.disk.set_gone("/v", false);
}

namespace {

struct FreeTurn final : Patience {
  Status go_on() override { return ok(); }
};

// A question of many series that a second thread may read a part of. How often it was asked for a
// turn: `asked`.
struct SharedQuestion {
  std::atomic<int> asked = 0;
  FreeTurn turn;
  query::Reach reach;
  std::function<void()> before_it = [] {};  // the second thread begins

  std::unique_ptr<influxql::RowSource> ask(EngineRoom& room, const std::string& text) {
    reach.patience = &turn;
    reach.second_turn = [this]() -> std::unique_ptr<Patience> {
      ++asked;
      before_it();
      return std::make_unique<FreeTurn>();
    };
    auto statements = influxql::parse_statements(text, 1);
    REQUIRE(statements.ok());
    const influxql::Asking asking{room.principal, "default", {}, {}, &reach, kStart, {}};
    auto rows = influxql::run_select(std::move(statements->front().select), asking, *room.service);
    REQUIRE_MESSAGE(rows.ok(), rows.status().to_string());
    return *std::move(rows);
  }
};

}  // namespace

TEST_CASE("select on the engine: two threads answer what one does") {
  EngineRoom room;
  constexpr int kDevices = 70;  // so many are shared at once
  for (int i = 0; i < kDevices; ++i) room.fill("d" + std::to_string(i), i, 900, tenth);
  REQUIRE(room.engine->flush().ok());
  for (const std::string behind :
       {"GROUP BY time(10s), device", "GROUP BY time(1m), device fill(none) ORDER BY time DESC",
        "GROUP BY time(7s), device fill(previous)"}) {
    const std::string text = "SELECT mean(value), max(value), count(value) FROM m WHERE time < " +
                             std::to_string(kStart + 1'000 * kSecond) + " " + behind;
    CAPTURE(text);
    const EngineRoom::Answer alone = room.ask(text);
    for (const bool by_row : {false, true}) {
      SharedQuestion shared;
      const auto rows = shared.ask(room, text);
      std::string answer;
      REQUIRE(test::SelectRoom::append_rows(*rows, answer, by_row).ok());
      CHECK(shared.asked == 1);
      std::istringstream parts(answer);
      std::vector<std::string> words;
      for (std::string word; parts >> word;) words.push_back(word);
      CHECK(words == alone.words);
    }
    // It ends where nobody wants the rest.
    SharedQuestion left;
    const auto rows = left.ask(room, text);
    influxql::SeriesHead head;
    for (int i = 0; i < 4; ++i) CHECK(rows->next_series(head).value());
  }
}

TEST_CASE("select on the engine: a series that comes as a second thread begins changes nothing") {
  // One more group, or as many with another one among them.
  for (const std::string limit : {"", " SLIMIT 70"}) {
    EngineRoom room;
    constexpr int kDevices = 70;  // so many are shared at once
    for (int i = 0; i < kDevices; ++i) room.fill("d" + std::to_string(i), i, 900, tenth);
    REQUIRE(room.engine->flush().ok());
    const std::string text = "SELECT mean(value) FROM m WHERE time < " +
                             std::to_string(kStart + 1'000 * kSecond) +
                             " GROUP BY time(10s), device" + limit;
    const EngineRoom::Answer alone = room.ask(text);
    SharedQuestion shared;
    shared.before_it = [&] { room.fill("a", 0, 900, tenth); };
    const auto rows = shared.ask(room, text);
    std::string answer;
    const Status status = test::SelectRoom::append_rows(*rows, answer, false);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    CHECK(shared.asked == 1);
    std::istringstream parts(answer);
    std::vector<std::string> words;
    for (std::string word; parts >> word;) words.push_back(word);
    CHECK(words == alone.words);
  }
}

TEST_CASE("select on the engine: what a second thread has read is watched as well") {
  EngineRoom room;
  constexpr int kDevices = 70;  // so many are shared at once
  for (int i = 0; i < kDevices; ++i) room.fill("d" + std::to_string(i), 0, 900, tenth);
  REQUIRE(room.engine->flush().ok());
  SharedQuestion shared;
  const auto rows = shared.ask(room, "SELECT mean(value) FROM m WHERE time < " +
                                         std::to_string(kStart + 1'000 * kSecond) +
                                         " GROUP BY time(10s), device");
  influxql::SeriesHead head;
  influxql::NumberRows many;
  const auto take_all = [&] {
    while (rows->next_rows(many).value()) {
    }
    std::vector<influxql::Cell> row;
    while (rows->next_row(row).value()) {
    }
  };
  while (shared.asked == 0) {
    REQUIRE(rows->next_series(head).value());
    take_all();
  }
  // The next one is the second thread's.
  REQUIRE(rows->next_series(head).value());
  take_all();
  CHECK_FALSE(rows->is_given_revoked());
  REQUIRE(head.tags.size() == 1);
  room.erase(head.tags.front().second, 0, 900);
  CHECK(rows->is_given_revoked());
}

namespace {

// Does something between two series of an answer, once `left` of them are begun.
struct Interrupting final : Patience {
  int left = 0;
  std::function<void()> act;
  Status go_on() override {
    if (left-- == 0) act();
    return ok();
  }
};

}  // namespace

// Where there are so many series, each is read to its end and closed before the next one begins.
TEST_CASE("select on the engine: what is erased between two turns is not in the answer, or told") {
  EngineRoom room;
  constexpr int kDevices = 70;
  constexpr int kCount = 50;
  for (int i = 0; i < kDevices; ++i) room.fill("d" + std::to_string(i), 0, kCount, tenth);
  std::int64_t count = kDevices * kCount;
  std::int64_t erased[kDevices] = {};
  int given = 0, passed_over = 0;
  for (const bool is_flushed : {false, true}) {
    if (is_flushed) REQUIRE(room.engine->flush().ok());
    for (const int device : {0, 10, 35, 69}) {
      for (const int at : {1, 2, 40, kDevices - 1}) {
        const std::string name = "d" + std::to_string(device);
        CAPTURE(name);
        CAPTURE(at);
        CAPTURE(is_flushed);
        const std::int64_t first_s = erased[device]++;
        Interrupting turns;
        turns.left = at;
        turns.act = [&] { room.erase(name, first_s, first_s + 1); };
        query::Reach reach;
        reach.patience = &turns;
        auto statements = influxql::parse_statements("SELECT count(value) FROM m", 1);
        REQUIRE(statements.ok());
        const influxql::Asking asking{room.principal, "default", {}, {}, &reach, kStart, {}};
        const auto rows =
            influxql::run_select(std::move(statements->front().select), asking, *room.service);
        REQUIRE(rows.ok());
        influxql::SeriesHead head;
        std::vector<influxql::Cell> row;
        REQUIRE((*rows)->next_series(head).value());
        REQUIRE((*rows)->next_row(row).value());
        REQUIRE(turns.left < 0);
        const bool has_it = row[1].integer == count;
        --count;
        CHECK((*rows)->is_given_revoked() == has_it);
        if (!has_it) CHECK(row[1].integer == count);
        ++(has_it ? given : passed_over);
        CHECK((*rows)->take_given().is_revoked() == has_it);
      }
    }
  }
  CHECK(given > 4);
  CHECK(passed_over > 4);
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
      // Many windows of a group, which is read.
      const std::string short_windows[] = {"GROUP BY time(10s), device",
                                           "GROUP BY time(7s, 2s), device fill(none)",
                                           "GROUP BY time(1m), device fill(previous)",
                                           "GROUP BY time(3s), device fill(-5) ORDER BY time DESC",
                                           "GROUP BY time(90s), device fill(0)",
                                           "GROUP BY time(1m)"};
      const std::string& function = kFunctions[random.below(kFunctions.size())];
      groups += compare(room, function, where, groupings[random.below(std::size(groupings))]);
      groups +=
          compare(room, function, where, short_windows[random.below(std::size(short_windows))]);
    }
  }
  CHECK(groups > 0);
}
