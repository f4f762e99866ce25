#include "bench/experiments/experiments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

BenchOptions drives_smoke(const std::string& metadata, const std::string& values) {
  BenchOptions options;
  options.workload = "casedb-drives";
  options.smoke = true;
  options.metadata = metadata;
  options.values = values;
  return options;
}

const char* const kRows[] = {"all_slow", "metadata_fast", "values_fast", "all_fast"};

}  // namespace

TEST_CASE("casedb-drives: four rows, faster where metadata leaves a drive with slow syncs") {
  const test::TempDirectory directory;
  BenchOptions options = drives_smoke(directory.path(), "");
  options.slow_sync_ms = 20;  // far more than the drive below
  options.num = 300;
  const auto report = run_casedb_drives(options);
  REQUIRE_MESSAGE(report.ok(), report.status().to_string());
  for (const auto& figure : report->more) {
    CAPTURE(figure.first);
    CHECK(std::isfinite(figure.second));
    CHECK(figure.second > 0);
  }
  for (const char* row : kRows) {
    CAPTURE(row);
    CHECK(report->figure(std::string(row) + "_ops_per_second") > 0);
    CHECK(report->table.find(row) != std::string::npos);
  }
  CHECK(report->figure("all_slow_ratio") == 1);
  CHECK(report->figure("metadata_fast_ratio") > 1);
  CHECK(report->figure("published_metadata_fast_ratio") == doctest::Approx(1.4286).epsilon(0.001));
  REQUIRE(report->words.size() == 1);
  CHECK(report->words.front().second.find("20 ms more a sync") != std::string::npos);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("casedb-drives: two directories as they are, the same bytes from the same seed") {
  const test::TempDirectory directory;
  std::filesystem::create_directory(directory / "m");
  std::filesystem::create_directory(directory / "v");
  BenchOptions options = drives_smoke(directory / "m", directory / "v");
  const auto report = run_casedb_drives(options);
  REQUIRE_MESSAGE(report.ok(), report.status().to_string());
  CHECK(report->num == 800 + 800 / 5);
  CHECK(report->words.front().second.find("as they are") != std::string::npos);
  const auto again = run_casedb_drives(options);
  REQUIRE(again.ok());
  CHECK(again->user_bytes == report->user_bytes);
  options.seed = 2;
  const auto other = run_casedb_drives(options);
  REQUIRE(other.ok());
  CHECK(other->user_bytes != report->user_bytes);
  options.fast_price = options.slow_price = 5;  // two drives: ten dollars
  const auto cheap = run_casedb_drives(options);
  REQUIRE(cheap.ok());
  CHECK(cheap->figure("metadata_fast_mb_per_second_per_10_dollars") ==
        doctest::Approx(cheap->mb_per_second()));
  CHECK(std::filesystem::is_empty(directory / "m"));
  CHECK(std::filesystem::is_empty(directory / "v"));
}

TEST_CASE("casedb-drives: what cannot be measured is refused before anything is made") {
  const test::TempDirectory directory;
  std::filesystem::create_directory(directory / "m");
  std::filesystem::create_directory(directory / "v");
  std::filesystem::create_directory_symlink(directory / "m", directory / "same");
  CHECK(run_casedb_drives(drives_smoke(directory / "m", directory / "m")).status().code() ==
        StatusCode::InvalidArgument);
  CHECK(run_casedb_drives(drives_smoke(directory / "m", directory / "same")).status().code() ==
        StatusCode::InvalidArgument);
  BenchOptions options = drives_smoke(directory / "m", directory / "v");
  options.num = std::uint64_t{1} << 40;
  CHECK(run_casedb_drives(options).status().code() == StatusCode::OutOfSpace);
  options.num = UINT64_MAX;
  CHECK(run_casedb_drives(options).status().code() == StatusCode::InvalidArgument);
  test::write_file(directory / "v/IDENTITY", "x");
  CHECK(run_casedb_drives(drives_smoke(directory / "m", directory / "v")).status().code() ==
        StatusCode::InvalidArgument);
  CHECK(std::filesystem::is_empty(directory / "m"));
}
