#include "influxql/function_streams.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct FillCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("fill: windows without values, from the first of what is answered to the last") {
  for (const FillCase& each : std::vector<FillCase>{
           {"select mean(v) from m where time>=0 and time<300s group by time(1m)",
            "0: 1.5; 60: 5.5; 120: null; 180: 5; 240: null"},
           {"select mean(v), count(i) from m where time>=0 and time<300s group by time(1m) order "
            "by time desc",
            "240: null 0; 180: 5 3; 120: null 0; 60: 5.5 2; 0: 1.5 4"},
           {"select mean(v) from m where time>=0 and time<300s group by time(1m) fill(none)",
            "0: 1.5; 60: 5.5; 180: 5"},
           {"select count(v), mean(v) from m where time>=0 and time<300s group by time(1m) "
            "fill(previous)",
            "0: 4 1.5; 60: 3 5.5; 120: 3 5.5; 180: 3 5; 240: 3 5"},
           {"select mean(v), sum(i), first(s) from m where time>=0 and time<300s group by time(1m) "
            "fill(linear)",
            "0: 1.5 22 'y'; 60: 5.5 7 'x'; 120: 5.25 9 null; 180: 5 11 'b'; 240: null null null"},
           {"select mean(v) from m where time>=0 and time<300s group by time(30s) fill(linear)",
            "0: 1.5; 30: 3.5; 60: 5.5; 90: 4.625; 120: 3.75; 150: 2.875; 180: 2; 210: 6.5; 240: "
            "null; 270: null"},
           {"select sum(v) from m where time>=0 and time<300s group by time(1m) fill(-3)",
            "0: 6; 60: 16.5; 120: -3; 180: 15; 240: -3"},
           {"select first(b), mean(v), sum(i), first(s) from m where time>=0 and time<300s group "
            "by time(1m) fill(5.7)",
            "0: false 1.5 22 'y'; 60: false 5.5 7 'x'; 120: false 5.7 5 ''; 180: false 5 11 'b'; "
            "240: false 5.7 5 ''"},
           {"select stddev(v), mean(v) from m where time>=20s and time<140s group by time(20s) "
            "fill(previous)",
            "20: 2.82842712 1; 40: 2.82842712 1; 60: nan 8; 80: 5.30330086 4.25; 100: 5.30330086 "
            "4.25; 120: 5.30330086 4.25"},
           {"select mean(v) from m where time<300s group by time(1m)",
            "0: 1.5; 60: 5.5; 120: null; 180: 5; 240: null"},
           {"select count(v) from m where time<300s group by time(1m) order by time desc",
            "240: 0; 180: 3; 120: 0; 60: 3; 0: 4"},
           {"select mean(v) from m where time >=0 and time < 300s group by time(1m,20s)",
            "-40: 2; 20: 3.33333333; 80: 4.25; 140: null; 200: 5; 260: null"},
           {"select mean(v) from m where time >=0 and time < 300s group by time(1m,-20s)",
            "-20: 1.5; 40: 5.5; 100: null; 160: 4.5; 220: 6; 280: null"},
           {"select mean(v) from m where time >=0 and time < 300s group by time(1m,20s) order by "
            "time desc",
            "260: null; 200: 5; 140: null; 80: 4.25; 20: 3.33333333; -40: 2"},
           {"select count(v) from m where time >= 1000s and time < 1300s group by time(1m)", ""},
           {"select count(s), count(b) from m where time<300s group by time(20s) order by time "
            "desc",
            "280: 0 0; 260: 0 0; 240: 0 0; 220: 1 0; 200: 2 2; 180: 0 0; 160: 0 0; 140: 0 0; 120: "
            "0 0; 100: 0 0; 80: 2 1; 60: 0 1; 40: 0 0; 20: 2 1; 0: 2 2"},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}
