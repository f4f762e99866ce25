#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "core/pacer.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {

// FairPace: who pays for it that writers outrun merges.

namespace {

constexpr std::int64_t kNowNs = 1'000'000'000;
constexpr double kNsPerByte = 10;

// Flushes run when they are asked to, merges never. Who is held back and finds none does
// `meanwhile`, if anything, and waits no longer.
class FlushesAlone final : public Executor {
 public:
  std::function<void()> meanwhile;

  bool is_idle() const { return flushes_.empty(); }
  void schedule(Lane lane, std::function<void()> task) override {
    if (lane == Lane::Flush) flushes_.push_back(std::move(task));
  }
  void schedule_after(Lane, std::int64_t, std::function<void()>) override {}
  bool run_one() override {
    if (flushes_.empty()) {
      if (meanwhile) std::exchange(meanwhile, {})();
      return true;
    }
    const auto flush = std::move(flushes_.front());
    flushes_.pop_front();
    flush();
    return true;
  }

 private:
  std::deque<std::function<void()>> flushes_;
};

struct StoreWithoutMerges : test::EngineFixture {
  StoreWithoutMerges() {
    options.memtable_bytes = 64u << 10;
    threads = std::make_unique<FlushesAlone>();
    REQUIRE(open().ok());
  }
  ~StoreWithoutMerges() { close(); }  // before its executor

