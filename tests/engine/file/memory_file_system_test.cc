// The simulated disk is a measuring instrument: these tests are its calibration.
#include "support/memory_file_system.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <set>
#include <thread>

#include "support/manual_clock.h"
#include "support/manual_executor.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

std::unique_ptr<WritableFile> create(MemoryFileSystem& disk, const std::string& path,
                                     ByteView bytes) {
  auto file = disk.create_file(path);
  REQUIRE(file.ok());
  REQUIRE((*file)->append(bytes).ok());
  return std::move(file).value();
}

}  // namespace

TEST_CASE("simulated disk: a power cut keeps what file and directory syncs cover, no more") {
  MemoryFileSystem disk({"/m", "/v"});
  auto both = create(disk, "/m/both", "both");
  REQUIRE(both->sync().ok());
  REQUIRE(disk.sync_directory("/m").ok());
  REQUIRE(both->append(" and more").ok());
  auto no_directory = create(disk, "/v/no-directory", "x");
  REQUIRE(no_directory->sync().ok());
  auto no_sync = create(disk, "/m/no-sync", "x");
  REQUIRE(disk.sync_directory("/m").ok());
  CHECK(disk.contents("/m/both") == "both and more");

  disk.power_cut(1, CutPolicy::None);
  CHECK(disk.contents("/m/both") == "both");
  CHECK_FALSE(disk.exists("/v/no-directory"));
  CHECK(disk.exists("/m/no-sync"));
  CHECK(disk.contents("/m/no-sync").empty());
  CHECK_FALSE(both->append("later").ok());  // of a machine that is gone
  CHECK(disk.contents("/m/both") == "both");
}

TEST_CASE("simulated disk: unsynced renames and removals may come back") {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    MemoryFileSystem disk({"/m"});
    for (const char* name : {"/m/CURRENT", "/m/CURRENT.new", "/m/old"}) {
      REQUIRE(create(disk, name, name)->sync().ok());
    }
    REQUIRE(disk.sync_directory("/m").ok());
    REQUIRE(disk.rename_file("/m/CURRENT.new", "/m/CURRENT").ok());
    REQUIRE(disk.remove_file("/m/old").ok());
    disk.power_cut(seed, CutPolicy::Sectors);
    const Bytes current = disk.contents("/m/CURRENT");
    const bool renamed = current == "/m/CURRENT.new";
    CHECK((renamed || current == "/m/CURRENT"));
    CHECK(disk.exists("/m/CURRENT.new") != renamed);
    outcomes.insert(std::string(renamed ? "renamed" : "kept") +
                    (disk.exists("/m/old") ? " old" : " removed"));
  }
  CHECK(outcomes.size() == 4);
}

TEST_CASE("simulated disk: what lies in a directory that was never synced is gone with it") {
  MemoryFileSystem disk({"/m"});
  REQUIRE(disk.create_directory("/m/tables").ok());
  REQUIRE(create(disk, "/m/tables/1", "x")->sync().ok());
  REQUIRE(disk.sync_directory("/m/tables").ok());
  disk.power_cut(1, CutPolicy::None);
  CHECK_FALSE(disk.exists("/m/tables/1"));
  CHECK_FALSE(disk.exists("/m/tables"));
}

TEST_CASE("simulated disk: every policy keeps durable bytes and its own part of the others") {
  const Bytes old_bytes(4 * kSectorBytes, 'o');
  for (const CutPolicy policy : {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                 CutPolicy::Sectors, CutPolicy::Torn, CutPolicy::Any}) {
    std::set<Bytes> outcomes;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      CAPTURE(seed);
      MemoryFileSystem disk({"/m"});
      auto log = disk.create_log_file("/m/log", old_bytes.size());
      REQUIRE(log.ok());
      REQUIRE(disk.sync_directory("/m").ok());
      REQUIRE((*log)->write(0, old_bytes).ok());
      REQUIRE((*log)->sync().ok());
      REQUIRE((*log)->write(100, Bytes(1000, 'a')).ok());
      REQUIRE((*log)->write(1500, Bytes(100, 'b')).ok());
      disk.power_cut(seed, policy);
      const Bytes got = disk.contents("/m/log");
      REQUIRE(got.size() == old_bytes.size());
      CHECK(got.substr(0, 100) == old_bytes.substr(0, 100));
      CHECK(got.substr(1100, 400) == old_bytes.substr(1100, 400));
      CHECK(got.substr(1600) == old_bytes.substr(1600));
      if (policy == CutPolicy::Prefix && got[1500] == 'b') CHECK(got[1099] == 'a');
      if (policy == CutPolicy::Sectors) {
        CHECK(got.substr(512, 512) == Bytes(512, got[512]));  // sectors are whole
      }
      outcomes.insert(got);
    }
    if (policy == CutPolicy::None || policy == CutPolicy::All) CHECK(outcomes.size() == 1);
    if (policy == CutPolicy::Sectors) CHECK(outcomes.size() == 32);  // 3 + 2 pieces
    if (policy == CutPolicy::Prefix || policy == CutPolicy::Any) CHECK(outcomes.size() > 20);
  }
}

