#include "query/query_service.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

using namespace edgecase;

TEST_CASE("side thread: it works for one at a time, on a thread of its own") {
  std::atomic<int> done = 0;
  {
    query::SideThread side;
    std::promise<void> begun, may_end;
    std::thread::id worker;
    REQUIRE(side.try_start([&] {
      worker = std::this_thread::get_id();
      begun.set_value();
      may_end.get_future().wait();
      ++done;
    }));
    begun.get_future().wait();
    CHECK_FALSE(side.try_start([&] { done = 100; }));
    may_end.set_value();
    // It is free soon after.
    while (!side.try_start([&] { ++done; })) std::this_thread::yield();
    CHECK(worker != std::this_thread::get_id());
  }
  // What was started is done before it goes.
  CHECK(done == 2);
}

TEST_CASE("side thread: one that was never wanted ends at once") {
  query::SideThread side;
}
