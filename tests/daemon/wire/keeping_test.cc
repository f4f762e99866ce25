#include "wire/keeping.h"

#include <doctest/doctest.h>

namespace edgecase::wire {
namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;
constexpr std::int64_t kDayNs = 24 * 60 * kMinuteNs;

TEST_CASE("how long readings are kept reads back as it was written") {
  for (const char* text : {"forever", "7d", "12h", "7d then 1m:90d then 1h:forever",
                           "1d then 10s:2d then 1m:3d then 1h:4d then 1d:forever"}) {
    CAPTURE(text);
    const Result<Keeping> keeping = parse_keeping(text);
    REQUIRE(keeping.ok());
    CHECK(keeping_text(*keeping) == text);
    const Result<std::vector<Tier>> tiers = parse_tiers(tiers_text(keeping->tiers));
    REQUIRE(tiers.ok());
    CHECK(*tiers == keeping->tiers);
  }
  const Result<Keeping> keeping = parse_keeping("7d then 1m:90d");
  REQUIRE(keeping.ok());
  CHECK(*keeping == Keeping{7 * kDayNs, {{kMinuteNs, 90 * kDayNs}}});
}

TEST_CASE("what makes no sense as a retention with tiers is refused") {
  for (const char* text : {"",
                           "0s",
                           "then 1m:90d",
                           "7d then",
                           "7d then ",
                           "7d then 1m",
                           "7d then 1m:",
                           "7d then :90d",
                           "7d then 1m:0s",
                           "7d then 500ms:90d",
                           "7d then 1500ms:90d",
                           "7d then 0s:90d",
                           "forever then 1m:forever",
                           "7d then 1m:7d",
                           "7d then 1m:1d",
                           "7d then 1m:90d then 1h:90d",
                           "7d then 1m:90d then 90s:1y",
                           "7d then 1h:90d then 1m:1y",
                           "7d then 1m:90d then 1m:1y",
                           "7d then 1m:forever then 1h:forever",
                           "7d then 1s:90d then 1d:1y",
                           "1d then 1s:2d then 2s:3d then 4s:4d then 8s:5d then 16s:6d",
                           "7d  then 1m:90d then",
                           "7d,1m:90d"}) {
    CAPTURE(text);
    CHECK(parse_keeping(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("tiers of a parameter are separated by commas") {
  CHECK(parse_tiers("")->empty());
  CHECK(parse_tiers("1m:90d,1h:forever")->size() == 2);
  for (const char* text : {",", "1m:90d,", "1m", "1m:90d,,1h:1y"}) {
    CAPTURE(text);
    CHECK(parse_tiers(text).status().code() == StatusCode::InvalidArgument);
  }
}

}  // namespace
}  // namespace edgecase::wire