TEST_CASE("simulated disk: the same seed gives the same cut") {
  const auto run = [](std::uint64_t seed) {
    MemoryFileSystem disk({"/m", "/v"});
    for (int i = 0; i < 20; ++i) {
      const std::string name = (i % 2 ? "/m/" : "/v/") + std::to_string(i);
      auto file = create(disk, name, Bytes(static_cast<std::size_t>(i) * 300, 'x'));
      if (i % 3 == 0) REQUIRE(file->sync().ok());
    }
    disk.power_cut(seed, CutPolicy::Any);
    return disk.durable_contents();
  };
  CHECK(run(4) == run(4));
  CHECK(run(4) != run(5));
}

TEST_CASE("simulated disk: killing the process keeps log bytes and may drop buffered ones") {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    MemoryFileSystem disk({"/m"});
    auto log = disk.create_log_file("/m/log", 1000);
    REQUIRE((*log)->write(10, "record").ok());
    auto file = create(disk, "/m/file", "synced");
    REQUIRE(file->sync().ok());
    REQUIRE(file->append("buffered").ok());
    auto lock = disk.lock_file("/m/LOCK");
    REQUIRE(lock.ok());
    disk.kill_process(seed);
    CHECK(disk.contents("/m/log").substr(10, 6) == "record");
    CHECK(disk.contents("/m/file").starts_with("synced"));
    CHECK(disk.lock_file("/m/LOCK").ok());
    CHECK_FALSE((*log)->write(0, "x").ok());
    sizes.insert(disk.contents("/m/file").size());
  }
  CHECK(sizes.size() > 5);
}

TEST_CASE("simulated disk: the nth operation fails, once or from then on, on one drive or all") {
  MemoryFileSystem disk({"/m", "/v"});
  disk.fail_nth(Operation::CreateFile, 2, ENOSPC, FaultMode::Once);
  CHECK(disk.create_file("/m/1").ok());
  CHECK(disk.create_file("/m/2").status().code() == StatusCode::OutOfSpace);
  CHECK(disk.create_file("/m/2").ok());
  CHECK(disk.faults() == 1);
  disk.fail_nth(Operation::Any, 1, EIO, FaultMode::Sticky, "/v");
  CHECK(disk.create_file("/m/3").ok());
  CHECK(disk.create_file("/v/3").status().code() == StatusCode::IoError);
  CHECK(disk.sync_directory("/v").code() == StatusCode::IoError);
  disk.clear_faults();
  CHECK(disk.create_file("/v/3").ok());
}

TEST_CASE("simulated disk: a sync that failed has lost the bytes, whatever a later one says") {
  MemoryFileSystem disk({"/m"});
  auto log = disk.create_log_file("/m/log", 100);
  REQUIRE(disk.sync_directory("/m").ok());
  REQUIRE((*log)->write(0, "lost").ok());
  disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Once);
  CHECK((*log)->sync().code() == StatusCode::IoError);
  CHECK((*log)->sync().code() == StatusCode::IoError);  // the file is given up
  auto again = disk.open_log_file("/m/log");
  REQUIRE(again.ok());
  CHECK(disk.contents("/m/log").starts_with("lost"));  // still in the cache
  CHECK((*again)->sync().ok());
  disk.power_cut(1, CutPolicy::All);
  CHECK(disk.contents("/m/log") == Bytes(100, '\0'));
}

TEST_CASE("simulated disk: what is written durably is, and nothing else of its file") {
  MemoryFileSystem disk({"/m"});
  auto log = disk.create_log_file("/m/log", 12);
  REQUIRE(disk.sync_directory("/m").ok());
  REQUIRE((*log)->write(0, "aaaaaaaaaaaa").ok());
  REQUIRE((*log)->write_durably(4, "bbbb").ok());
  REQUIRE((*log)->write(6, "cccc").ok());
  CHECK(disk.contents("/m/log") == "aaaabbccccaa");
  const Bytes zeros(4, '\0');
  CHECK(disk.durable_contents().at("/m/log") == zeros + "bbbb" + zeros);
  REQUIRE((*log)->sync().ok());
  CHECK(disk.durable_contents().at("/m/log") == "aaaabbccccaa");
}

