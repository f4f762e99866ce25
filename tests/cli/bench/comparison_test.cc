#include "bench/comparison.h"

#include <doctest/doctest.h>

#include <string>

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

// Compares two rounds of a workload with that many figures; the last figure says so.
Result<Report> compare_with(std::uint32_t figures) {
  BenchOptions options;
  options.workload = "many";
  options.rounds = 2;
  return compare(options, [figures](const BenchOptions&) -> Result<Report> {
    Report report;
    report.num = 1;
    report.seconds = 1;
    for (std::uint32_t i = 1; i <= figures; ++i)
      report.more.emplace_back("figure_" + std::to_string(i), i);
    return report;
  });
}

}  // namespace

TEST_CASE("comparison: every figure comes back from the process that measured it") {
  const auto report = compare_with(100);
  REQUIRE_MESSAGE(report.ok(), report.status().to_string());
  CHECK(report->figure("figure_1") == 1);
  CHECK(report->figure("figure_100") == 100);
  CHECK(report->figure("rounds") == 2);
}

TEST_CASE("comparison: more figures than it takes are an error, not left out") {
  CHECK(compare_with(1'000).status().code() == StatusCode::Unsupported);
}
