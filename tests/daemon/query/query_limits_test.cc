#include "query/query_service.h"

#include <doctest/doctest.h>

namespace edgecase::query {

TEST_CASE("query limits: windows between two times, over all there are") {
  CHECK(windows_between(0, 0, 10) == 1);
  CHECK(windows_between(0, 9, 10) == 1);
  CHECK(windows_between(0, 10, 10) == 2);
  CHECK(windows_between(-10, 9, 10) == 2);
  CHECK(windows_between(INT64_MIN, INT64_MAX, INT64_MAX) == 3);
  CHECK(windows_between(INT64_MIN, INT64_MAX, 1) == UINT64_MAX);
}

TEST_CASE("query limits: an error names the limit as InfluxDB does, and the setting") {
  CHECK(check_limit(kWindowsLimit, 10, 10).ok());
  const Status refused = check_limit(kWindowsLimit, 11, 10);
  CHECK(refused.code() == StatusCode::LimitReached);
  CHECK(refused.message() ==
        "max-select-buckets limit exceeded: (11/10); limits.query-windows is 10");
  CHECK(check_limit(kPointsLimit, 2, 1).message() ==
        "max-select-point limit exceeded: (2/1); limits.query-points is 1");
  CHECK(check_limit(kSeriesLimit, 2, 1).message() ==
        "max-select-series limit exceeded: (2/1); limits.query-series is 1");
}

}  // namespace edgecase::query
