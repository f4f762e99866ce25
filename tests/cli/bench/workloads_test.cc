#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "bench/workloads.h"

using namespace edgecase::cli::bench;

TEST_CASE("histogram: percentiles are within two percent at any scale") {
  for (const std::uint64_t scale : {1ull, 1'000ull, 1'000'000ull, 1'000'000'000'000ull}) {
    CAPTURE(scale);
    const auto histogram = std::make_unique<Histogram>();
    for (std::uint64_t i = 1; i <= 1000; ++i) histogram->add(i * scale);
    for (const double share : {0.5, 0.95, 0.99, 0.999}) {
      const double want = share * 1000 * static_cast<double>(scale);
      const auto got = static_cast<double>(histogram->percentile_ns(share));
      CHECK(got >= want * 0.98);
      CHECK(got <= want * 1.02 + 1);
    }
    CHECK(histogram->max_ns() == 1000 * scale);
    CHECK(histogram->percentile_ns(1.0) == histogram->max_ns());
  }
}

TEST_CASE("histogram: the largest number has a bucket, an empty one has zeros") {
  const auto histogram = std::make_unique<Histogram>();
  CHECK(histogram->percentile_ns(0.5) == 0);
  histogram->add(UINT64_MAX);
  histogram->add(0);
  CHECK(histogram->max_ns() == UINT64_MAX);
  CHECK(histogram->count() == 2);
}

TEST_CASE("histogram: merged ones count as one") {
  const auto all = std::make_unique<Histogram>();
  const auto part = std::make_unique<Histogram>();
  for (std::uint64_t i = 0; i < 100; ++i) (i % 2 ? *all : *part).add(i);
  all->merge(*part);
  CHECK(all->count() == 100);
  CHECK(all->max_ns() == 99);
}

TEST_CASE("median: the middle, the lower of two") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2);
}

using namespace edgecase::cli::bench;

TEST_CASE("bench report: the JSON has the fields of the contract") {
  Report report;
  report.workload = "fillseq";
  report.num = 2'000;
  report.value_size = 50;
  report.threads = 2;
  report.sync = true;
  report.seed = 7;
  report.seconds = 0.5;
  report.user_bytes = 132'000;
  report.write_amplification = 1.25;
  report.space_amplification = 1.0625;
  report.peak_memory_bytes = 1 << 20;
  report.latency.add(1'000);
  report.more = {{"settle_seconds", 0.25}};
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["workload"] == "fillseq");
  CHECK(json["engine"] == "edgecase");
  CHECK(json["num"] == 2'000);
  CHECK(json["value_size"] == 50);
  CHECK(json["threads"] == 2);
  CHECK(json["sync"] == true);
  CHECK(json["seed"] == 7);
  CHECK(json["seconds"] == 0.5);
  CHECK(json["ops_per_second"] == 4'000);
  CHECK(json["mb_per_second"] == 0.264);
  for (const char* name : {"p50", "p95", "p99", "p999", "max"}) {
    CAPTURE(name);
    CHECK(json["latency_us"][name] == 1.0);
  }
  CHECK(json["write_amplification"] == 1.25);
  CHECK(json["space_amplification"] == doctest::Approx(1.0625).epsilon(0.001));
  CHECK(json["peak_memory_bytes"] == 1 << 20);
  CHECK(json["version"].is_string());
  CHECK(json["settle_seconds"] == 0.25);
}

TEST_CASE("bench report: a table in words is columns for people and objects for programs") {
  Report report;
  report.workload = "table2";
  report.rows = {{"category", "proof"}, {"LSM-tree", "4 runs"}, {"Sorting", "in order"}};
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["rows"] == nlohmann::json::parse(R"([{"category":"LSM-tree","proof":"4 runs"},
                                                   {"category":"Sorting","proof":"in order"}])"));
  CHECK(report_text(report, "operations").find("  category  proof\n  LSM-tree  4 runs\n") !=
        std::string::npos);
}

TEST_CASE("bench report: a run that did nothing has no rate and no infinity") {
  const auto json = nlohmann::json::parse(report_json(Report{}));
  CHECK(json["ops_per_second"] == 0);
  CHECK(json["latency_us"]["p50"] == 0);
}

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