TEST_CASE("simulated disk: a full drive takes no more until something is removed") {
  MemoryFileSystem disk({"/m", "/m/v"});
  disk.set_capacity("/m", 1000);
  CHECK(disk.space("/m")->total_bytes == 1000);
  CHECK(disk.space("/m")->device != disk.space("/m/v")->device);
  create(disk, "/m/v/elsewhere", Bytes(5000, 'x'));
  auto log = disk.create_log_file("/m/log", 800);
  REQUIRE(log.ok());
  auto file = disk.create_file("/m/a");
  REQUIRE(file.ok());
  CHECK((*file)->append(Bytes(300, 'x')).code() == StatusCode::OutOfSpace);
  CHECK((*file)->append("x").code() == StatusCode::OutOfSpace);  // given up
  CHECK((*log)->write(0, Bytes(800, 'l')).ok());                 // its blocks are there
  REQUIRE(disk.remove_file("/m/a").ok());
  auto next = disk.create_file("/m/b");
  CHECK((*next)->append(Bytes(200, 'x')).ok());
}

TEST_CASE("simulated disk: a pulled drive seems to write until somebody syncs") {
  MemoryFileSystem disk({"/m", "/v"});
  auto file = create(disk, "/v/a", "before");
  REQUIRE(file->sync().ok());
  REQUIRE(disk.sync_directory("/v").ok());
  disk.set_gone("/v", true);
  CHECK(file->append(" lost").ok());
  CHECK(file->sync().code() == StatusCode::IoError);
  CHECK(disk.create_file("/v/b").status().code() == StatusCode::IoError);
  CHECK(disk.open_file("/v/a").status().code() == StatusCode::IoError);
  CHECK(disk.create_file("/m/b").ok());
  disk.set_gone("/v", false);
  disk.power_cut(1, CutPolicy::All);
  CHECK(disk.contents("/v/a") == "before");
}

TEST_CASE("simulated disk: a stopped machine does nothing more until the power is back") {
  MemoryFileSystem disk({"/m"});
  auto file = create(disk, "/m/a", "one");
  disk.stop_at(2);
  REQUIRE(file->sync().ok());
  CHECK_FALSE(disk.stopped());
  CHECK_FALSE(disk.sync_directory("/m").ok());
  CHECK(disk.stopped());
  CHECK_FALSE(disk.create_file("/m/b").ok());
  disk.power_cut(1, CutPolicy::None);
  CHECK_FALSE(disk.exists("/m/a"));
  CHECK(disk.create_file("/m/b").ok());
}

TEST_CASE("simulated disk: used from several threads") {
  MemoryFileSystem disk({"/m"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&disk, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string path = "/m/" + std::to_string(t) + "-" + std::to_string(i);
        auto file = disk.create_file(path);
        if (file.ok() && (*file)->append("x").ok() && (*file)->sync().ok()) {
          (void)disk.sync_directory("/m");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(disk.list_directory("/m")->size() == 200);
}

TEST_CASE("manual executor: tasks run when told, delayed ones when due") {
  ManualExecutor executor;
  std::vector<int> seen;
  executor.schedule_after(Lane::Flush, 100, [&] { seen.push_back(3); });
  executor.schedule(Lane::Compaction, [&] { seen.push_back(2); });
  executor.schedule(Lane::Flush, [&] { seen.push_back(1); });
  CHECK(executor.run_all() == 2);
  executor.advance(99);
  CHECK_FALSE(executor.run_one());
  executor.advance(1);
  CHECK(executor.run_one());
  CHECK(seen == std::vector<int>{1, 2, 3});
  executor.schedule(Lane::Flush, [&] { seen.push_back(4); });
  executor.drop_all();
  CHECK(executor.run_all() == 0);
}

TEST_CASE("manual clock: time passes on both clocks, a set clock moves one") {
  ManualClock clock;
  const std::int64_t wall = clock.wall_ns();
  const std::int64_t boot = clock.boot_ns();
  clock.advance(5);
  CHECK(clock.wall_ns() == wall + 5);
  CHECK(clock.boot_ns() == boot + 5);
  clock.set_wall_ns(0);
  CHECK(clock.wall_ns() == 0);
  CHECK(clock.boot_ns() == boot + 5);
}
