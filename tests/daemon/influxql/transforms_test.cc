#include "influxql/function_streams.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct TransformCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("transforms: of points and of windows, in both orders of time") {
  for (const TransformCase& each : std::vector<TransformCase>{
           {"select derivative(v) from m",
            "20: 0.15; 25: -0.8; 70: 0.2; 80: 0; 85: -1.5; 200: 0.0130434783; 215: 0.333333333; "
            "230: -0.0666666667"},
           {"select derivative(i,1m) from m",
            "20: -12; 25: 84; 80: -5.45454545; 85: -12; 200: -0.52173913; 215: -4; 230: 28"},
           {"select derivative(v,1m) from m order by time desc",
            "215: 4; 200: -20; 85: -0.782608696; 80: 90; 70: 0; 25: -12; 20: 48; 10: -3"},
           {"select non_negative_derivative(v,1m) from m",
            "20: 9; 70: 12; 80: 0; 200: 0.782608696; 215: 20"},
           {"select difference(v) from m",
            "20: 1.5; 25: -4; 70: 9; 80: 0; 85: -7.5; 200: 1.5; 215: 5; 230: -1"},
           {"select difference(i) from m",
            "20: -2; 25: 7; 80: -5; 85: -1; 200: -1; 215: -1; 230: 7"},
           {"select non_negative_difference(v) from m", "20: 1.5; 70: 9; 80: 0; 200: 1.5; 215: 5"},
           {"select difference(v) from m order by time desc",
            "215: 1; 200: -5; 85: -1.5; 80: 7.5; 70: 0; 25: -9; 20: 4; 10: -0.5"},
           {"select moving_average(v,3) from m",
            "20: 2.33333333; 25: 1.5; 70: 3.33333333; 80: 5; 85: 5.5; 200: 3.5; 215: 3.16666667; "
            "230: 5"},
           {"select moving_average(i,2) from m",
            "10: 5.5; 20: 4.5; 25: 5.5; 80: 6.5; 85: 3.5; 200: 2.5; 215: 1.5; 230: 4.5"},
           {"select moving_average(i,20) from m", ""},
           {"select cumulative_sum(v) from m",
            "10: 1.5; 10: 4; 20: 7; 25: 6; 70: 14; 80: 22; 85: 22.5; 200: 24.5; 215: 31.5; 230: "
            "37.5"},
           {"select cumulative_sum(i) from m order by time desc",
            "230: 8; 215: 9; 200: 11; 85: 14; 80: 18; 25: 27; 20: 29; 10: 36; 10: 40"},
           {"select elapsed(v) from m",
            "10: 0; 20: 10000000000; 25: 5000000000; 70: 45000000000; 80: 10000000000; 85: "
            "5000000000; 200: 115000000000; 215: 15000000000; 230: 15000000000"},
           {"select elapsed(v,1s) from m order by time desc",
            "215: -15; 200: -15; 85: -115; 80: -5; 70: -10; 25: -45; 20: -5; 10: -10; 10: 0"},
           {"select elapsed(s,1s) from m",
            "10: 0; 20: 10; 25: 5; 80: 55; 85: 5; 200: 115; 215: 15; 230: 15"},
           {"select derivative(mean(v),1m) from m where time>=60s and time<300s group by time(1m)",
            "60: 4; 180: -0.25"},
           {"select derivative(mean(v),1m) from m where time>=60s and time<300s group by time(1m) "
            "fill(0)",
            "60: 4; 120: -5.5; 180: 5; 240: -5"},
           {"select derivative(mean(v),1m) from m where time>=60s and time<300s group by time(1m) "
            "fill(previous)",
            "60: 4; 120: 0; 180: -0.5; 240: 0"},
           {"select derivative(mean(v)) from m where time>=90s and time<300s group by time(1m) "
            "fill(linear)",
            "120: -0.25; 180: -0.25"},
           {"select derivative(mean(v),1m), mean(v) from m where time>=90s and time<300s group by "
            "time(1m) order by time desc",
            "240: null null; 180: null 5; 120: null null; 60: null null"},
           {"select difference(mean(v)) from m where time>=0s and time<300s group by time(1m) "
            "order by time desc",
            "60: 0.5; 0: -4"},
           {"select moving_average(mean(v),2) from m where time>=60s and time<300s group by "
            "time(1m)",
            "60: 3.5; 180: 5.25"},
           {"select moving_average(mean(v),3) from m where time>=120s and time<300s group by "
            "time(1m) fill(0)",
            "180: 3.5; 240: 1.66666667"},
           {"select cumulative_sum(count(v)) from m where time>=60s and time<300s group by "
            "time(1m)",
            "60: 3; 120: 3; 180: 6; 240: 6"},
           {"select elapsed(max(v),1s) from m where time>=60s and time<300s group by time(1m)",
            "60: 60; 180: 120"},
           {"select derivative(stddev(v)) from m where time>=0 and time<300s group by time(20s)",
            "20: 2.12132034; 60: nan; 80: nan; 200: -0.294627825; 220: nan"},
           {"select derivative(derivative(mean(v))) from m where time>=0 and time<300s group by "
            "time(1m)",
            "180: -2.125"},
           {"select moving_average(derivative(mean(v),1m),2) from m where time>=0 and time<300s "
            "group by time(1m)",
            "180: 1.875"},
           {"select cumulative_sum(difference(mean(v))) from m where time>=0 and time<300s group "
            "by time(1m)",
            "60: 4; 180: 3.5"},
           {"select difference(distinct(v)) from m where time>=0 and time<300s group by time(1m)",
            "60: 6.5; 180: -6"},
           {"select difference(percentile(v,50)) from m where time>=0 and time<300s group by "
            "time(1m)",
            "60: 6.5; 180: -2"},
           {"select difference(count(distinct(v))) from m where time>=0 and time<300s group by "
            "time(1m)",
            "0: 4; 60: -2; 120: -2; 180: 3; 240: -3"},
           {"select difference(integral(v)) from m where time>=0 and time<300s group by time(1m)",
            "60: 76.7391304; 180: 86.5217391"},
           {"select integral(v) from m", "0: 600"},
           {"select integral(v,1m) from m where time>1s", "0: 10"},
           {"select integral(i) from m where time>1s", "1.000000001: 825"},
           {"select integral(v) from m where time>=0 and time<300s group by time(1m)",
            "0: 120; 60: 196.73913; 180: 283.26087"},
           {"select integral(i) from m where time>=0 and time<300s group by time(1m)",
            "0: 331.818182; 60: 265.355731; 180: 317.826087"},
           {"select integral(v) from m where time>=0 and time<300s group by time(1m) order by time "
            "desc",
            "240: -202.391304; 120: -277.608696; 60: -120"},
           {"select integral(i) from m where time>=0 and time<300s group by time(1m) order by time "
            "desc",
            "240: -131.73913; 120: -313.942688; 60: -244.318182"},
           {"select integral(v), mean(v) from m where time>=0 and time<300s group by time(1m) "
            "fill(0)",
            "0: 120 1.5; 60: 196.73913 5.5; 120: 0 0; 180: 283.26087 5; 240: 0 0"},
           {"select integral(v) from m where time=20s", "0: 0"},
           {"select integral(v) from m order by time desc", "0: -600"},
           {"select cumulative_sum(difference(mean(v))) from m where time>=60s and time<300s group "
            "by time(1m)",
            "60: 4; 180: 3.5"},
           {"select moving_average(difference(max(i)),2) from m where time>=90s and time<300s "
            "group by time(20s) fill(0)",
            "80: 2; 100: 0; 120: -2; 140: 0; 160: 0; 180: 0; 200: 1; 220: 4; 240: -1; 260: -4; "
            "280: 0"},
           {"select difference(derivative(last(v))) from m where time>=0s and time<200s group by "
            "time(30s) order by time desc",
            "60: 4.625; 0: -0.375"},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}
