#include "influxql/function_streams.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct AggregateCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("aggregates: each comes to what influxd makes of the same points") {
  for (const AggregateCase& each : std::vector<AggregateCase>{
           {"select mean(v), count(v), sum(i), mean(i), spread(i), spread(v), stddev(v), "
            "median(v), mode(v), median(i), mode(i) from m",
            "0: 3.75 10 40 4.44444444 8 9 3.2510682 2.75 8 4 4"},
           {"select count(v), count(i), count(b), count(s) from m where time>=0 and time<300s "
            "group by time(1m)",
            "0: 4 4 3 4; 60: 3 2 2 2; 120: 0 0 0 0; 180: 3 3 2 3; 240: 0 0 0 0"},
           {"select mode(s), mode(b), count(distinct(s)), stddev(i) from m where time>=0 and "
            "time<300s group by time(1m)",
            "0: 'x' true 3 3.10912635; 60: 'a' true 2 0.707106781; 120: null null 0 null; 180: 'y' "
            "false 2 3.7859389; 240: null null 0 null"},
           {"select count(distinct v), median(v) from m where time>=0 and time<300s group by "
            "time(1m) fill(none)",
            "0: 4 2; 60: 2 8; 180: 3 6"},
           {"select mean(v) from m where time >= 5s order by time desc", "5: 3.75"},
           {"select stddev(v), spread(v) from m where time=20s", "20: nan 0"},
           {"select distinct(v) from m",
            "0: 1.5; 0: 2.5; 0: 3; 0: -1; 0: 8; 0: 0.5; 0: 2; 0: 7; 0: 6"},
           {"select distinct v from m where time>=5s order by time desc",
            "5: 1.5; 5: 2.5; 5: 3; 5: -1; 5: 8; 5: 0.5; 5: 2; 5: 7; 5: 6"},
           {"select distinct(s) from m where time>=0 and time<300s group by time(1m)",
            "0: 'x'; 0: 'y'; 0: 'z'; 60: 'x'; 60: 'a'; 180: 'b'; 180: 'y'"},
           {"select mean(v) from m where time>=1000s", ""},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}
