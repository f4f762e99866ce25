#include "bench/experiments/experiments.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("ycsb: each workload runs its mix, and leaves nothing behind") {
  const test::TempDirectory directory;
  struct Case {
    const char* workload;
    std::vector<const char*> kinds;  // that have latencies
  };
  for (const Case& c :
       {Case{"ycsb-a", {"read", "update"}}, Case{"ycsb-b", {"read", "update"}},
        Case{"ycsb-c", {"read"}}, Case{"ycsb-d", {"read", "insert"}},
        Case{"ycsb-e", {"insert", "scan"}}, Case{"ycsb-f", {"read", "read_modify_write"}}}) {
    for (const std::uint32_t threads : {1u, 3u}) {
      CAPTURE(c.workload);
      CAPTURE(threads);
      BenchOptions options;
      options.workload = c.workload;
      options.smoke = true;
      options.threads = threads;
      options.metadata = directory.path();
      const auto report = run_ycsb(options);
      REQUIRE_MESSAGE(report.ok(), report.status().to_string());
      CHECK(report->num == 2'000);
      CHECK(report->latency.count() == report->num);
      std::size_t kinds = 0;
      for (const auto& [name, value] : report->more) kinds += name.ends_with("_p50_us");
      CHECK(kinds == c.kinds.size());
      for (const char* kind : c.kinds) CHECK(report->figure(std::string(kind) + "_p50_us") > 0);
      CHECK((report->write_amplification > 0) == (options.workload != "ycsb-c"));
      CHECK(report->space_amplification > 0);
      CHECK(std::filesystem::is_empty(directory.path()));
    }
  }
}

TEST_CASE("ycsb: at a rate, what is late counts from when it was due") {
  const test::TempDirectory directory;
  BenchOptions options;
  options.workload = "ycsb-c";
  options.smoke = true;
  options.metadata = directory.path();
  options.operations = 200;
  options.rate = 2'000;
  const auto calm = run_ycsb(options);
  REQUIRE(calm.ok());
  CHECK(calm->seconds >= 0.099);  // not faster than it may
  options.rate = 1e12;            // all due at once: each waits for those before it
  options.operations = 2'000;
  const auto late = run_ycsb(options);
  REQUIRE(late.ok());
  const auto whole_ns = static_cast<std::uint64_t>(late->seconds * 1e9);
  CHECK(late->latency.percentile_ns(0.5) > whole_ns / 20);
}

TEST_CASE("ycsb: sizes that cannot be are refused") {
  BenchOptions options;
  options.workload = "ycsb-a";
  options.key_size = 15;
  CHECK(run_ycsb(options).status().code() == StatusCode::InvalidArgument);
  options.key_size = 16;
  options.value_size = 1u << 30;
  CHECK(run_ycsb(options).status().code() == StatusCode::InvalidArgument);
}
