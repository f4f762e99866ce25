#include "influxql/functions.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct FunctionCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("functions: beside each other, rows of one time are one row") {
  for (const FunctionCase& each : std::vector<FunctionCase>{
           {"select difference(i), cumulative_sum(v), mean(v) from m",
            "0: null null 3.75; 10: null 1.5 null; 10: null 4 null; 20: -2 7 null; 25: 7 6 null; "
            "70: null 14 null; 80: -5 22 null; 85: -1 22.5 null; 200: -1 24.5 null; 215: -1 31.5 "
            "null; 230: 7 37.5 null"},
           {"select difference(i), cumulative_sum(v), mean(v) from m limit 2",
            "0: null null 3.75; 10: null 1.5 null; 10: null 4 null; 20: -2 null null; 25: 7 null "
            "null"},
           {"select difference(i), cumulative_sum(v), mean(v) from m limit 2 offset 1",
            "10: null 4 null; 20: null 7 null; 25: 7 null null; 80: -5 null null"},
           {"select difference(i), cumulative_sum(v), mean(v) from m fill(previous)",
            "0: null null 3.75; 10: null 1.5 3.75; 10: null 4 3.75; 20: -2 7 3.75; 25: 7 6 3.75; "
            "70: 7 14 3.75; 80: -5 22 3.75; 85: -1 22.5 3.75; 200: -1 24.5 3.75; 215: -1 31.5 "
            "3.75; 230: 7 37.5 3.75"},
           {"select difference(i), cumulative_sum(v), mean(v), sum(i) from m where time>1s fill(9)",
            "1.000000001: 9 9 3.75 40; 10: 9 1.5 9 9; 10: 9 4 9 9; 20: -2 7 9 9; 25: 7 6 9 9; 70: "
            "9 14 9 9; 80: -5 22 9 9; 85: -1 22.5 9 9; 200: -1 24.5 9 9; 215: -1 31.5 9 9; 230: 7 "
            "37.5 9 9"},
           {"select count(v), count(nofield), mean(nofield), max(nofield) from m",
            "0: 10 null null null"},
           {"select count(v), count(nofield), mean(nofield), max(nofield), max(host), count(host) "
            "from m fill(3)",
            "0: 10 3 3 null 3 3"},
           {"select count(nofield) from m", ""},
           {"select max(host) from m", ""},
           {"select derivative(mean(v),1m), mean(v), count(i) from m where time>=60s and time<300s "
            "group by time(1m) limit 2",
            "60: 4 5.5 2; 120: null null 0; 180: -0.25 null null"},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}

TEST_CASE("functions: what they hold, and how many windows they make up, is bounded") {
  const std::string held = "ERR a statement may hold 200 bytes of values at once";
  for (const std::string call :
       {"median(v), percentile(v, 50)", "mode(i), mode(v)", "distinct(s)", "top(v, 5)",
        "bottom(v, host, 9)", "sample(i, 9)", "moving_average(v, 9), moving_average(i, 9)",
        "difference(v), mean(v)"}) {
    CHECK_MESSAGE(rows_of(question_points(), "SELECT " + call + " FROM m", 200).starts_with(held),
                  call);
  }
  CHECK(rows_of(question_points(), "SELECT sum(v), last(s) FROM m", 200) == "0: 37.5 'y'");
  // The gap behind the first second is counted before it is made.
  for (const std::string call : {"mean(v)", "difference(mean(v))", "count(s), elapsed(max(i))"}) {
    const std::string said = rows_of(
        question_points(),
        "SELECT " + call + " FROM m WHERE time > 0 AND time < 300s GROUP BY time(1u) fill(0)");
    CHECK_MESSAGE(said.starts_with("ERR max-select-buckets limit exceeded: (1000000"), said);
    CHECK_MESSAGE(said.ends_with("/100000); limits.query-windows is 100000"), said);
  }
}

TEST_CASE("functions: what no point was read for has no rows") {
  for (const std::string call : {"count(v)", "distinct(v)", "top(v, 2)", "difference(v)",
                                 "integral(v)", "sample(v, 2)", "median(v), mode(i)"}) {
    CHECK_MESSAGE(rows_of({}, "SELECT " + call + " FROM m").empty(), call);
  }
}
