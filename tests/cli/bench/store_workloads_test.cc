#include "bench/workloads.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("bench: each workload on the engine runs, counts, and leaves nothing behind") {
  const test::TempDirectory directory;
  for (const char* name : {"fillseq", "fillrandom", "overwrite", "deleterandom", "readrandom",
                           "readmissing", "readseq", "seekrandom", "mixed"}) {
    for (const std::uint32_t threads : {1u, 2u}) {
      CAPTURE(name);
      CAPTURE(threads);
      BenchOptions options;
      options.workload = name;
      options.smoke = true;
      options.threads = threads;
      options.batch = 10;
      options.metadata = directory.path();
      const auto report = run_store_workload(options);
      REQUIRE(report.ok());
      if (options.workload == "seekrandom") {
        CHECK(report->num > 0);  // fewer than a hundred from near the end
        CHECK(report->num <= 2'000u);
      } else {
        const bool each = options.workload == "readseq";  // every thread reads all
        CHECK(report->num == (each ? 2'000u * threads : 2'000u));
      }
      CHECK(report->latency.count() > 0);
      CHECK(report->ops_per_second() > 0);
      const bool wrote = !options.workload.starts_with("read") && options.workload != "seekrandom";
      CHECK((report->write_amplification > 1) == wrote);
      CHECK((report->space_amplification > 0) == wrote);
      CHECK(std::filesystem::is_empty(directory.path()));
    }
  }
}

TEST_CASE("bench: what is read may be written at random, and be read cold or at once") {
  const test::TempDirectory directory;
  for (const bool at_once : {false, true}) {
    BenchOptions options;
    options.workload = "readrandom";
    options.smoke = true;
    options.operations = 500;
    options.random_fill = true;
    options.at_once = at_once;
    options.cold = true;
    options.compression_ratio = 0.5;
    options.metadata = directory.path();
    const auto report = run_store_workload(options);
    REQUIRE(report.ok());
    CHECK(report->num == 500);
    CHECK(std::filesystem::is_empty(directory.path()));
  }
}

TEST_CASE("bench: rounds run in children, and the median of them is reported") {
  const test::TempDirectory directory;
  BenchOptions options;
  options.workload = "fillseq";
  options.smoke = true;
  options.rounds = 3;
  options.metadata = directory.path();
  const auto report = run_store_workload(options);
  REQUIRE(report.ok());
  CHECK(report->num == 2'000);
  CHECK(report->latency.count() > 0);
  CHECK(report->figure("rounds") == 3);
  CHECK(std::filesystem::is_empty(directory.path()));
  options.key_size = 7;
  CHECK(run_store_workload(options).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("bench: a peer that is not built in is no surprise") {
  const test::TempDirectory directory;
  BenchOptions options;
  options.workload = "fillseq";
  options.smoke = true;
  options.engine = "leveldb";
  options.metadata = directory.path();
  CHECK(run_store_workload(options).status().code() == StatusCode::Unsupported);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench: sizes that no engine takes are refused") {
  BenchOptions options;
  options.workload = "fillseq";
  options.smoke = true;
  options.key_size = 7;
  CHECK(run_store_workload(options).status().code() == StatusCode::InvalidArgument);
  options.key_size = 1'025;
  CHECK(run_store_workload(options).status().code() == StatusCode::InvalidArgument);
  options.key_size = 16;
  options.value_size = (16u << 20) + 1;
  CHECK(run_store_workload(options).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("bench: workloads are found by name") {
  CHECK(find_workload("ingest-mqtt") != nullptr);
  CHECK(find_workload("ingest") == nullptr);
  const bool is_elsewhere = find_workload("ycsb")->run == nullptr;  // edgecase-bench-peers has it
  CHECK(is_elsewhere);
}
