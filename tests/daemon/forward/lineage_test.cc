#include "forward/lineage.h"

#include <doctest/doctest.h>

#include "edgecase/random.h"
#include "ingest/origins.h"
#include "support/model_engine.h"

namespace edgecase::forward {
namespace {

ingest::OriginClaim claim_of(const Result<std::string>& line) {
  REQUIRE_MESSAGE(line.ok(), line.status().to_string());
  constexpr std::string_view kName = "X-EdgeCase-Origin: ";
  REQUIRE(line->starts_with(kName));
  REQUIRE(line->ends_with("\r\n"));
  const auto claim = ingest::parse_origin(
      std::string_view(*line).substr(kName.size(), line->size() - kName.size() - 2));
  REQUIRE_MESSAGE(claim.ok(), claim.status().to_string());
  return *claim;
}

}  // namespace

TEST_CASE("lineage: a run begins once the one before was answered, and says those before it") {
  test::ModelEngine engine;
  auto records = Records::open(engine);
  REQUIRE(records.ok());
  const auto start = [&] { return Lineage(engine, **records, system_random()); };
  const auto first = claim_of(start().header(false));
  CHECK(first.runs.size() == 1);
  // Nobody has answered: it may be unknown to all.
  CHECK(claim_of(start().header(false)).runs == first.runs);
  Lineage answered(engine, **records, system_random());
  CHECK(claim_of(answered.header(false)).runs == first.runs);
  answered.note_answered();
  CHECK(claim_of(answered.header(true)).runs == first.runs);
  Lineage next(engine, **records, system_random());
  const auto second = claim_of(next.header(false));
  CHECK(second.store == first.store);
  REQUIRE(second.runs.size() == 2);
  CHECK(second.runs.back() == first.runs.front());
  CHECK(claim_of(next.header(true)).runs == std::vector<std::string>{second.runs.front()});
}

TEST_CASE("lineage: runs are bounded, and a target takes as many") {
  test::ModelEngine engine;
  auto records = Records::open(engine);
  REQUIRE(records.ok());
  ingest::OriginClaim claim;
  for (std::size_t i = 0; i < ingest::OriginClaim::kRunsMax + 3; ++i) {
    Lineage lineage(engine, **records, system_random());
    claim = claim_of(lineage.header(false));
    lineage.note_answered();
  }
  CHECK(claim.runs.size() == ingest::OriginClaim::kRunsMax);
}

}  // namespace edgecase::forward
