#include "wire/query_request.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("query request: every aggregate has a name that leads back to it") {
  for (int i = 0; i <= static_cast<int>(wire::Aggregate::P99); ++i) {
    const auto aggregate = static_cast<wire::Aggregate>(i);
    const auto got = wire::parse_aggregate(wire::aggregate_name(aggregate));
    REQUIRE(got.ok());
    CHECK(*got == aggregate);
  }
  for (const char* name : {"", "avg", "Mean", "mean ", "p90"}) {
    CAPTURE(name);
    CHECK(wire::parse_aggregate(name).status().code() == StatusCode::InvalidArgument);
  }
}
