// Fields of a device side by side, on the engine: what formulas, conditions and functions make of
// them many at once is what they make of them one by one.
#include <doctest/doctest.h>

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

struct JoinedRoom : test::EngineRoom {
  using test::EngineRoom::EngineRoom;

  // Lines of one host, a reading each `step_s`; `fields(i)` are those of step i.
  template <typename Fields>
  void write(const std::string& host, std::int64_t from_s, int count, std::int64_t step_s,
             const Fields& fields) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const std::string values = fields(i);
      if (values.empty()) continue;
      const std::int64_t time_ns = test::kRoomStart + (from_s + i * step_s) * test::kRoomSecond;
      lines += "m,host=" + host + " " + values + " " + std::to_string(time_ns) + "\n";
    }
    wire::LineProtocolOptions of_lines;
    of_lines.namespace_name = "default";
    wire::LineProtocolDecoder decoder(lines, of_lines);
    wire::ReadingBatch batch;
    while (decoder.next(batch)) {
      const auto authorized = auth::authorize_write(principal, batch);
      REQUIRE(authorized.ok());
      const Status status = pipeline->ingest(*authorized);
      REQUIRE_MESSAGE(status.ok(), status.to_string());
      batch.clear();
    }
    REQUIRE(decoder.bad_lines() == 0);
  }

  std::vector<std::string> ask(const std::string& text, bool by_row = false) {
    auto statements = influxql::parse_statements(text, 1);
    REQUIRE_MESSAGE(statements.ok(), statements.status().to_string());
    const influxql::Asking asking{principal, "default", {}, {}, nullptr, test::kRoomStart, {}};
    auto rows = influxql::run_select(std::move(statements->front().select), asking, *service);
    REQUIRE_MESSAGE(rows.ok(), rows.status().to_string());
    std::string answer;
    const Status status = test::SelectRoom::append_rows(**rows, answer, by_row);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    std::istringstream parts(answer);
    std::vector<std::string> words;
    for (std::string word; parts >> word;) words.push_back(word);
    return words;
  }
};

// Sums of several series may differ by rounding.
void check_alike(const std::vector<std::string>& got, const std::vector<std::string>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    CAPTURE(i);
    const double a = std::strtod(got[i].c_str(), nullptr);
    const double b = std::strtod(want[i].c_str(), nullptr);
    const bool is_number = got[i].find('.') != std::string::npos;
    CHECK_MESSAGE(is_number, got[i], " ", want[i]);
    CHECK_MESSAGE(std::fabs(a - b) <= 1e-12 * (std::fabs(b) + 1), got[i], " ", want[i]);
  }
}

