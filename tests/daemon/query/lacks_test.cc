// Windows that cannot be answered have rows that say so, and nothing else has.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/query/engine_room.h"
#include "wire/reading_format.h"

using namespace edgecase;
using test::kRoomSecond;
using test::kRoomStart;

namespace {

struct LackRoom : test::EngineRoom {
  // "HH:MM VALUE TYPE" of each row.
  std::vector<std::string> ask(const wire::QueryRequest& request) {
    std::vector<std::string> rows;
    auto cursor = service->query(principal, request);
    REQUIRE(cursor.ok());
    wire::ReadingFormatter csv(wire::ReadingFormat::Csv), json(wire::ReadingFormat::Ndjson);
    wire::Reading reading;
    for (;;) {
      const auto more = (*cursor)->next(reading);
      if (!more.ok()) rows.push_back(more.status().to_string());
      if (!more.ok() || !*more) break;
      std::string line, object;
      csv.reading(reading, line);
      json.reading(reading, object);
      const bool is_lacking = reading.lack != wire::Lack::Nothing;
      CHECK((object.find("\"value\":null,\"type\":\"") != std::string::npos) == is_lacking);
      line.pop_back();
      const std::size_t time = line.find('T');
      rows.push_back(line.substr(time + 1, 5) + " " + line.substr(line.find(',', time) + 1));
    }
    left_out = *(*cursor)->left_out();
    return rows;
  }

  query::LeftOut left_out;
};

wire::QueryRequest windows_of(std::int64_t every_s) {
  wire::QueryRequest request;
  request.aggregate = wire::Aggregate::Count;
  request.every_ns = every_s * kRoomSecond;
  request.from_ns = kRoomStart + 1'800 * kRoomSecond;
  request.lacks_to_ns = kRoomStart + 86'400 * kRoomSecond;
  return request;
}

wire::Value some_value(int i) {
  return wire::Value::of_float64(static_cast<double>(i * 7'919 % 10'007) / 7);
}

}  // namespace

TEST_CASE("lacks: without the values drive windows that need it are rows without a value") {
  LackRoom room;
  room.fill("a", 0, 3 * 3'600, some_value);
  REQUIRE(room.engine->flush().ok());
  wire::QueryRequest request = windows_of(3'600);
  const std::vector<std::string> whole = room.ask(request);
  CHECK(whole == std::vector<std::string>{"14:00 1800,int", "15:00 3600,int", "16:00 3600,int"});
  room.restart();
  room.disk.set_gone("/v", true);
  const std::vector<std::string> away{"14:00 ,unavailable", "15:00 3600,int", "16:00 3600,int"};
  CHECK(room.ask(request) == away);
  REQUIRE(room.left_out.named().size() == 1);
  CHECK(room.left_out.status().code() == StatusCode::Unavailable);
  request.descending = true;
  CHECK(room.ask(request) == std::vector<std::string>(away.rbegin(), away.rend()));
  // Every window needs values. Of the rows before the end of what is stored none is missing.
  request = windows_of(600);
  const std::vector<std::string> all = room.ask(request);
  CHECK(all.size() == 15);
  CHECK(all.front() == "14:30 ,unavailable");
  CHECK(all.back() == "16:50 ,unavailable");
  request.descending = true;
  CHECK(room.ask(request) == std::vector<std::string>(all.rbegin(), all.rend()));
  request.limit = 2;
  CHECK(room.ask(request).size() == 2);
  // The whole range as one window.
  request = windows_of(0);
  CHECK(room.ask(request) == std::vector<std::string>{"14:30 ,unavailable"});
  request.aggregate = wire::Aggregate::MinMax;
  CHECK(room.ask(request) == std::vector<std::string>{"14:30 ,unavailable"});
  // Rows without a value are nothing that everybody knows.
  request = windows_of(3'600);
  request.lacks_to_ns.reset();
  const std::vector<std::string> refused = room.ask(request);
  REQUIRE(refused.size() == 1);
  CHECK(refused.front().find("error") != std::string::npos);
  room.disk.set_gone("/v", false);
  CHECK(room.ask(windows_of(3'600)) == whole);
}

TEST_CASE("lacks: a window with a damaged group is damaged, the rest is answered") {
  LackRoom room;
  room.fill("a", 0, 3 * 3'600, some_value);
  room.fill("z", 0, 3 * 3'600, some_value);
  REQUIRE(room.engine->flush().ok());
  room.restart();
  for (const auto& file : room.disk.durable_contents()) {
    if (file.first.ends_with(".val")) room.disk.flip_bit(file.first, file.second.size() / 2, 3);
  }
  std::size_t damaged = 0;
  for (const auto aggregate : {wire::Aggregate::Stddev, wire::Aggregate::Count}) {
    CAPTURE(static_cast<int>(aggregate));
    wire::QueryRequest request = windows_of(3'600);
    request.from_ns = kRoomStart;
    request.aggregate = aggregate;
    const std::vector<std::string> rows = room.ask(request);
    CHECK(rows.size() == 6);
    const auto count = std::count_if(
        rows.begin(), rows.end(), [](const std::string& row) { return row.ends_with(",damaged"); });
    if (aggregate == wire::Aggregate::Count) {
      CHECK(count == 0);  // it needs no value
    } else {
      CHECK(count >= 1);
      CHECK(count < 6);
      CHECK(room.left_out.status().code() == StatusCode::Corruption);
      damaged = static_cast<std::size_t>(count);
    }
  }
  CHECK(damaged > 0);
}