  FlushesAlone& flushes() { return static_cast<FlushesAlone&>(*threads); }
  // Until a byte costs more than a tenth of a microsecond.
  void get_far_ahead(NamespaceId id) {
    constexpr int kMegabytesMax = 64;
    for (int i = 0; i < kMegabytesMax && engine->stats().compaction.level0_tables < 160; ++i)
      put_bytes(id, 1u << 20);
    REQUIRE(engine->stats().compaction.level0_tables >= 160);
  }
  // How long that was held back.
  std::uint64_t put_bytes(NamespaceId id, std::uint64_t bytes) {
    const std::uint64_t before = engine->stats().stall_ns;
    for (std::uint64_t done = 0; done < bytes; done += kValueBytes) {
      const Bytes key = "key" + std::to_string(next_key_++);
      REQUIRE(put(id, key, Bytes(kValueBytes, 'v'), Durability::Async).ok());
      while (!flushes().is_idle()) static_cast<void>(flushes().run_one());
      clock.advance(1'000);
    }
    return engine->stats().stall_ns - before;
  }

 private:
  static constexpr std::size_t kValueBytes = 500;
  std::uint64_t next_key_ = 0;
};

}  // namespace

TEST_CASE("fair pace: who writes alone pays for each byte, less what it let pass") {
  FairPace pace;
  CHECK(pace.charge({1}, 300'000, kNsPerByte, kNowNs) ==
        kNowNs - FairPace::kCreditMaxNs + 3'000'000);
  CHECK(pace.charge({1}, 100'000, kNsPerByte, kNowNs) ==
        kNowNs - FairPace::kCreditMaxNs + 4'000'000);
  const std::int64_t later_ns = kNowNs + 10'000'000;
  CHECK(pace.charge({1}, 100'000, kNsPerByte, later_ns) ==
        later_ns - FairPace::kCreditMaxNs + 1'000'000);
}

TEST_CASE("fair pace: nobody owes more than the most, and nothing once it is remitted") {
  FairPace pace;
  CHECK(pace.charge({1}, 1u << 30, kNsPerByte, kNowNs) > kNowNs + FairPace::kOwedMaxNs);
  CHECK(pace.charge({1}, 0, kNsPerByte, kNowNs) == kNowNs + FairPace::kOwedMaxNs);
  pace.remit();
  CHECK(pace.charge({1}, 0, kNsPerByte, kNowNs) == kNowNs - FairPace::kCreditMaxNs);
}

TEST_CASE("fair pace: half an equal share is free, who pays pays for as many as do") {
  struct Row {
    std::uint64_t heavy_bytes, light_bytes;
    double charged;  // times the price, of the light one's
  };
  for (const Row& row : {Row{1'000'000, 10'000, 0}, Row{750'000, 250'000, 0},
                         Row{625'000, 375'000, 0.5 * 1.5}, Row{500'000, 500'000, 2}}) {
    CAPTURE(row.light_bytes);
    FairPace pace;
    static_cast<void>(pace.charge({1}, row.heavy_bytes, kNsPerByte, kNowNs));
    const std::int64_t owed_ns =
        pace.charge({2}, row.light_bytes, kNsPerByte, kNowNs) - (kNowNs - FairPace::kCreditMaxNs);
    const double whole_ns = static_cast<double>(row.light_bytes) * kNsPerByte;
    CHECK(static_cast<double>(owed_ns) == doctest::Approx(row.charged * whole_ns));
  }
}

TEST_CASE("fair pace: together many are as slow as one") {
  constexpr std::uint64_t kTenants = 8, kRounds = 100, kBytes = 100'000;
  FairPace pace;
  std::int64_t until_ns = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round)
    for (NamespaceId id = 1; id <= kTenants; ++id)
      until_ns = std::max(until_ns, pace.charge({id}, kBytes, 1, kNowNs));
  const double whole_ns = kTenants * kRounds * kBytes;
  CHECK(static_cast<double>(until_ns - kNowNs) == doctest::Approx(whole_ns).epsilon(0.15));
}

TEST_CASE("fair pace: a batch of several waits for the one that owes most") {
  FairPace pace;
  const std::int64_t heavy_until_ns = pace.charge({1}, 1'000'000, kNsPerByte, kNowNs);
  CHECK(pace.charge({2}, 1'000, kNsPerByte, kNowNs) < kNowNs);
  CHECK(pace.charge({2, 1}, 2'000, kNsPerByte, kNowNs) > heavy_until_ns);
}

TEST_CASE("fair pace: what was written long ago counts for nothing") {
  FairPace pace;
  static_cast<void>(pace.charge({1}, FairPace::kMemoryBytes - 1, 0, kNowNs));
  // The other writes as much, then much more.
  for (int i = 0; i < 60; ++i)
    static_cast<void>(pace.charge({2}, FairPace::kMemoryBytes / 2, 0, kNowNs));
  CHECK(pace.charge({2}, 300'000, kNsPerByte, kNowNs) ==
        kNowNs - FairPace::kCreditMaxNs + 3'000'000);
  CHECK(pace.charge({1}, 300'000, kNsPerByte, kNowNs) < kNowNs);
}

TEST_CASE("a namespace that writes little is not held back for one that writes much") {
  StoreWithoutMerges store;
  const NamespaceId heavy = store.make_namespace("heavy");
  const NamespaceId light = store.make_namespace("light");
  store.get_far_ahead(heavy);
  CHECK(store.put_bytes(light, 50'000) == 0);
  CHECK(store.put_bytes(heavy, 500'000) > 0);
  CHECK(store.put_bytes(light, 50'000) == 0);
  // As soon as it writes much it pays as the other one does.
  CHECK(store.put_bytes(light, 4u << 20) > 0);
}

TEST_CASE("while one is held back, others write") {
  StoreWithoutMerges store;
  const NamespaceId heavy = store.make_namespace("heavy");
  const NamespaceId light = store.make_namespace("light");
  store.get_far_ahead(heavy);
  std::future<Status> other;
  bool is_done = false;
  store.flushes().meanwhile = [&] {
    other = std::async(std::launch::async, [&] { return store.put(light, "key", "value"); });
    is_done = other.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  };
  CHECK(store.put_bytes(heavy, 1u << 20) > 0);
  REQUIRE(other.valid());
  CHECK(is_done);
  CHECK(other.get().ok());
}

namespace {

constexpr std::uint64_t kUseful = 1000;

TEST_CASE("garbage limit: that of a store as it is, where little is garbage") {
  GarbageLimit limit;
  CHECK(limit.next(0.8, 0, 0, 0, kUseful) == doctest::Approx(0.8));
  CHECK(limit.next(0.8, 0.1, 0, 100, kUseful) == doctest::Approx(0.8));
  // It stops growing: at once, since there is none to be rid of.
  CHECK(limit.next(0.2, 0.1, 0, 200, kUseful) == doctest::Approx(0.2));
  CHECK(limit.next(0.2, 0.9, 0, 300, kUseful) == doctest::Approx(0.2));
}

TEST_CASE("garbage limit: what a store that stops growing holds falls by and by") {
  GarbageLimit limit;
  limit.next(0.8, 0.7, 0, 0, kUseful);
  CHECK(limit.next(0.2, 0.7, 0, 0, kUseful) == doctest::Approx(0.7));
  CHECK(limit.next(0.2, 0.75, 0, 400, kUseful) == doctest::Approx(0.6));
  // As fast as it is cleaned, where that is faster; and it never rises.
  CHECK(limit.next(0.2, 0.5, 0, 400, kUseful) == doctest::Approx(0.5));
  CHECK(limit.next(0.2, 0.9, 0, 400, kUseful) == doctest::Approx(0.5));
  CHECK(limit.next(0.2, 0.9, 0, 4000, kUseful) == doctest::Approx(0.2));
  // But for a store that grows again.
  CHECK(limit.next(0.6, 0.9, 0, 4000, kUseful) == doctest::Approx(0.6));
}

TEST_CASE("garbage limit: what was not worth cleaning may stay, until merges have had the time") {
  GarbageLimit limit;
  CHECK(limit.next(0.2, 0.3, 0.4, 100, kUseful) == doctest::Approx(0.4));
  // They work now, and have written a fifth of all that is useful.
  CHECK(limit.next(0.2, 0.38, 0, 300, kUseful) == doctest::Approx(0.35));
  CHECK(limit.next(0.2, 0.5, 0, 4000, kUseful) == doctest::Approx(0.2));
  CHECK(limit.next(0.2, 0.3, 0.4, 4000, kUseful) == doctest::Approx(0.4));
}

}  // namespace

// When writers are slowed down for garbage, and when that would free nothing.

namespace {

using test::EngineFixture;

// 20 MB of single values, each value file a part of the keys; on a drive that is no longer roomy,
// so that the store is held to what it needs.
struct SettledStore : EngineFixture {
  static constexpr std::uint64_t kValues = 4'000;
  static constexpr std::size_t kValueBytes = 5'000;

  SettledStore() {
    disk.set_capacity("/v", 35u << 20);
    options.compress = false;
    REQUIRE(open().ok());
    make_namespace("default");
    for (std::uint64_t i = 0; i < kValues; ++i) put_value(i);
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->compact({1}, {}).ok());
    executor.run_all();
  }

  void put_value(std::uint64_t i) {
    const Bytes key = "key" + std::to_string(100'000 + i);
    REQUIRE(put(1, key, Bytes(kValueBytes, 'v'), Durability::Async).ok());
  }
  // One of each hundred keys: of each file as many.
  void put_again(std::uint64_t of_hundred) {
    for (std::uint64_t i = of_hundred; i < kValues; i += 100) put_value(i);
    REQUIRE(engine->flush().ok());
    executor.run_all();
  }
  double garbage() const {
    return static_cast<double>(engine->stats().values.live_bytes) /
               static_cast<double>(kValues * kValueBytes) -
           1;
  }
};

}  // namespace

TEST_CASE("a store of which all dies alike is cleaned in time, and writers hardly wait before") {
  SettledStore store;
  const Stats before = store.engine->stats();
  double most = 0;
  for (std::uint64_t of_hundred = 0; of_hundred < 80; ++of_hundred) {
    store.put_again(of_hundred);
    most = std::max(most, store.garbage());
  }
  const Stats after = store.engine->stats();
  CAPTURE(most);
  CHECK(most > 0.2);  // where writers would be slowed down
  CHECK(most < 0.28);
  CHECK(after.compaction.relocations > before.compaction.relocations);
  // The lane had done all that was worth it before each put. With pauses it would be 27 ms.
  CHECK(after.stall_ns - before.stall_ns < 10'000'000);
}

}  // namespace edgecase::engine
