#include "bench/workloads.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

BenchOptions board_smoke(const std::string& metadata, const std::string& values) {
  BenchOptions options;
  options.workload = "board";
  options.smoke = true;
  options.metadata = metadata;
  options.values = values;
  return options;
}

}  // namespace

TEST_CASE("board: says what it is, what it keeps up with, and leaves nothing behind") {
  const test::TempDirectory directory;
  std::filesystem::create_directory(directory / "m");
  std::filesystem::create_directory(directory / "v");
  REQUIRE(find_workload("board") != nullptr);
  for (const std::string& values : {std::string(), directory / "v"}) {
    CAPTURE(values);
    const auto report = find_workload("board")->run(board_smoke(directory / "m", values));
    REQUIRE_MESSAGE(report.ok(), report.status().to_string());
    CHECK(report->num == 2 * (1'000 + 8 + 1));
    for (const auto& figure : report->more) {
      CAPTURE(figure.first);
      CHECK(std::isfinite(figure.second));
      CHECK((figure.second > 0 ||
             figure.first == "cpu_us_per_reading"));  // whole ticks of the kernel's clock
    }
    CHECK(report->figure("metadata_sync_p99_us") >= report->figure("metadata_sync_p50_us"));
    CHECK((report->figure("values_sync_p50_us") > 0) != values.empty());
    CHECK(report->figure("sensors_at_1_hz") ==
          doctest::Approx(2'000 / report->seconds).epsilon(0.001));
    CHECK(report->write_amplification >= 1);
    CHECK(report->peak_memory_bytes > 0);
    CHECK(report->table.find("sensors at one reading a second") != std::string::npos);
    REQUIRE(report->words.size() == 3);
    CHECK(report->words[0].first == "model");
    CHECK(std::filesystem::is_empty(directory / "m"));
    CHECK(std::filesystem::is_empty(directory / "v"));
  }
}

TEST_CASE("board: the same rounds are the same bytes, a store's directory and peers are refused") {
  const test::TempDirectory directory;
  BenchOptions options = board_smoke(directory.path(), "");
  options.num = 1;
  const auto one = run_board(options);
  const auto again = run_board(options);
  REQUIRE(one.ok());
  REQUIRE(again.ok());
  CHECK(one->num == 1'009);
  CHECK(one->user_bytes == again->user_bytes);
  options.peers = {"leveldb"};
  CHECK(run_board(options).status().code() == StatusCode::InvalidArgument);
  options.peers.clear();
  options.key_size = 11;
  CHECK(run_board(options).status().code() == StatusCode::InvalidArgument);
  options.key_size = 16;
  options.values = directory.path();
  CHECK(run_board(options).status().code() == StatusCode::InvalidArgument);
  options.values.clear();
  CHECK(std::filesystem::is_empty(directory.path()));
  test::write_file(directory / "IDENTITY", "x");
  CHECK(run_board(options).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("board: the model is the device tree's, else DMI's, else nobody knows") {
  const test::TempDirectory root;
  CHECK(look_at_machine(root.path()).model == "unknown");
  std::filesystem::create_directories(root / "sys/class/dmi/id");
  test::write_file(root / "sys/class/dmi/id/product_name", "Box 7\n");
  CHECK(look_at_machine(root.path()).model == "Box 7");
  test::write_file(root / "sys/class/dmi/id/sys_vendor", "Maker\n");
  CHECK(look_at_machine(root.path()).model == "Maker Box 7");
  std::filesystem::create_directories(root / "proc/device-tree");
  test::write_file(root / "proc/device-tree/model", std::string_view("NVIDIA Jetson\0", 14));
  test::write_file(root / "proc/meminfo", "MemFree: 1 kB\nMemTotal:  2048 kB\n");
  const Machine machine = look_at_machine(root.path());
  CHECK(machine.model == "NVIDIA Jetson");
  CHECK(machine.memory_bytes == 2048 * 1024);
  CHECK(machine.cores >= 1);
}

TEST_CASE("board: a drive that is not there is an error") {
  const test::TempDirectory directory;
  CHECK(measure_drive(directory / "none", 1 << 20, 1).status().code() == StatusCode::IoError);
  const auto figures = measure_drive(directory.path(), 1 << 20, 3);
  REQUIRE(figures.ok());
  CHECK(figures->free_bytes > 0);
  CHECK(figures->total_bytes >= figures->free_bytes);
  CHECK(figures->write_mb_per_second > 0);
  CHECK(figures->read_mb_per_second > 0);
  CHECK(std::filesystem::is_empty(directory.path()));
}
