#include "core/background_tasks.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

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

}  // namespace edgecase::engine
