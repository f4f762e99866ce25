#include "edgecase/options.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <vector>

using namespace edgecase;

TEST_CASE("executor: one lane keeps its order") {
  std::vector<int> seen;  // the lane's thread alone
  {
    const auto executor = make_thread_executor();
    for (int i = 0; i < 1000; ++i)
      executor->schedule(Lane::Flush, [&seen, i] { seen.push_back(i); });
  }
  REQUIRE(seen.size() == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("executor: lanes run side by side") {
  const auto executor = make_thread_executor();
  std::promise<void> from_flush;
  std::promise<void> from_compaction;
  std::promise<void> done;
  executor->schedule(Lane::Flush, [&] {
    from_flush.set_value();
    from_compaction.get_future().wait();
    done.set_value();
  });
  executor->schedule(Lane::Compaction, [&] {
    from_flush.get_future().wait();
    from_compaction.set_value();
  });
  done.get_future().wait();
  CHECK_FALSE(executor->run_one());
}

TEST_CASE("executor: a delayed task comes later, and is dropped at the end") {
  std::atomic<int> ran{0};
  {
    const auto executor = make_thread_executor();
    std::promise<void> due;
    executor->schedule_after(Lane::Flush, 1'000'000, [&] { due.set_value(); });
    executor->schedule_after(Lane::Flush, 3'600'000'000'000, [&] { ++ran; });
    due.get_future().wait();
  }
  CHECK(ran == 0);
}

TEST_CASE("executor: the end waits for tasks that tasks have scheduled") {
  std::atomic<int> ran{0};
  {
    const auto executor = make_thread_executor();
    Executor& inner = *executor;
    executor->schedule(Lane::Flush, [&] {
      inner.schedule(Lane::Flush, [&] { ++ran; });
      inner.schedule(Lane::Compaction, [&] { ++ran; });
    });
  }
  CHECK(ran == 2);
}
