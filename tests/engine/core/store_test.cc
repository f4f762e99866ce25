#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/store.h"
#include "engine/core/engine_fixture.h"
#include "support/manual_executor.h"

namespace edgecase::engine {

TEST_CASE("background tasks: none runs once they are closed, nor touches who has gone") {
  test::ManualExecutor executor;
  int runs = 0;
  {
    BackgroundTasks tasks(executor);
    tasks.schedule(Lane::Flush, [&] { ++runs; });
    CHECK(tasks.run_one());
    tasks.schedule(Lane::Flush, [&] { ++runs; });
    tasks.schedule_after(Lane::Compaction, 10, [&] { ++runs; });
    CHECK_FALSE(tasks.closed());
    tasks.close();
    CHECK(tasks.closed());
  }
  executor.advance(10);
  executor.run_all();
  CHECK(runs == 1);
}

TEST_CASE("background tasks: closing waits for the one that runs") {
  test::ManualExecutor executor;
  BackgroundTasks tasks(executor);
  std::atomic<bool> begun{false}, may_end{false}, ended{false}, closed{false};
  tasks.schedule(Lane::Flush, [&] {
    begun = true;
    begun.notify_all();
    may_end.wait(false);
    ended = true;
  });
  std::thread lane([&] { executor.run_one(); });
  begun.wait(false);
  std::thread closing([&] {
    tasks.close();
    CHECK(ended);
    closed = true;
  });
  while (!tasks.closed()) std::this_thread::yield();
  CHECK_FALSE(closed);
  may_end = true;
  may_end.notify_all();
  closing.join();
  lane.join();
  CHECK(closed);
}

namespace {

using Names = std::vector<std::string>;

const Status kNoValues = unavailable("the drive is away").on(Drive::Values);
const Status kFull = Status::of_file(StatusCode::OutOfSpace, "", "/m/wal", ": no space");

struct Watched {
  test::ManualClock clock;
  test::RecordingListener listener;
  Health health{clock, listener};

  Stats stats() const {
    Stats stats;
    health.add_to(stats);
    return stats;
  }
};

}  // namespace

TEST_CASE("health: the listener hears the first failure of some work and its next success") {
  Watched watched;
  Health& health = watched.health;
  health.fail(Work::Flush, kNoValues);
  health.fail(Work::Flush, unavailable("still away").on(Drive::Values));
  CHECK(watched.listener.degraded.size() == 1);
  CHECK(health.is_failing(Work::Flush));
  CHECK_FALSE(health.is_failing(Work::Merge));
  CHECK(health.failure(Work::Flush).message() == "still away");

  health.succeed(Work::Flush);
  health.succeed(Work::Flush);
  CHECK(watched.listener.resumed == Names{"values"});
  CHECK_FALSE(health.is_failing(Work::Flush));
}

TEST_CASE("health: each drive is degraded by what fails on it, the log first") {
  Watched watched;
  Health& health = watched.health;
  health.fail(Work::Merge, kFull);
  watched.clock.advance(1'000);
  health.fail(Work::Flush, kNoValues);
  CHECK(watched.stats().values.degraded.code() == StatusCode::Unavailable);
  CHECK(watched.stats().values.degraded_since_ns == watched.clock.wall_ns());
  CHECK(watched.stats().metadata.degraded.code() == StatusCode::OutOfSpace);

  // What does not say its drive is of the metadata drive.
  health.fail(Work::Log, corruption("a segment"));
  CHECK(watched.stats().metadata.degraded.code() == StatusCode::Corruption);
  health.succeed(Work::Log);
  CHECK(watched.stats().metadata.degraded.code() == StatusCode::OutOfSpace);
}

TEST_CASE("health: a refusal holds until flushes succeed and the log is whole") {
  Watched watched;
  Health& health = watched.health;
  health.note_prepared(invalid_argument("too large: no refusal of the store's"));
  CHECK(watched.stats().refused.ok());

  health.fail(Work::Flush, kNoValues);
  health.fail(Work::Log, kFull);
  health.note_prepared(busy("no room"));
  health.note_prepared(ok());  // a small batch still fits
  CHECK(watched.stats().refused.code() == StatusCode::Busy);
  health.succeed(Work::Flush);
  CHECK(watched.stats().refused.code() == StatusCode::Busy);
  health.succeed(Work::Log);
  CHECK(watched.stats().refused.ok());

  health.note_prepared(busy("no room"));
  health.note_prepared(ok());
  CHECK(watched.stats().refused.ok());
}

TEST_CASE("health: space is lacking where flushes or the log say so") {
  Watched watched;
  watched.health.fail(Work::Merge, kFull);
  CHECK_FALSE(watched.health.lacks_space());
  watched.health.fail(Work::Flush, kNoValues);
  CHECK_FALSE(watched.health.lacks_space());
  watched.health.fail(Work::Log, kFull);
  CHECK(watched.health.lacks_space());
}

}  // namespace edgecase::engine
