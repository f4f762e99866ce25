// Relocation slice by slice: what a slice leaves reads as before, and what it frees goes before the
// next one.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/compaction/slices_fixture.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

using test::EngineFixture;

TEST_CASE("a relocation in slices keeps every key, and frees what it has passed" *
          doctest::test_suite("bulk")) {
  SlicesFixture store(slices_seed());
  constexpr std::uint64_t kStoreKeys = 20'000;
  constexpr std::uint64_t kPieceBytes = 16u << 10;
  for (int run = 0; run < 9; ++run) store.add_run(kStoreKeys, 2'000, kPieceBytes);
  const auto before = store.contents();
  const std::uint64_t bytes_before = store.value_bytes();
  std::set<FileNumber> runs;
  for (const Run& run : store.state.version->trees.at(1)) runs.insert(run.number);
  constexpr std::uint64_t kSliceBytes = 64u << 10;
  FileNumber output_run = 0;
  std::size_t slices = 0;
  for (bool more = true; more; ++slices) {
    REQUIRE(slices < 200);
    MergePlan plan;
    plan.mode = MergeMode::Relocate;
    plan.slice_bytes = kSliceBytes;
    plan.output_run = output_run;
    for (const Run& run : store.state.version->trees.at(1))
      if (runs.contains(run.number)) plan.groups.push_back(run.tables);
    plan.set_surroundings(*store.state.version);
    std::vector<FileNumber> made_runs;
    store.merge(plan, &made_runs);
    more = store.left_rest;
    for (const FileNumber run : made_runs)
      if (!runs.contains(run)) output_run = run;
    CAPTURE(slices);
    CHECK(store.contents() == before);
    // A slice takes, beside itself, the piece of each run that it stands in.
    CHECK(store.value_bytes() <= bytes_before + 9 * (kPieceBytes + 2048) + 2 * kSliceBytes);
  }
  CHECK(slices > 5);
  CHECK(store.state.version->trees.at(1).size() == 1);
  CHECK(store.value_bytes() < bytes_before);
}

TEST_CASE("what is less than a slice is relocated at once") {
  SlicesFixture store(7);
  store.add_run(100, 50, UINT64_MAX);
  store.add_run(100, 50, UINT64_MAX);
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.slice_bytes = 1u << 20;
  for (const Run& run : store.state.version->trees.at(1)) plan.groups.push_back(run.tables);
  plan.set_surroundings(*store.state.version);
  MergeJob job(*store.cache, store.context(), plan, nullptr);
  const auto stepped = job.step(1u << 20, 1u << 20);
  REQUIRE(stepped.ok());
  REQUIRE(*stepped);
  CHECK_FALSE(job.leaves_rest());
  CHECK(job.replaced_tables().size() == 2);
}

struct OverwrittenStore : EngineFixture {
  OverwrittenStore() {
    options.memtable_bytes = 128u << 10;
    options.group_bytes = 2048;
    options.compress = false;
    REQUIRE(open().ok());
    make_namespace("default");
  }
  std::uint64_t bytes_on_drives() {
    std::uint64_t bytes = 0;
    for (const char* directory : {"/v/store", "/m/store/tables"}) {
      const auto entries = disk.list_directory(directory);
      REQUIRE(entries.ok());
      for (const DirectoryEntry& entry : *entries) {
        const auto size = disk.file_size(std::string(directory) + "/" + entry.name);
        if (size.ok()) bytes += *size;
      }
    }
    return bytes;
  }
};

TEST_CASE("a store that comes to rest after updates is never on the drives twice" *
          doctest::test_suite("bulk")) {
  OverwrittenStore store;
  SeededRandom random(slices_seed());
  constexpr std::uint64_t kStoreKeys = 20'000;
  std::map<Bytes, Bytes> model;
  const auto put = [&](std::uint64_t i) {
    const Bytes key = "key" + std::to_string(i);
    const Bytes value = std::to_string(random.next()) + Bytes(200, 'v');
    model.insert_or_assign(key, value);
    REQUIRE(store.put(1, key, value, Durability::Async).ok());
  };
  for (std::uint64_t i = 0; i < kStoreKeys; ++i) put(i);
  for (std::uint64_t i = 0; i < 3 * kStoreKeys; ++i) put(random.below(kStoreKeys));
  REQUIRE(store.engine->flush().ok());
  std::uint64_t live_bytes = 0;
  for (const auto& [key, value] : model) live_bytes += key.size() + value.size();
  const std::uint64_t begin_bytes = store.bytes_on_drives();
  REQUIRE(begin_bytes > 2 * live_bytes);
  std::uint64_t peak = begin_bytes;
  std::uint64_t relocations = 0;
  for (int second = 0; second < 10; ++second) {
    store.clock.advance(1'100'000'000);
    store.executor.advance(1'100'000'000);
    // The process may end in the middle of it.
    std::uint64_t turns = second < 5 ? random.below(300) : UINT64_MAX;
    while (turns-- > 0 && store.executor.run_one()) peak = std::max(peak, store.bytes_on_drives());
    relocations += store.engine->stats().compaction.relocations;
    store.reopen();
  }
  CHECK(relocations > 3);
  // What lives would be there twice if all of it were relocated at once.
  CHECK(peak < begin_bytes + live_bytes / 2);
  CHECK(store.bytes_on_drives() < live_bytes * 115 / 100);
  auto iterator = store.engine->scan(1, {}, {});
  REQUIRE(iterator.ok());
  std::map<Bytes, Bytes> found;
  for (auto& at = **iterator; at.valid(); at.next()) found.emplace(at.key(), at.value());
  CHECK(found == model);
}

}  // namespace
}  // namespace edgecase::engine
