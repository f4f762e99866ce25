#include "influxql/functions.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/influxql/function_question.h"

using namespace edgecase;
using influxql::question_points;
using influxql::rows_of;

namespace {

struct CallCase {
  std::string statement, answer;
};

}  // namespace

TEST_CASE("calls: what cannot be answered is refused in the words of influxd") {
  for (const CallCase& each : std::vector<CallCase>{
           {"select mean(s) from m",
            "ERR unsupported mean iterator type: *query.stringInterruptIterator"},
           {"select mean(b) from m",
            "ERR unsupported mean iterator type: *query.booleanInterruptIterator"},
           {"select min(s) from m",
            "ERR unsupported min iterator type: *query.stringInterruptIterator"},
           {"select sum(b) from m",
            "ERR unsupported sum iterator type: *query.booleanInterruptIterator"},
           {"select stddev(s) from m",
            "ERR unsupported stddev iterator type: *query.stringInterruptIterator"},
           {"select median(b) from m",
            "ERR unsupported median iterator type: *query.booleanInterruptIterator"},
           {"select spread(s) from m",
            "ERR unsupported spread iterator type: *query.stringInterruptIterator"},
           {"select percentile(s,50) from m",
            "ERR unsupported percentile iterator type: *query.stringInterruptIterator"},
           {"select top(s,2) from m",
            "ERR unsupported top iterator type: *query.stringInterruptIterator"},
           {"select top(s,host,2) from m",
            "ERR unsupported max iterator type: *query.stringInterruptIterator"},
           {"select derivative(s) from m",
            "ERR unsupported derivative iterator type: *query.stringInterruptIterator"},
           {"select non_negative_derivative(b) from m",
            "ERR unsupported derivative iterator type: *query.booleanInterruptIterator"},
           {"select difference(b) from m",
            "ERR unsupported difference iterator type: *query.booleanInterruptIterator"},
           {"select moving_average(s,2) from m",
            "ERR unsupported moving average iterator type: *query.stringInterruptIterator"},
           {"select cumulative_sum(s) from m",
            "ERR unsupported cumulative sum iterator type: *query.stringInterruptIterator"},
           {"select integral(s) from m",
            "ERR unsupported integral iterator type: *query.stringInterruptIterator"},
           {"select moving_average(distinct(s),2) from m where time>=0 and time<300s group by "
            "time(1m)",
            "ERR unsupported moving average iterator type: *query.stringIntervalIterator"},
           {"select derivative(first(s)) from m where time>=0 and time<300s group by time(1m)",
            "ERR unsupported derivative iterator type: *query.stringInterruptIterator"},
           {"select mean(v,2) from m",
            "ERR invalid number of arguments for mean, expected 1, got 2"},
           {"select mean() from m", "ERR invalid number of arguments for mean, expected 1, got 0"},
           {"select mean(2) from m", "ERR expected field argument in mean()"},
           {"select mean(max(v)) from m", "ERR expected field argument in mean()"},
           {"select foo(v) from m", "ERR undefined function foo()"},
           {"select top(v) from m",
            "ERR invalid number of arguments for top, expected at least 2, got 1"},
           {"select top(v,0) from m", "ERR limit (0) in top function must be at least 1"},
           {"select distinct() from m", "ERR distinct function requires at least one argument"},
           {"select distinct(v,i) from m", "ERR distinct function can only have one argument"},
           {"select distinct(max(v)) from m", "ERR expected field argument in distinct()"},
           {"select count(distinct()) from m",
            "ERR distinct function requires at least one argument"},
           {"select count(mean(v)) from m", "ERR expected field argument in count()"},
           {"select percentile(v) from m",
            "ERR invalid number of arguments for percentile, expected 2, got 1"},
           {"select percentile(v,'a') from m", "ERR expected float argument in percentile()"},
           {"select percentile(mean(v),5) from m", "ERR expected field argument in percentile()"},
           {"select sample(v) from m",
            "ERR invalid number of arguments for sample, expected 2, got 1"},
           {"select sample(v,0) from m", "ERR sample window must be greater than 1, got 0"},
           {"select sample(v,1.5) from m", "ERR expected integer argument in sample()"},
           {"select derivative() from m",
            "ERR invalid number of arguments for derivative, expected at least 1 but no more than "
            "2, got 0"},
           {"select derivative(v,1,2) from m",
            "ERR invalid number of arguments for derivative, expected at least 1 but no more than "
            "2, got 3"},
           {"select derivative(v,5) from m",
            "ERR second argument to derivative must be a duration, got *influxql.IntegerLiteral"},
           {"select derivative(v,0s) from m", "ERR duration argument must be positive, got 0s"},
           {"select derivative(v,-90s) from m", "ERR duration argument must be positive, got -90s"},
           {"select derivative(v,'a') from m",
            "ERR second argument to derivative must be a duration, got *influxql.StringLiteral"},
           {"select derivative(v,i) from m",
            "ERR second argument to derivative must be a duration, got *influxql.VarRef"},
           {"select derivative(v,1.5) from m",
            "ERR second argument to derivative must be a duration, got *influxql.NumberLiteral"},
           {"select derivative(v,true) from m",
            "ERR second argument to derivative must be a duration, got *influxql.BooleanLiteral"},
           {"select derivative(v,max(i)) from m",
            "ERR second argument to derivative must be a duration, got *influxql.Call"},
           {"select derivative(v,1+i) from m",
            "ERR second argument to derivative must be a duration, got *influxql.BinaryExpr"},
           {"select derivative(mean(v)) from m",
            "ERR derivative aggregate requires a GROUP BY interval"},
           {"select derivative(v) from m group by time(1m)",
            "ERR aggregate function required inside the call to derivative"},
           {"select derivative(5) from m", "ERR expected field argument in derivative()"},
           {"select derivative(v+1) from m", "ERR expected field argument in derivative()"},
           {"select non_negative_derivative(mean(v)) from m",
            "ERR non_negative_derivative aggregate requires a GROUP BY interval"},
           {"select elapsed() from m",
            "ERR invalid number of arguments for elapsed, expected at least 1 but no more than 2, "
            "got 0"},
           {"select elapsed(v,5) from m",
            "ERR second argument to elapsed must be a duration, got *influxql.IntegerLiteral"},
           {"select elapsed(mean(v)) from m", "ERR elapsed aggregate requires a GROUP BY interval"},
           {"select elapsed(v) from m group by time(1m)",
            "ERR aggregate function required inside the call to elapsed"},
           {"select difference(v,1) from m",
            "ERR invalid number of arguments for difference, expected 1, got 2"},
           {"select difference(mean(v)) from m",
            "ERR difference aggregate requires a GROUP BY interval"},
           {"select difference(v) from m group by time(1m)",
            "ERR aggregate function required inside the call to difference"},
           {"select cumulative_sum() from m",
            "ERR invalid number of arguments for cumulative_sum, expected 1, got 0"},
           {"select cumulative_sum(mean(v)) from m",
            "ERR cumulative_sum aggregate requires a GROUP BY interval"},
           {"select moving_average(v) from m",
            "ERR invalid number of arguments for moving_average, expected 2, got 1"},
           {"select moving_average(v,1) from m",
            "ERR moving_average window must be greater than 1, got 1"},
           {"select moving_average(v,2.5) from m",
            "ERR second argument for moving_average must be an integer, got "
            "*influxql.NumberLiteral"},
           {"select moving_average(mean(v),2) from m",
            "ERR moving_average aggregate requires a GROUP BY interval"},
           {"select integral() from m",
            "ERR invalid number of arguments for integral, expected at least 1 but no more than 2, "
            "got 0"},
           {"select integral(v,5) from m", "ERR second argument must be a duration"},
           {"select integral(v,0s) from m", "ERR duration argument must be positive, got 0s"},
           {"select integral(mean(v)) from m", "ERR expected field argument in integral()"},
           {"select v, mean(v) from m",
            "ERR mixing aggregate and non-aggregate queries is not supported"},
           {"select max(v), min(v), v from m",
            "ERR mixing multiple selector functions with tags or fields is not supported"},
           {"select difference(top(v,2)) from m where time>=0 and time<300s group by time(1m)",
            "ERR selector function top() cannot be combined with other functions"},
       }) {
    CHECK_MESSAGE(rows_of(question_points(), each.statement) == each.answer, each.statement);
  }
}
