#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/erase/erase_room.h"
#include "erase/erase_jobs.h"

namespace edgecase::erase {

// When bytes go: at once after one erasure, together after many.

namespace {

using namespace test;
using std::chrono::steady_clock;

// Nobody ever lets it come to that.
constexpr std::int64_t kLong = 120 * kSecond;

bool is_early(steady_clock::time_point begun) {
  return steady_clock::now() - begun < std::chrono::nanoseconds(kLong / 2);
}

TEST_CASE("who waits for a certificate ends a rest") {
  Room room;
  room.fill("kitchen", "temp");
  const auto erased = room.erase("kitchen");
  REQUIRE(erased.ok());
  const auto begun = steady_clock::now();
  Result<Certificate> answer = not_found("nobody has asked");
  std::thread client([&] { answer = room.service->wait(erased->number, kLong); });
  room.service->rest(kLong);
  CHECK(is_early(begun));
  CHECK(room.service->drain().ok());
  client.join();
  REQUIRE(answer.ok());
  CHECK(answer->state == ErasureState::Done);
}

TEST_CASE("a rest goes on while nobody waits for what is pending") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("cellar", "temp");
  const auto done = room.erase("kitchen");
  REQUIRE(done.ok());
  REQUIRE(room.service->drain().ok());
  const auto pending = room.erase("cellar");
  REQUIRE(pending.ok());
  // Nobody waits for what is done, or for no time at all.
  CHECK(room.service->wait(done->number, kLong)->state == ErasureState::Done);
  CHECK(room.service->wait(pending->number, 0)->state == ErasureState::Pending);
  const auto begun = steady_clock::now();
  room.service->rest(kSecond / 10);
  CHECK(steady_clock::now() - begun >= std::chrono::milliseconds(100));
}

TEST_CASE("many ranges of keys that are pending end a rest") {
  Room room;
  for (std::uint64_t i = 0; i < kHurriedRanges; ++i)
    REQUIRE(room.write("device" + std::to_string(i), "temp", kNow - kHour));
  // Between the readings of two series lie times that stay.
  EraseRequest request = Room::request("*");
  request.from_ns = kNow - 2 * kHour;
  request.to_ns = kNow;
  REQUIRE(room.service->erase(local(), request).ok());
  REQUIRE(room.service->pending_count() == 1);
  const auto begun = steady_clock::now();
  room.service->rest(kLong);
  CHECK(is_early(begun));
}

TEST_CASE("many that are pending end a rest, and so does the end") {
  Room room;
  const auto begun = steady_clock::now();
  std::thread resting([&] { room.service->rest(kLong); });
  for (std::size_t i = 0; i < kHurriedPending; ++i) {
    room.clock.advance(kSecond);
    REQUIRE(room.write("kitchen", "temp", room.clock.wall_ns()));
    REQUIRE(room.erase("kitchen").ok());
  }
  resting.join();
  CHECK(is_early(begun));
  REQUIRE(room.service->drain().ok());
  room.service->end_waiting();
  room.service->rest(kLong);
  CHECK(is_early(begun));
}

TEST_CASE("at the limit of erasures that are pending others are refused until some are done" *
          doctest::test_suite("bulk")) {
  Room room;
  for (std::size_t i = 0; i <= kPendingMax; ++i) {
    room.clock.advance(kSecond);
    REQUIRE(room.write("kitchen", "temp", room.clock.wall_ns()));
    const auto erased = room.erase("kitchen");
    if (i < kPendingMax) REQUIRE(erased.ok());
    if (i == kPendingMax) CHECK(erased.status().code() == StatusCode::Busy);
  }
  CHECK(room.readings_of("kitchen", "temp") == 1);
  REQUIRE(room.service->drain().ok());
  CHECK(room.erase("kitchen").ok());
}

// An engine for which erasing takes kTaken, and when it did.
struct SlowErasing {
  static constexpr auto kTaken = std::chrono::milliseconds(150);

  explicit SlowErasing(Room& room) {
    room.engine.set_erasing([this] {
      const auto begun = steady_clock::now();
      while (steady_clock::now() - begun < kTaken) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      rounds.emplace_back(begun, steady_clock::now());
      changed.notify_all();
    });
  }
  void await(std::size_t count) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::nanoseconds(kLong),
                             [&] { return rounds.size() >= count; }));
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<steady_clock::time_point, steady_clock::time_point>> rounds;
};

TEST_CASE("between two rounds for which nobody waits passes as long as the first took") {
  Room room;
  SlowErasing erasing(room);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  observe::Logger logger(nowhere, observe::LogStyle::Plain, room.clock);
  auto worker = std::make_unique<EraseWorker>(*room.service, logger);
  for (std::size_t round = 1; round <= 3; ++round) {
    room.clock.advance(kSecond);
    REQUIRE(room.write("kitchen", "temp", room.clock.wall_ns()));
    REQUIRE(room.erase("kitchen").ok());
    erasing.await(round);
  }
  worker.reset();
  ::close(nowhere);
  CHECK(kLongestRestNs <= kSecond / 2);
  for (std::size_t i = 1; i < erasing.rounds.size(); ++i)
    CHECK(erasing.rounds[i].first - erasing.rounds[i - 1].second >= SlowErasing::kTaken);
}

}  // namespace
}  // namespace edgecase::erase