std::string some_fields(SeededRandom& random, const std::string& host, unsigned which, int i) {
  std::string fields;
  const auto add = [&](const std::string& field) { fields += (fields.empty() ? "" : ",") + field; };
  if ((which & 1) != 0) add("x=" + std::to_string(random.below(4'000)) + ".25");
  if ((which & 2) != 0) add("y=" + std::to_string(static_cast<int>(random.below(9)) - 4) + ".5");
  if ((which & 4) != 0) add("z=" + std::to_string(random.below(12)) + "i");
  // A field that some hosts do not have, and one that is a text now and then.
  if ((which & 8) != 0 && host != "b") add("w=" + std::to_string(i % 7) + ".0");
  if ((which & 16) != 0) add(i % 50 == 7 ? "s=\"late\"" : "s=\"early\"");
  return fields;
}

}  // namespace

TEST_CASE("select on the engine: joined many at once, fields are what they are one by one") {
  const std::uint64_t first = test::test_seed(20261201);
  std::size_t words = 0;
  for (std::uint64_t run = 0; run < test::seeds_of(5, 1); ++run) {
    const std::uint64_t seed = first + run;
    CAPTURE(seed);
    SeededRandom random(seed);
    JoinedRoom room(random.below(2) == 0);
    for (int step = 0; step < 16; ++step) {
      CAPTURE(step);
      const std::string host(1, static_cast<char>('a' + random.below(3)));
      const auto from_s = static_cast<std::int64_t>(random.below(9'000));
      switch (random.below(8)) {
        case 0: REQUIRE(room.engine->compact({}, {}).ok()); break;
        case 1: REQUIRE(room.engine->flush().ok()); break;
        case 2: room.erase(host, from_s, from_s + 500); break;
        case 3: room.restart(); break;
        default: {
          // Mostly all fields of the same times; else some, or each now and then.
          const bool is_odd = random.below(3) == 0;
          const auto all = static_cast<unsigned>(random.below(4) == 0 ? random.below(32) : 31);
          room.write(host, from_s, 1'500, 1 + static_cast<std::int64_t>(random.below(3)),
                     [&](int i) {
                       const auto which = is_odd ? static_cast<unsigned>(random.below(32)) : all;
                       return some_fields(random, host, which, i);
                     });
        }
      }
      room.executor.run_all();
      if (step % 4 != 3) continue;
      for (const std::string text :
           {"SELECT x, y FROM m GROUP BY host",
            "SELECT y, w, z FROM m GROUP BY host ORDER BY time DESC",
            "SELECT x + y, y / z, x, x FROM m WHERE z > 3 GROUP BY host",
            "SELECT x * 2 FROM m WHERE x > 900 AND (y < 0 OR z != 3) GROUP BY host ORDER BY time "
            "DESC",
            "SELECT abs(y), w FROM m WHERE host != 'b' AND y >= w GROUP BY host",
            "SELECT x, s FROM m WHERE s = 'late' GROUP BY host",
            "SELECT z, host FROM m WHERE w > 2",
            "SELECT y - 1 FROM m WHERE s != 'late' AND x < 3000 GROUP BY host"}) {
        CAPTURE(text);
        const std::vector<std::string> many = room.ask(text);
        CHECK(many == room.ask(text, true));
        words += many.size();
      }
      // The first value of each series tells both; in brackets all are looked at.
      for (const std::string edges : {"last(x), last(y)", "first(x), first(w), first(z)", "last(z)",
                                      "last(s), last(w)", "first(y)"}) {
        for (const std::string groups :
             {"", " GROUP BY host", " GROUP BY host ORDER BY time DESC"}) {
          CAPTURE(edges);
          CAPTURE(groups);
          const std::string order =
              groups.find("DESC") == std::string::npos ? "" : " ORDER BY time DESC";
          check_alike(room.ask("SELECT " + edges + " FROM m" + groups),
                      room.ask("SELECT " + edges + " FROM (SELECT w, x, y, z, s FROM m" + order +
                               ")" + groups));
        }
      }
      for (const std::string functions :
           {"mean(q), max(r), count(q)", "first(q), last(r), spread(q)",
            "median(q), stddev(r), min(q)"}) {
        for (const std::string groups :
             {"", " GROUP BY host", " GROUP BY time(10m)",
              " GROUP BY time(7m), host fill(none) ORDER BY time DESC"}) {
          for (const std::string inside :
               {"SELECT x / z AS q, y AS r FROM m",
                "SELECT x AS q, w AS r FROM m WHERE y > -2 AND z > 1",
                "SELECT z AS q, z AS r FROM m WHERE s = 'early'", "SELECT y AS q, x AS r FROM m"}) {
            const std::string around = "SELECT " + functions + " FROM (" + inside;
            // Rows that are counted are taken one by one.
            const std::string order =
                groups.find("DESC") == std::string::npos ? "" : " ORDER BY time DESC";
            CAPTURE(around);
            CAPTURE(groups);
            check_alike(room.ask(around + order + ")" + groups),
                        room.ask(around + order + " LIMIT 1000000)" + groups));
          }
        }
      }
    }
  }
  CHECK(words > 0);
}
