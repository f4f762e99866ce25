#include "bench/experiments/experiments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "bench/peers/peer_stores.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

BenchOptions ycsb_smoke(const test::TempDirectory& directory) {
  BenchOptions options;
  options.workload = "ycsb";
  options.smoke = true;
  options.metadata = directory.path();
  options.make_peer = make_peer_store;
  return options;
}

}  // namespace

TEST_CASE("ycsb table: twelve cells beside a peer, the same from the same seed") {
  const test::TempDirectory directory;
  BenchOptions options = ycsb_smoke(directory);
  options.peers = {"naive-32m", "leveldb"};  // the second needs a library that is not linked here
  const auto report = run_ycsb_table(options);
  REQUIRE_MESSAGE(report.ok(), report.status().to_string());
  CHECK(report->figure("cells") == 12);
  CHECK(report->num == 12 * 300);
  for (const auto& figure : report->more) {
    CAPTURE(figure.first);
    CHECK(std::isfinite(figure.second));
    CHECK(figure.second > 0);
  }
  for (const char* cell : {"a_50", "f_50", "a_16384", "e_16384"}) {
    CAPTURE(cell);
    const double own = report->figure(std::string(cell) + "_ops_per_second");
    const double peer = report->figure(std::string(cell) + "_naive_32m_ops_per_second");
    CHECK(report->figure(std::string(cell) + "_ratio_to_naive_32m") == doctest::Approx(own / peer));
    CHECK(report->table.find(cell) != std::string::npos);
  }
  CHECK(report->figure("a_50_published_ratio") == 17);
  CHECK(report->figure("a_16384_published_ratio") == 0);
  REQUIRE(report->words.size() == 1);
  CHECK(report->words.front() == std::pair<std::string, std::string>("leveldb", "not installed"));
  CHECK(std::filesystem::is_empty(directory.path()));

  options.peers.clear();
  const auto again = run_ycsb_table(options);
  REQUIRE(again.ok());
  CHECK(again->user_bytes == report->user_bytes);
  options.seed = 2;
  const auto other = run_ycsb_table(options);
  REQUIRE(other.ok());
  CHECK(other->user_bytes != report->user_bytes);  // other scans, other lengths
}

TEST_CASE("ycsb table: one size alone, and what it refuses before it writes") {
  const test::TempDirectory directory;
  BenchOptions options = ycsb_smoke(directory);
  options.value_size = 50;
  const auto report = run_ycsb_table(options);
  REQUIRE(report.ok());
  CHECK(report->figure("cells") == 6);
  options.value_size = 51;
  CHECK(run_ycsb_table(options).status().code() == StatusCode::InvalidArgument);
  options.value_size = 0;
  options.num = std::uint64_t{1} << 40;
  CHECK(run_ycsb_table(options).status().code() == StatusCode::OutOfSpace);
  options.num = 0;
  CHECK(std::filesystem::is_empty(directory.path()));
  test::write_file(directory / "IDENTITY", "x");
  CHECK(run_ycsb_table(options).status().code() == StatusCode::InvalidArgument);
}
