#include "influxql/function_streams.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct SelectorCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("selectors: the chosen point comes with its time and its other values") {
  for (const SelectorCase& each : std::vector<SelectorCase>{
           {"select max(v), host from m", "70: 8 'a'"},
           {"select min(v), host, s, i from m", "25: -1 'b' 'z' 9"},
           {"select max(v), min(v), first(v), last(v) from m", "0: 8 -1 2.5 6"},
           {"select max(v), min(v) from m where time >= 5s", "5: 8 -1"},
           {"select max(v) from m where time >= 5s order by time desc", "70: 8"},
           {"select first(s), last(b), max(b), min(b), first(b) from m where time>=0 and time<300s "
            "group by time(1m)",
            "0: 'y' true true false false; 60: 'x' true true false false; 120: null null null null "
            "null; 180: 'b' false false false false; 240: null null null null null"},
           {"select max(v), host, s from m where time>=0 and time<300s group by time(1m)",
            "0: 3 'a' 'x'; 60: 8 'a' null; 120: null null null; 180: 7 'b' 'y'; 240: null null "
            "null"},
           {"select max(v), host, s from m where time>=0 and time<300s group by time(1m) "
            "fill(previous)",
            "0: 3 'a' 'x'; 60: 8 'a' 'x'; 120: 8 'a' 'x'; 180: 7 'b' 'y'; 240: 7 'b' 'y'"},
           {"select max(v), host, s, i, b from m where time>=0 and time<300s group by time(1m) "
            "fill(7)",
            "0: 3 'a' 'x' 2 7; 60: 8 'a' 7 7 false; 120: 7 7 7 7 7; 180: 7 'b' 'y' 1 false; 240: 7 "
            "7 7 7 7"},
           {"select percentile(v,50) from m", "10: 2.5"},
           {"select percentile(v,50), host from m", "10: 2.5 'b'"},
           {"select percentile(v,50), mean(v) from m", "0: 2.5 3.75"},
           {"select percentile(i,90) from m where time>=0 and time<300s group by time(1m)",
            "0: 9; 60: 4; 120: null; 180: 8; 240: null"},
           {"select percentile(v,0) from m", ""},
           {"select percentile(v,101) from m", "80: 8"},
           {"select percentile(v,104) from m", "80: 8"},
           {"select percentile(v,106) from m", ""},
           {"select percentile(v,4) from m where time>=0 and time<300s group by time(1m) fill(0)",
            ""},
           {"select top(v,3) from m", "70: 8; 80: 8; 215: 7"},
           {"select top(v,3) from m order by time desc", "70: 8; 80: 8; 215: 7"},
           {"select top(v,3), i, host from m", "70: 8 null 'a'; 80: 8 4 'a'; 215: 7 1 'b'"},
           {"select top(v,host,3) from m", "70: 8 'a'; 215: 7 'b'"},
           {"select top(v,host,3), s from m", "70: 8 'a' null; 215: 7 'b' 'y'"},
           {"select bottom(v,host,1) from m", "25: -1 'b'"},
           {"select bottom(v,2) from m where time>=0 and time<300s group by time(1m)",
            "10: 1.5; 25: -1; 70: 8; 85: 0.5; 200: 2; 230: 6"},
           {"select top(v,2), s from m where time>=0 and time<300s group by time(1m) order by time "
            "desc",
            "215: 7 'y'; 230: 6 'y'; 70: 8 null; 80: 8 'x'; 10: 2.5 'y'; 20: 3 'x'"},
           {"select top(v,host,2) from m where time>=0 and time<300s group by time(1m) fill(0)",
            "10: 2.5 'b'; 20: 3 'a'; 70: 8 'a'; 85: 0.5 'b'; 200: 2 'a'; 215: 7 'b'"},
           {"select top(v,i,2) from m", "70: 8 null"},
           {"select sample(v,100) from m",
            "10: 1.5; 10: 2.5; 20: 3; 25: -1; 70: 8; 80: 8; 85: 0.5; 200: 2; 215: 7; 230: 6"},
           {"select sample(v,100), host from m",
            "10: 1.5 'a'; 10: 2.5 'b'; 20: 3 'a'; 25: -1 'b'; 70: 8 'a'; 80: 8 'a'; 85: 0.5 'b'; "
            "200: 2 'a'; 215: 7 'b'; 230: 6 'b'"},
           {"select sample(v,100), mean(v) from m",
            "0: null 3.75; 10: 1.5 null; 10: 2.5 null; 20: 3 null; 25: -1 null; 70: 8 null; 80: 8 "
            "null; 85: 0.5 null; 200: 2 null; 215: 7 null; 230: 6 null"},
           {"select sample(s,100) from m where time>=0 and time<300s group by time(1m) order by "
            "time desc",
            "200: 'b'; 215: 'y'; 230: 'y'; 80: 'x'; 85: 'a'; 10: 'x'; 10: 'y'; 20: 'x'; 25: 'z'"},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}
