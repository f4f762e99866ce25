// A question to functions alone: points in a table, a statement's text, its rows as text. What
// influxd 1.6.7 answered to the same points stands beside it in the tests.
#pragma once

#include <string>
#include <vector>

#include "influxql/points.h"

namespace edgecase::influxql {

// A point of the fields v (float), i (integer), b, s and of the tag host; an empty text is no
// value.
struct QuestionPoint {
  double seconds;
  std::string host, v, i, b, s;
};

// Ten points of two hosts within four minutes of 1970.
std::vector<QuestionPoint> question_points();

// Rows as "seconds: cell cell", joined by "; ", or "ERR message". Points in the order of time.
std::string rows_of(const std::vector<QuestionPoint>& points, const std::string& statement,
                    std::uint64_t held_bytes_max = 1 << 20);

}  // namespace edgecase::influxql
