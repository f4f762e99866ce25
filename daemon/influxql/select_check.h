// Checks a SELECT before anything is looked up, and says what is wrong in InfluxDB's words. No
// state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "influxql/statement.h"
#include "influxql/time_condition.h"

namespace edgecase::influxql {

// GROUP BY, taken apart.
struct Grouping {
  std::vector<Expr> tags;     // names, wildcards and regular expressions
  std::int64_t every_ns = 0;  // 0: no time()
  std::int64_t offset_ns = 0;
};

Result<Grouping> check_grouping(const std::vector<Expr>& group_by, std::int64_t now_ns,
                                const wire::TimeZone* zone);
// Fields without those that are the time. `needs_function`: GROUP BY time stands in this very
// statement. True: there are functions.
Result<bool> check_fields(const SelectStatement& select, bool needs_function);
Status check_condition(const Expr& where);

}  // namespace edgecase::influxql
