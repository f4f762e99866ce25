#include "catalog/device_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "support/model_engine.h"

namespace edgecase::catalog {
namespace {

DeviceMetadata owned(const std::string& owner) {
  DeviceMetadata metadata;
  metadata.owner = owner;
  return metadata;
}

TEST_CASE("a record that changed while it was read is not kept") {
  RecentRecords recent;
  const std::uint64_t before = recent.changes();
  recent.note("kitchen", "one", before);
  CHECK(recent.find("kitchen") == "one");
  CHECK_FALSE(recent.find("cellar"));
  recent.forget("kitchen");
  CHECK_FALSE(recent.find("kitchen"));
  CHECK(recent.memory_bytes() == 0);
  recent.note("kitchen", "one", before);
  CHECK_FALSE(recent.find("kitchen"));
  recent.note("kitchen", "two", recent.changes());
  CHECK(recent.find("kitchen") == "two");
  const std::uint64_t then = recent.changes();
  recent.forget_all();
  recent.note("cellar", "three", then);
  CHECK(recent.memory_bytes() == 0);
}

TEST_CASE("recent records take no more than they may") {
  RecentRecords recent;
  recent.note("long", Bytes(RecentRecords::kRecordMaxBytes + 1, 'x'), recent.changes());
  CHECK_FALSE(recent.find("long"));
  std::size_t largest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Bytes name = std::to_string(i);
    recent.note(name, Bytes(100, 'r'), recent.changes());
    REQUIRE(recent.find(name));
    largest = std::max(largest, recent.memory_bytes());
  }
  CHECK(largest <= RecentRecords::kBytesMax);
  CHECK(largest > RecentRecords::kBytesMax / 10 * 9);
}

TEST_CASE("who asks again what is said of a device asks the engine once, until it changes") {
  edgecase::test::ModelEngine engine;
  const auto index = DeviceIndex::open(engine).value();
  const DeviceName kitchen{"home", "kitchen"};
  REQUIRE(index->set(kitchen, owned("alice")).ok());
  const std::uint64_t before = engine.stats().reads.gets;
  for (int i = 0; i < 5; ++i) CHECK(index->metadata(kitchen)->owner == "alice");
  CHECK(engine.stats().reads.gets == before + 1);
  REQUIRE(index->set(kitchen, owned("bob")).ok());
  CHECK(index->metadata(kitchen)->owner == "bob");
  // Whatever became of a change that failed.
  engine.fail_next_write(io_error("torn"));
  CHECK_FALSE(index->set(kitchen, owned("carol")).ok());
  const std::uint64_t after = engine.stats().reads.gets;
  CHECK(index->metadata(kitchen)->owner == "bob");
  CHECK(engine.stats().reads.gets == after + 1);
  REQUIRE(index->set(kitchen, {}).ok());
  CHECK(index->metadata(kitchen)->empty());
  REQUIRE(index->set(kitchen, owned("dave")).ok());
  CHECK(index->metadata(kitchen)->owner == "dave");
  REQUIRE(index->forget_namespace("home").ok());
  CHECK(index->metadata(kitchen)->empty());
}

TEST_CASE("who keeps what is said of devices is told of each change, whatever becomes of it") {
  edgecase::test::ModelEngine engine;
  const auto index = DeviceIndex::open(engine).value();
  const DeviceName kitchen{"home", "kitchen"};
  std::uint64_t told = 0;
  index->on_change([&] {
    ++told;
    // What is kept from here on is of what counts by now.
    static_cast<void>(index->metadata(kitchen).ok());
  });
  auto is_told = [&, seen = index->changes()]() mutable {
    const bool is_new = told > 0 && index->changes() > seen;
    told = 0;
    seen = index->changes();
    return is_new;
  };
  REQUIRE(index->set(kitchen, owned("alice")).ok());
  CHECK(is_told());
  CHECK(index->metadata(kitchen)->owner == "alice");
  CHECK_FALSE(is_told());
  engine.fail_next_write(io_error("torn"));
  CHECK_FALSE(index->set(kitchen, owned("bob")).ok());
  CHECK(is_told());
  Erased erased;
  erased.devices.push_back({});
  erased.devices.back().namespace_name = "home";
  erased.devices.back().device = "kitchen";
  {
    const MutexLock lock(index->change_lock());
    index->forget(erased);
  }
  CHECK(is_told());
  REQUIRE(index->forget_namespace("home").ok());
  CHECK(is_told());
}

TEST_CASE("nobody reads what was said of a device before what is known to be said") {
  edgecase::test::ModelEngine engine;
  const auto index = DeviceIndex::open(engine).value();
  const DeviceName kitchen{"home", "kitchen"};
  REQUIRE(index->set(kitchen, owned("0")).ok());
  constexpr int kChanges = 3'000;
  std::atomic<int> said{0};
  std::atomic<int> too_old{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (true) {
        const int at_least = said.load();
        if (std::stoi(index->metadata(kitchen)->owner) < at_least) ++too_old;
        if (at_least == kChanges) break;
      }
    });
  }
  for (int i = 1; i <= kChanges; ++i) {
    REQUIRE(index->set(kitchen, owned(std::to_string(i))).ok());
    said = i;
  }
  for (std::thread& each : readers) each.join();
  CHECK(too_old == 0);
}

}  // namespace
}  // namespace edgecase::catalog
