#include "wire/selector.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("query request: every aggregate has a name that leads back to it") {
  for (int i = 0; i <= static_cast<int>(wire::Aggregate::P99); ++i) {
    const auto aggregate = static_cast<wire::Aggregate>(i);
    const auto got = wire::parse_aggregate(wire::aggregate_name(aggregate));
    REQUIRE(got.ok());
    CHECK(*got == aggregate);
  }
  for (const char* name : {"", "avgs", "mean ", "p90", "meanmeanmeanmeanmeanmeanmeanmeanmean"}) {
    CAPTURE(name);
    CHECK(wire::parse_aggregate(name).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE(
    "query request: an aggregate is understood by its other names, and a near miss is named") {
  struct Case {
    const char* name;
    wire::Aggregate aggregate;
  };
  for (const Case& c :
       {Case{"avg", wire::Aggregate::Mean}, Case{"AVERAGE", wire::Aggregate::Mean},
        Case{"Mean", wire::Aggregate::Mean}, Case{"maximum", wire::Aggregate::Max},
        Case{"total", wire::Aggregate::Sum}, Case{"std", wire::Aggregate::Stddev},
        Case{"median", wire::Aggregate::P50}, Case{"latest", wire::Aggregate::Last}}) {
    CAPTURE(c.name);
    const auto got = wire::parse_aggregate(c.name);
    REQUIRE(got.ok());
    CHECK(*got == c.aggregate);
  }
  CHECK(wire::parse_aggregate("maen").status().message().find("did you mean mean?") !=
        std::string::npos);
  CHECK(wire::nearest_aggregate("stdev2") == "stddev");
  CHECK(wire::nearest_aggregate("xyzzy").empty());
}
