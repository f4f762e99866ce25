// The machine's file system and the simulated one, given the same random calls, answer the same: so
// what tests on the simulated disk show holds on the real one. Under the sanitizers it is also a
// stress of every buffer in between.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "edgecase/machine.h"
#include "file/posix_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr std::uint64_t kLogBytes = 200'000;

// One file system and the files that are open on it.
struct Side {
  Side(FileSystem& system, std::string top) : files(system), root(std::move(top)) {}
  std::string path(std::uint64_t number) const { return root + "/" + std::to_string(number); }

  FileSystem& files;
  std::string root;
  std::map<std::uint64_t, std::unique_ptr<WritableFile>> writing;
  std::map<std::uint64_t, std::unique_ptr<LogFile>> logs;
};

Bytes read_all(Side& side, std::uint64_t number) {
  auto file = side.files.open_file(side.path(number));
  if (!file.ok()) return std::string(status_code_name(file.status().code()));
  Bytes bytes((*file)->size_bytes() + 10, '?');
  const auto got = (*file)->read(0, bytes.size(), bytes.data());
  REQUIRE(got.ok());
  bytes.resize(*got);
  return bytes;
}

std::vector<std::string> names(Side& side) {
  const auto listed = side.files.list_directory(side.root);
  REQUIRE(listed.ok());
  std::vector<std::string> result;
  for (const DirectoryEntry& entry : *listed) result.push_back(entry.name);
  std::sort(result.begin(), result.end());
  return result;
}

struct Step {
  std::uint64_t kind;
  std::uint64_t number;
  std::uint64_t other;
  std::uint64_t offset;
  Bytes bytes;
};

StatusCode run(Side& side, const Step& step) {
  const bool writing = side.writing.contains(step.number);
  const bool log = side.logs.contains(step.number);
  switch (step.kind) {
    case 0: {
      if (writing || log) return StatusCode::Ok;
      auto file = side.files.create_file(side.path(step.number));
      if (!file.ok()) return file.status().code();
      side.writing[step.number] = std::move(file).value();
      return StatusCode::Ok;
    }
    case 1: {
      if (writing || log) return StatusCode::Ok;
      auto file = side.files.create_log_file(side.path(step.number), kLogBytes);
      if (!file.ok()) return file.status().code();
      side.logs[step.number] = std::move(file).value();
      return StatusCode::Ok;
    }
    case 2: return side.files.remove_file(side.path(step.number)).code();
    case 3:
      if (side.writing.contains(step.other) || side.logs.contains(step.other)) return {};
      return side.files.rename_file(side.path(step.number), side.path(step.other)).code();
    case 4:  // closed
      side.writing.erase(step.number);
      side.logs.erase(step.number);
      return side.files.sync_directory(side.root).code();
    default:
      if (writing && step.kind % 8 == 0) return side.writing[step.number]->sync().code();
      if (writing) return side.writing[step.number]->append(step.bytes).code();
      if (log && step.kind % 64 == 0) return side.logs[step.number]->sync().code();
      if (log) return side.logs[step.number]->write(step.offset, step.bytes).code();
      return StatusCode::Ok;
  }
}

}  // namespace

TEST_CASE("posix stress: the simulated file system answers as the real one") {
  const std::uint64_t start = test_seed(1);
  for (std::uint64_t seed = start; seed < start + 8; ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    const TempDirectory directory;
    MemoryFileSystem disk({"/m"});
    Side real(posix_file_system(), directory.path());
    Side simulated(disk, "/m");
    for (int i = 0; i < 1'500; ++i) {
      CAPTURE(i);
      Step step;
      step.kind = random.below(200);
      step.number = random.below(5);
      step.other = random.below(5);
      step.bytes.assign(random.below(random.below(30) == 0 ? 60'000 : 300),
                        static_cast<char>('a' + i % 26));
      step.offset = random.below(kLogBytes - step.bytes.size() + 1);
      REQUIRE(status_code_name(run(real, step)) == status_code_name(run(simulated, step)));
      if (i % 100 != 99) continue;
      for (Side* side : {&real, &simulated}) {
        for (auto& [number, file] : side->writing) REQUIRE(file->sync().ok());
      }
      REQUIRE(names(real) == names(simulated));
      for (std::uint64_t number = 0; number < 5; ++number) {
        REQUIRE(read_all(real, number) == read_all(simulated, number));
      }
    }
  }
}

TEST_CASE("posix log file: a sync leaves no dirty page, mapped ones included") {
#ifndef SYS_cachestat
  constexpr long kCachestat = 451;  // the same on every architecture
#else
  constexpr long kCachestat = SYS_cachestat;
#endif
  struct Range {
    std::uint64_t offset, length;
  };
  struct Pages {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  };
  const TempDirectory directory;
  auto created = engine::PosixLogFile::create(directory / "log", 4u << 20);
  REQUIRE(created.ok());
  auto descriptor = engine::open_descriptor(directory / "log", 0);
  REQUIRE(descriptor.ok());
  const auto unwritten = [&](Pages& pages) {
    Range range{0, 0};
    pages = {};
    return syscall(kCachestat, descriptor->number(), &range, &pages, 0) == 0;
  };
  Pages pages{};
  if (!unwritten(pages)) {
    MESSAGE("skipped: this kernel or file system does not count dirty pages");
    return;
  }
  LogFile& log = **created;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      REQUIRE(log.write((i * 100) % (2u << 20), Bytes(100, 'x')).ok());
    }
    REQUIRE(unwritten(pages));
    REQUIRE(log.sync().ok());
    REQUIRE(unwritten(pages));
    CHECK(pages.dirty == 0);
    CHECK(pages.writeback == 0);
  }
}
