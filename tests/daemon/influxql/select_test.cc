// What SELECT answers, beside what influxd 1.6.7 answered to the same lines and statements.
#include <doctest/doctest.h>

#include "daemon/influxql/select_room.h"

using namespace edgecase;
using test::SelectRoom;

namespace {

constexpr std::string_view kLines =
    R"(cpu,host=a,zone=x v=1,n=1i,s="one",b=true 1000000000
cpu,host=a,zone=x v=2.5,n=2i 2000000000
cpu,host=b,zone=x v=3,n=3i,s="three" 1000000000
cpu,host=b,zone=y v=4,b=false 3000000000
cpu,host=c v=5,n=-7i,s="" 2000000000
mem,host=a v=10i,free=5 1000000000
mem,host=b v=20i,free=6 2000000000
mem,host=b free=7 4000000000
disk,path=/ used=1 5000000000
w\ x,my\ tag=q\ r my\ f=1,v="text" 1000000000
)";

struct Case {
  std::string_view statement;
  std::string_view answer;
};

constexpr Case kCases[] = {
    {"SELECT * FROM cpu",
     "cpu time b host n s v zone | 1s true a 1 one 1 x | 1s - b 3 three 3 x | 2s - a 2 - 2.5 x | "
     "2s - c -7  5 - | 3s false b - - 4 y"},
    {"SELECT v FROM cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v, host FROM cpu", "cpu time v host | 1s 1 a | 1s 3 b | 2s 2.5 a | 2s 5 c | 3s 4 b"},
    {"SELECT host FROM cpu", ""},
    {"SELECT *::field FROM cpu",
     "cpu time b n s v | 1s true 1 one 1 | 1s - 3 three 3 | 2s - 2 - 2.5 | 2s - -7  5 | 3s false - "
     "- 4"},
    {"SELECT *::tag, v FROM cpu",
     "cpu time host zone v | 1s a x 1 | 1s b x 3 | 2s a x 2.5 | 2s c - 5 | 3s b y 4"},
    {"SELECT /v|n/ FROM cpu",
     "cpu time n v zone | 1s 1 1 x | 1s 3 3 x | 2s 2 2.5 x | 2s -7 5 - | 3s - 4 y"},
    {"SELECT v AS x, n AS x, v FROM cpu",
     "cpu time x x v | 1s 1 1 1 | 1s 3 3 3 | 2s 2.5 2 2.5 | 2s 5 -7 5 | 3s 4 - 4"},
    {"SELECT v, v FROM cpu", "cpu time v v_1 | 1s 1 1 | 1s 3 3 | 2s 2.5 2.5 | 2s 5 5 | 3s 4 4"},
    {"SELECT v + n FROM cpu", "cpu time v_n | 1s 2 | 1s 6 | 2s 4.5 | 2s -2 | 3s -"},
    {"SELECT v * 2, n / 2, n % 2 FROM cpu",
     "cpu time v n n_1 | 1s 2 0.5 1 | 1s 6 1.5 1 | 2s 5 1 0 | 2s 10 -3.5 -1 | 3s 8 - -"},
    {"SELECT v + n * 2 - 1 AS q FROM cpu", "cpu time q | 1s 2 | 1s 8 | 2s 5.5 | 2s -10 | 3s -"},
    {"SELECT (v) FROM cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT -v FROM cpu", "cpu time v | 1s -1 | 1s -3 | 2s -2.5 | 2s -5 | 3s -4"},
    {"SELECT v FROM cpu WHERE host = 'a'", "cpu time v | 1s 1 | 2s 2.5"},
    {"SELECT v FROM cpu WHERE host != 'a'", "cpu time v | 1s 3 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE host =~ /a|b/", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 3s 4"},
    {"SELECT v FROM cpu WHERE host !~ /a/", "cpu time v | 1s 3 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE zone = ''", "cpu time v | 2s 5"},
    {"SELECT v FROM cpu WHERE zone != ''", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 3s 4"},
    {"SELECT v FROM cpu WHERE v > 2", "cpu time v | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE n > 1", "cpu time v | 1s 3 | 2s 2.5"},
    {"SELECT v FROM cpu WHERE n >= 1 AND host = 'a'", "cpu time v | 1s 1 | 2s 2.5"},
    {"SELECT v FROM cpu WHERE n >= 3 OR host = 'a'", "cpu time v | 1s 1 | 1s 3 | 2s 2.5"},
    {"SELECT v FROM cpu WHERE s = 'three'", "cpu time v | 1s 3"},
    {"SELECT v FROM cpu WHERE b = true", "cpu time v | 1s 1"},
    {"SELECT v FROM cpu WHERE b", "invalid condition expression: b"},
    {"SELECT v FROM cpu WHERE nosuch = 1", ""},
    {"SELECT v FROM cpu WHERE nosuch != 'x'", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE time > 1s", "cpu time v | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE time >= 1s AND time < 3s",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5"},
    {"SELECT v FROM cpu ORDER BY time DESC", "cpu time v | 3s 4 | 2s 5 | 2s 2.5 | 1s 3 | 1s 1"},
    {"SELECT v FROM cpu GROUP BY host",
     "cpu{host=a} time v | 1s 1 | 2s 2.5; cpu{host=b} time v | 1s 3 | 3s 4; cpu{host=c} time v | "
     "2s 5"},
    {"SELECT v FROM cpu GROUP BY host ORDER BY time DESC",
     "cpu{host=c} time v | 2s 5; cpu{host=b} time v | 3s 4 | 1s 3; cpu{host=a} time v | 2s 2.5 | "
     "1s 1"},
    {"SELECT v FROM cpu GROUP BY *",
     "cpu{host=a}{zone=x} time v | 1s 1 | 2s 2.5; cpu{host=b}{zone=x} time v | 1s 3; "
     "cpu{host=b}{zone=y} time v | 3s 4; cpu{host=c}{zone=} time v | 2s 5"},
    {"SELECT v FROM cpu GROUP BY /ho/",
     "cpu{host=a} time v | 1s 1 | 2s 2.5; cpu{host=b} time v | 1s 3 | 3s 4; cpu{host=c} time v | "
     "2s 5"},
    {"SELECT * FROM cpu GROUP BY host",
     "cpu{host=a} time b n s v zone | 1s true 1 one 1 x | 2s - 2 - 2.5 x; cpu{host=b} time b n s v "
     "zone | 1s - 3 three 3 x | 3s false - - 4 y; cpu{host=c} time b n s v zone | 2s - -7  5 -"},
    {"SELECT * FROM cpu GROUP BY *",
     "cpu{host=a}{zone=x} time b n s v | 1s true 1 one 1 | 2s - 2 - 2.5; cpu{host=b}{zone=x} time "
     "b n s v | 1s - 3 three 3; cpu{host=b}{zone=y} time b n s v | 3s false - - 4; "
     "cpu{host=c}{zone=} time b n s v | 2s - -7  5"},
    {"SELECT v FROM cpu GROUP BY nosuch",
     "cpu{nosuch=} time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu GROUP BY v", "cpu{v=} time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu GROUP BY zone, host",
     "cpu{host=a}{zone=x} time v | 1s 1 | 2s 2.5; cpu{host=b}{zone=x} time v | 1s 3; "
     "cpu{host=b}{zone=y} time v | 3s 4; cpu{host=c}{zone=} time v | 2s 5"},
    {"SELECT v FROM cpu, mem",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4; mem time v | 1s 10 | 2s 20"},
    {"SELECT * FROM cpu, mem",
     "cpu time b free host n s v zone | 1s true - a 1 one 1 x | 1s - - b 3 three 3 x | 2s - - a 2 "
     "- 2.5 x | 2s - - c -7  5 - | 3s false - b - - 4 y; mem time b free host n s v zone | 1s - 5 "
     "a - - 10 - | 2s - 6 b - - 20 - | 4s - 7 b - - - -"},
    {"SELECT v FROM /c|m/",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4; mem time v | 1s 10 | 2s 20"},
    {"SELECT v FROM cpu LIMIT 2", "cpu time v | 1s 1 | 1s 3"},
    {"SELECT v FROM cpu LIMIT 2 OFFSET 1", "cpu time v | 1s 3 | 2s 2.5"},
    {"SELECT v FROM cpu GROUP BY host LIMIT 1",
     "cpu{host=a} time v | 1s 1; cpu{host=b} time v | 1s 3; cpu{host=c} time v | 2s 5"},
    {"SELECT v FROM cpu GROUP BY host SLIMIT 1", "cpu{host=a} time v | 1s 1 | 2s 2.5"},
    {"SELECT v FROM cpu GROUP BY host SLIMIT 1 SOFFSET 1", "cpu{host=b} time v | 1s 3 | 3s 4"},
    {"SELECT v FROM cpu GROUP BY host SOFFSET 1", ""},
    {"SELECT v FROM cpu GROUP BY host SLIMIT 1 ORDER BY time DESC",
     "error parsing query: found ORDER, expected ; at line 1, char 42"},
    {"SELECT v::integer FROM cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2 | 2s 5 | 3s 4"},
    {"SELECT n::float FROM cpu", "cpu time n | 1s 1 | 1s 3 | 2s 2 | 2s -7"},
    {"SELECT v::string FROM cpu", ""},
    {"SELECT v::field FROM cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT host::field FROM cpu", ""},
    {"SELECT host::field, v FROM cpu",
     "cpu time host v | 1s - 1 | 1s - 3 | 2s - 2.5 | 2s - 5 | 3s - 4"},
    {"SELECT host::tag FROM cpu", ""},
    {"SELECT host::tag, v FROM cpu",
     "cpu time host v | 1s a 1 | 1s b 3 | 2s a 2.5 | 2s c 5 | 3s b 4"},
    {"SELECT v::tag, n FROM cpu", "cpu time v n | 1s - 1 | 1s - 3 | 2s - 2 | 2s - -7"},
    {"SELECT v::boolean, n FROM cpu", "cpu time v n | 1s - 1 | 1s - 3 | 2s - 2 | 2s - -7"},
    {"SELECT s FROM cpu", "cpu time s | 1s one | 1s three | 2s "},
    {"SELECT b FROM cpu", "cpu time b | 1s true | 3s false"},
    {"SELECT b + v FROM cpu",
     "type error: b::boolean + v::float: incompatible types: boolean and float"},
    {"SELECT v + host FROM cpu",
     "type error: v::float + host::tag: incompatible types: float and tag"},
    {"SELECT s + s FROM cpu",
     "type error: s::string + s::string: incompatible types: string and string"},
    {"SELECT b & b FROM cpu", "cpu time b_b | 1s true | 3s false"},
    {"SELECT n & 3, n | 4, n ^ 1 FROM cpu",
     "cpu time n n_1 n_2 | 1s 1 5 0 | 1s 3 7 2 | 2s 2 6 3 | 2s 1 -3 -8"},
    {"SELECT v & 1 FROM cpu", "type error: v::float & 1: incompatible types: float and integer"},
    {"SELECT nosuch FROM cpu", ""},
    {"SELECT nosuch, v FROM cpu",
     "cpu time nosuch v | 1s - 1 | 1s - 3 | 2s - 2.5 | 2s - 5 | 3s - 4"},
    {"SELECT v FROM nosuch", ""},
    {"SELECT v, nosuch + v FROM cpu",
     "cpu time v nosuch_v | 1s 1 - | 1s 3 - | 2s 2.5 - | 2s 5 - | 3s 4 -"},
    {"SELECT time FROM cpu", "at least 1 non-time field must be queried"},
    {"SELECT time, v FROM cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT time AS t, v FROM cpu", "cpu t v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT 1 FROM cpu", "field must contain at least one variable"},
    {"SELECT 1 + 1 FROM cpu", "field must contain at least one variable"},
    {"SELECT v + 1 + 1 FROM cpu", "cpu time v | 1s 3 | 1s 5 | 2s 4.5 | 2s 7 | 3s 6"},
    {"SELECT * + 1 FROM cpu", "unable to use wildcard in a binary expression"},
    {"SELECT /v/ + 1 FROM cpu", "error parsing query: found +, expected FROM at line 1, char 12"},
    {"SELECT v FROM cpu fill(0)", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v, n FROM cpu fill(7)",
     "cpu time v n | 1s 1 1 | 1s 3 3 | 2s 2.5 2 | 2s 5 -7 | 3s 4 7"},
    {"SELECT v, n, s, b FROM cpu fill(7.5)",
     "cpu time v n s b | 1s 1 1 one true | 1s 3 3 three 7.5 | 2s 2.5 2 7.5 7.5 | 2s 5 -7  7.5 | 3s "
     "4 7 7.5 false"},
    {"SELECT v, n, s FROM cpu fill(previous)",
     "cpu time v n s | 1s 1 1 one | 1s 3 3 three | 2s 2.5 2 three | 2s 5 -7  | 3s 4 -7 "},
    {"SELECT v FROM cpu fill(none)", "fill(none) must be used with a function"},
    {"SELECT v FROM cpu fill(linear)", "fill(linear) must be used with a function"},
    {"SELECT v FROM cpu GROUP BY time(1s)", "GROUP BY requires at least one aggregate function"},
    {"SELECT v FROM cpu GROUP BY time", "time() is a function and expects at least one argument"},
    {"SELECT v FROM cpu GROUP BY foo(1s)", "only time() calls allowed in dimensions"},
    {"SELECT v FROM cpu WHERE count(v) > 1", "invalid function call in condition: count(v)"},
    {"SELECT foo(v) FROM cpu", "undefined function foo()"},
    {"SELECT v, mean(v) FROM cpu", "mixing aggregate and non-aggregate queries is not supported"},
    {"SELECT distinct(v), v FROM cpu",
     "aggregate function distinct() cannot be combined with other functions or fields"},
    {"SELECT top(v, 2), max(v) FROM cpu",
     "selector function top() cannot be combined with other functions"},
    {"SELECT top(v) FROM cpu", "invalid number of arguments for top, expected at least 2, got 1"},
    {"SELECT top(v, 0) FROM cpu", "limit (0) in top function must be at least 1"},
    {"SELECT top(v, 'x') FROM cpu", "expected integer as last argument in top(), found 'x'"},
    {"SELECT top(v, 3) FROM cpu LIMIT 2",
     "limit (3) in top function can not be larger than the LIMIT (2) in the select statement"},
    {"SELECT v FROM \"default\".autogen.cpu", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM \"default\"..cpu LIMIT 1", "cpu time v | 1s 1"},
    {"SELECT v FROM nope.autogen.cpu", "database not found: nope"},
    {"SELECT v FROM \"default\".nope.cpu", "retention policy not found: nope"},
    {"SELECT \"my f\" FROM \"w x\"", "w x time my f | 1s 1"},
    {"SELECT * FROM \"w x\"", "w x time my f my tag v | 1s 1 q r text"},
    {"SELECT abs(v), ceil(v), floor(v), round(v), sqrt(v), pow(v, 2), log(v, 2), ln(v), atan2(v, "
     "n) FROM cpu",
     "cpu time abs ceil floor round sqrt pow log ln atan2 | 1s 1 1 1 1 1 1 0 0 0.7853981633974483 "
     "| 1s 3 3 3 3 1.7320508075688772 9 1.5849625007211563 1.0986122886681098 0.7853981633974483 | "
     "2s 2.5 3 2 3 1.5811388300841898 6.25 1.3219280948873624 0.9162907318741551 "
     "0.8960553845713439 | 2s 5 5 5 5 2.23606797749979 25 2.321928094887362 1.6094379124341003 "
     "2.5213431676069717 | 3s 4 4 4 4 2 16 2 1.3862943611198906 -"},
    {"SELECT abs(n), abs(s) FROM cpu", "cpu time abs abs_1 | 1s 1 - | 1s 3 - | 2s 2 - | 2s -7 -"},
    {"SELECT sin(n) FROM cpu",
     "cpu time sin | 1s 0.8414709848078965 | 1s 0.1411200080598672 | 2s 0.9092974268256817 | 2s "
     "-0.6569865987187891"},
    {"SELECT asin(n) FROM cpu", "cpu time asin | 1s 1.5707963267948966 | 1s - | 2s - | 2s -"},
    {"SELECT pow(v) FROM cpu", "invalid number of arguments for pow, expected 2, got 1"},
    {"SELECT v FROM cpu WHERE abs(n) > 5", ""},
    {"SELECT v FROM cpu WHERE n / 2 = 1", "cpu time v | 1s 3 | 2s 2.5"},
    {"SELECT v FROM cpu WHERE v / 2 = 1.5", "cpu time v | 1s 3"},
    {"SELECT v FROM cpu WHERE host = zone", ""},
    {"SELECT v FROM cpu WHERE _name = 'cpu'", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu tz('Europe/Berlin')", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu tz('Nope')", "error parsing query: unable to find time zone Nope"},
    {"SELECT v FROM cpu WHERE time = '1970-01-01T00:00:01Z'", "cpu time v | 1s 1 | 1s 3"},
    {"SELECT v FROM cpu WHERE time > 'nope'",
     "invalid operation: time and *influxql.StringLiteral are not compatible"},
    {"SELECT v FROM cpu WHERE time != 1s", "invalid time comparison operator: !="},
    {"SELECT v FROM cpu WHERE true", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM cpu WHERE false", ""},
    {"SELECT v FROM (SELECT v FROM cpu)", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM (SELECT v, n FROM cpu)", "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT n FROM (SELECT v, n FROM cpu)", "cpu time n | 1s 1 | 1s 3 | 2s 2 | 2s -7 | 3s -"},
    {"SELECT * FROM (SELECT v, n FROM cpu)",
     "cpu time n v | 1s 1 1 | 1s 3 3 | 2s 2 2.5 | 2s -7 5 | 3s - 4"},
    {"SELECT * FROM (SELECT v, host FROM cpu)",
     "cpu time host v | 1s a 1 | 1s b 3 | 2s a 2.5 | 2s c 5 | 3s b 4"},
    {"SELECT * FROM (SELECT v FROM cpu GROUP BY host)",
     "cpu time host v | 1s a 1 | 1s b 3 | 2s a 2.5 | 2s c 5 | 3s b 4"},
    {"SELECT v, host FROM (SELECT v FROM cpu GROUP BY host)",
     "cpu time v host | 1s 1 a | 1s 3 b | 2s 2.5 a | 2s 5 c | 3s 4 b"},
    {"SELECT v FROM (SELECT v FROM cpu GROUP BY host) GROUP BY host",
     "cpu{host=a} time v | 1s 1 | 2s 2.5; cpu{host=b} time v | 1s 3 | 3s 4; cpu{host=c} time v | "
     "2s 5"},
    {"SELECT v FROM (SELECT v FROM cpu) GROUP BY host",
     "cpu{host=a} time v | 1s 1 | 2s 2.5; cpu{host=b} time v | 1s 3 | 3s 4; cpu{host=c} time v | "
     "2s 5"},
    {"SELECT v FROM (SELECT v FROM cpu GROUP BY host) WHERE host = 'a'",
     "cpu time v | 1s 1 | 2s 2.5"},
    {"SELECT v FROM (SELECT v FROM cpu) WHERE host = 'a'", ""},
    {"SELECT v FROM (SELECT v FROM cpu) WHERE v > 2", "cpu time v | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM (SELECT v AS x FROM cpu)", ""},
    {"SELECT x FROM (SELECT v AS x FROM cpu)", "cpu time x | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT x + 1 FROM (SELECT v * 2 AS x FROM cpu)",
     "cpu time x | 1s 3 | 1s 7 | 2s 6 | 2s 11 | 3s 9"},
    {"SELECT x FROM (SELECT n / 2 AS x FROM cpu)", "cpu time x | 1s 0 | 1s 1 | 2s 1 | 2s -3"},
    {"SELECT v FROM (SELECT v FROM cpu LIMIT 1)", "cpu time v | 1s 1"},
    {"SELECT v FROM (SELECT v FROM cpu WHERE time > 1s) WHERE time < 3s",
     "cpu time v | 2s 2.5 | 2s 5"},
    {"SELECT v FROM (SELECT v FROM cpu) ORDER BY time DESC",
     "cpu time v | 3s 4 | 2s 5 | 2s 2.5 | 1s 3 | 1s 1"},
    {"SELECT v FROM (SELECT v FROM cpu ORDER BY time DESC)",
     "subqueries must be ordered in the same direction as the query itself"},
    {"SELECT v FROM (SELECT v FROM (SELECT v, n FROM cpu) WHERE n > 1)",
     "cpu time v | 1s 3 | 2s 2.5"},
    {"SELECT v FROM (SELECT v FROM cpu), mem",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4; mem time v | 1s 10 | 2s 20"},
    {"SELECT * FROM (SELECT * FROM cpu)",
     "cpu time b host n s v zone | 1s true a 1 one 1 x | 1s - b 3 three 3 x | 2s - a 2 - 2.5 x | "
     "2s - c -7  5 - | 3s false b - - 4 y"},
    {"SELECT v FROM (SELECT v FROM cpu GROUP BY host SLIMIT 1)",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM (SELECT v FROM cpu GROUP BY host) SLIMIT 1",
     "cpu time v | 1s 1 | 1s 3 | 2s 2.5 | 2s 5 | 3s 4"},
    {"SELECT v FROM (SELECT v FROM cpu) GROUP BY host SLIMIT 1",
     "cpu{host=a} time v | 1s 1 | 2s 2.5"},
};

}  // namespace

TEST_CASE("select: without functions it answers as influxd 1.6.7 does") {
  SelectRoom room;
  REQUIRE(room.write(kLines));
  for (const Case& c : kCases) {
    CAPTURE(c.statement);
    const std::string answer = room.ask(c.statement);
    CAPTURE(answer);
    CHECK(test::is_same_answer(answer, c.answer));
  }
}

TEST_CASE("select: what is not there is told as influxd 1.6.7 tells it") {
  SelectRoom room;
  REQUIRE(room.write(
      "m,h=a,z=x v=1,b=true 1\nm,h=a,z=x v=2 2\nm,h=d v=3,b=false 3\nm,h=b,z=y w=4 4\n"));
  constexpr Case kOfNothing[] = {
      // A field that is not there is not false, but one of a row in brackets is.
      {"SELECT v FROM m WHERE b = false", "m time v | 3 3"},
      {"SELECT v FROM (SELECT v, b FROM m) WHERE b = false", "m time v | 2 2 | 3 3"},
      // A tag that is not there is null, but one that a statement in brackets groups by.
      {"SELECT v, z FROM m", "m time v z | 1 1 x | 2 2 x | 3 3 -"},
      {"SELECT v, z FROM (SELECT v FROM m GROUP BY z)", "m time v z | 1 1 x | 2 2 x | 3 3 "},
      // SLIMIT counts who lacks a tag first, though the answer has it last.
      {"SELECT v FROM m GROUP BY h, z SLIMIT 1", "m{h=d}{z=} time v | 3 3"},
      // What OFFSET leaves out fills nothing.
      {"SELECT v, b FROM m fill(previous)", "m time v b | 1 1 true | 2 2 true | 3 3 false"},
      {"SELECT v, b FROM m fill(previous) LIMIT 9 OFFSET 1", "m time v b | 2 2 - | 3 3 false"},
  };
  for (const Case& c : kOfNothing) {
    CAPTURE(c.statement);
    CHECK(room.ask(c.statement) == c.answer);
  }
}

TEST_CASE("select: more series than have their scans open are merged in the order of time") {
  SelectRoom room;
  std::string lines;
  constexpr int kSeries = 200, kTimes = 40;
  for (int s = 0; s < kSeries; ++s) {
    for (int t = 0; t < kTimes; ++t)
      lines += "m,s=" + std::to_string(s) + " v=" + std::to_string(s) + "i " +
               std::to_string(t * kSeries + s) + "\n";
  }
  REQUIRE(room.write(lines));
  for (const bool is_descending : {false, true}) {
    auto rows = room.run(is_descending ? "SELECT v FROM m ORDER BY time DESC" : "SELECT v FROM m");
    REQUIRE(rows.ok());
    influxql::SeriesHead head;
    REQUIRE((*rows)->next_series(head).value());
    std::vector<influxql::Cell> row;
    for (int i = 0; i < kSeries * kTimes; ++i) {
      REQUIRE((*rows)->next_row(row).value());
      const int at = is_descending ? kSeries * kTimes - 1 - i : i;
      REQUIRE(row[0].integer == at);
      REQUIRE(row[1].integer == at % kSeries);
    }
    CHECK_FALSE((*rows)->next_row(row).value());
    CHECK_FALSE((*rows)->next_series(head).value());
  }
}

TEST_CASE("select: limits end it with their names") {
  SelectRoom room;
  REQUIRE(room.write("m,s=a v=1 1\nm,s=b v=2 2\nm,s=b v=3 3\n"));
  room.asking.limits.points = 3;
  CHECK(room.ask("SELECT v FROM m") == "m time v | 1 1 | 2 2 | 3 3");
  room.asking.limits.points = 2;
  CHECK(room.ask("SELECT v FROM m") ==
        "max-select-point limit exceeded: (3/2); limits.query-points is 2");
  room.asking.limits.series = 1;
  CHECK(room.ask("SELECT v FROM m") ==
        "max-select-series limit exceeded: (2/1); limits.query-series is 1");
  CHECK(room.ask("SELECT v FROM m WHERE s = 'a'") == "m time v | 1 1");
  room.asking.limits.held_bytes = 100;
  CHECK(room.ask("SELECT v FROM m WHERE s = 'a'") ==
        "a statement may hold 100 bytes of values at once: ask for fewer series or a shorter time");
}

TEST_CASE(
    "select: who keeps an account of it hears of each device once, and of none that is not read") {
  SelectRoom room;
  REQUIRE(room.write("m,device=a v=1,w=2 1\nm,device=b v=2,w=3 2\nm,device=c w=3 3\n"));
  query::Reach reach;
  room.asking.reach = &reach;
  CHECK(room.ask("SELECT v, w FROM m WHERE device =~ /a|b/") == "m time v w | 1 1 2 | 2 2 3");
  REQUIRE(reach.devices.size() == 2);
  CHECK(reach.devices[0].second == "a");
  CHECK(reach.devices[1].second == "b");
  CHECK(reach.more == 0);
  query::Reach twice;
  room.asking.reach = &twice;
  CHECK(room.ask("SELECT max(v) FROM m, (SELECT v FROM m)").starts_with("m time max"));
  CHECK(twice.devices.size() == 2);
}

TEST_CASE("select: types that differ by reading or by series become the one that holds them") {
  SelectRoom room;
  REQUIRE(room.write("m,s=a v=1i 1\nm,s=b v=2.5 2\nm,s=c v=\"x\" 3\n"));
  CHECK(room.ask("SELECT v FROM m") == "m time v | 1 1 | 2 2.5");
  CHECK(room.ask("SELECT v::integer FROM m") == "m time v | 1 1 | 2 2");
  CHECK(room.ask("SELECT v::string FROM m") == "m time v | 3 x");
  // A client that writes a whole number first, or that there is none.
  REQUIRE(room.write("w v=1i 1\nw v=0.5 2\nn v=\"nil\" 1\nn v=0.5 2\nf v=0.5 1\nf v=\"nil\" 2\n"));
  CHECK(room.ask("SELECT v FROM w") == "w time v | 1 1 | 2 0.5");
  CHECK(room.ask("SELECT mean(v) FROM w") == "w time mean | 0s 0.75");
  CHECK(room.ask("SELECT v FROM n") == "n time v | 2 0.5");
  CHECK(room.ask("SELECT v FROM f") == "f time v | 1 0.5");
}
