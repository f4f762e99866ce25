#include "bench/experiments/experiments.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("edgecase-bench-peers: every workload that edgecase hands on can be run here") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    const bool is_known = run_of(workload.name) != nullptr;
    CHECK(is_known);
  }
  const bool is_own = run_of("fillseq") == run_store_workload;
  CHECK(is_own);
  const bool is_none = run_of("ingest") == nullptr;
  CHECK(is_none);
}

TEST_CASE("bench: tenants are measured apart and together") {
  const test::TempDirectory directory;
  BenchOptions options;
  options.workload = "tenants";
  options.smoke = true;
  options.metadata = directory.path();
  const auto report = run_tenants(options);
  REQUIRE(report.ok());
  CHECK(report->num == 2'000);
  CHECK(report->figure("ratio_to_shared") > 0);
  CHECK(report->figure("put_ratio_to_shared") > 0);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench: every row of the paper's table 2 holds, with a proof") {
  const test::TempDirectory directory;
  BenchOptions options;
  options.workload = "table2";
  options.smoke = true;
  options.metadata = directory.path();
  const auto report = run_table2(options);
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  REQUIRE(report->rows.size() == 10);
  for (const auto& row : report->rows) {
    CAPTURE(row.front());
    REQUIRE(row.size() == report->rows.front().size());
    for (const std::string& cell : row) CHECK_FALSE(cell.empty());
  }
  CHECK(report->rows[7][0] == "Merging");
  CHECK(report->rows[7][4] == "DVC");
  CHECK(std::filesystem::is_empty(directory.path()));
  options.engine = "leveldb";
  CHECK(run_table2(options).status().code() == StatusCode::InvalidArgument);
}
