#include "bench/experiments/slow_file_system.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "edgecase/engine.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("slow file system: bytes and syncs below its directory take their time") {
  const test::TempDirectory directory;
  std::filesystem::create_directory(directory / "slow");
  std::filesystem::create_directory(directory / "slower");  // the name alone is no place
  SlowFileSystem files(posix_file_system(), directory / "slow", {1e6, 0.02});
  const std::string piece(50'000, 'x');
  const auto write = [&](const std::string& path) {
    auto file = files.create_file(path);
    REQUIRE(file.ok());
    REQUIRE((*file)->append(piece).ok());
    REQUIRE((*file)->sync().ok());
    CHECK((*file)->size_bytes() == piece.size());
  };
  CHECK(seconds_of([&] { write(directory / "slow/a"); }) >= 0.069);  // 50 ms and 20
  // What lies elsewhere is not held up by what is under way.
  const auto read = [&](const std::string& path) {
    auto file = files.open_file(path);
    REQUIRE(file.ok());
    std::string buffer(piece.size(), '\0');
    const auto got = (*file)->read(0, buffer.size(), buffer.data());
    REQUIRE(got.ok());
    CHECK(*got == piece.size());
    CHECK(buffer == piece);
  };
  CHECK(seconds_of([&] { read(directory / "slow/a"); }) >= 0.049);
  write(directory / "slower/b");
  read(directory / "slower/b");
  CHECK(seconds_of([&] { REQUIRE(files.sync_directory(directory / "slow/").ok()); }) >= 0.019);
}

TEST_CASE("slow file system: a log is written at the drive's speed, from the start") {
  const test::TempDirectory directory;
  SlowFileSystem files(posix_file_system(), directory.path(), {1e6, 0.01});
  std::unique_ptr<LogFile> log;
  CHECK(seconds_of([&] {
          auto made = files.create_log_file(directory / "log", 40'000);
          REQUIRE(made.ok());
          log = *std::move(made);
        }) >= 0.039);
  CHECK(log->capacity_bytes() == 40'000);
  CHECK(seconds_of([&] {
          REQUIRE(log->write(0, std::string(30'000, 'l')).ok());
          REQUIRE(log->sync().ok());
        }) >= 0.039);
  CHECK(files.create_file(directory / "log").status().code() == StatusCode::AlreadyExists);
  CHECK(files.open_file(directory / "none").status().code() == StatusCode::NotFound);
  CHECK(files.file_size(directory / "log").ok());
  CHECK(files.remove_file(directory / "log").ok());
}

TEST_CASE("slow file system: those who share the drive share its rate") {
  DriveClock clock({1e6, 0});
  CHECK(seconds_of([&] {
          for (int i = 0; i < 100; ++i) clock.transfer(1'000);
        }) >= 0.098);  // all but what may be ahead
}

TEST_CASE("slow file system: two writers of a store on it share syncs, though they take turns") {
  const test::TempDirectory directory;
  SlowFileSystem files(posix_file_system(), directory.path(), {1e9, 0.002});
  Options options;
  options.metadata_directory = directory / "metadata";
  options.values_directory = directory / "values";
  const auto executor = make_thread_executor();
  EventListener listener;
  auto opened =
      Engine::open(options, {files, system_clock(), system_random(), *executor, listener});
  REQUIRE(opened.ok());
  Engine& engine = **opened;
  const NamespaceId id = *engine.create_namespace("default", {});
  constexpr std::uint64_t kPuts = 100;
  const auto groups_of_round = [&] {
    const std::uint64_t before = engine.stats().commit_groups;
    const auto put_all = [&](const std::string& key) {
      for (std::uint64_t i = 0; i < kPuts; ++i) {
        WriteBatch batch;
        batch.put(id, key, std::to_string(i));
        REQUIRE(engine.write(batch, Durability::Sync).ok());
      }
    };
    std::thread other([&] { put_all("a"); });
    put_all("b");
    other.join();
    return engine.stats().commit_groups - before;
  };
  // Each alone is 2 * kPuts. A busy machine may let one of them come too late.
  std::uint64_t groups = groups_of_round();
  for (int round = 1; round < 10 && groups > kPuts * 3 / 2; ++round) groups = groups_of_round();
  CHECK(groups <= kPuts * 3 / 2);
}
