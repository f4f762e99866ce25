#include "ingest/reading_feed.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "support/manual_clock.h"

namespace edgecase::ingest {
namespace {

struct Feed {
  edgecase::test::ManualClock clock;
  ReadingFeed feed{clock};

  // Texts "a0", "a1", ... of a batch; they are gone when this returns.
  void publish(const std::string& name, std::size_t count, std::size_t padding = 0) {
    std::vector<std::string> texts;
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < count; ++i) {
      texts.push_back(name + std::to_string(i) + std::string(padding, '.'));
      times.push_back(static_cast<std::int64_t>(i));
    }
    std::vector<wire::Reading> readings;
    for (const std::string& text : texts) {
      readings.push_back({"default", name, "s", std::nullopt, wire::Value::of_text(text)});
    }
    feed.publish(readings, times);
  }

  struct Seen {
    ReadingFeed::Page page;
    std::string text;
  };
  Seen read(const std::optional<ReadingFeed::Position>& position, std::size_t limit = SIZE_MAX) {
    Seen seen;
    seen.page = *feed.read(position, [&](const wire::Reading& reading) {
      if (limit-- == 0) return false;
      seen.text += std::string(reading.value.text.substr(0, 3)) + "@" +
                   std::to_string(reading.time_ns.value()) + " ";
      return true;
    });
    return seen;
  }
};

}  // namespace

TEST_CASE("feed: a follower gets what was stored after it began, once and in order") {
  Feed f;
  f.publish("x", 3);
  const auto begun = f.read(std::nullopt);
  CHECK(begun.text.empty());
  CHECK(f.read(begun.page.next).text.empty());
  f.publish("a", 2);
  f.publish("b", 1);
  const auto seen = f.read(begun.page.next);
  CHECK(seen.text == "a0@0 a1@1 b0@0 ");
  CHECK(seen.page.missed == 0);
  CHECK(f.read(seen.page.next).text.empty());
  // Another one is not disturbed by it.
  CHECK(f.read(begun.page.next).text == seen.text);
}

TEST_CASE("feed: a page that is full goes on where it ended") {
  Feed f;
  auto position = f.read(std::nullopt).page.next;
  f.publish("a", 3);
  f.publish("b", 2);
  std::string all;
  for (int i = 0; i < 5; ++i) {
    const auto seen = f.read(position, 1);
    all += seen.text;
    position = seen.page.next;
  }
  CHECK(all == "a0@0 a1@1 a2@2 b0@0 b1@1 ");
  CHECK(f.read(position).text.empty());
}

TEST_CASE("feed: what does not fit is missed, and counted") {
  Feed f;
  const auto begun = f.read(std::nullopt).page.next;
  constexpr std::size_t kLarge = 10'000;
  f.publish("a", 100, kLarge);
  f.publish("b", 150, kLarge);
  const auto seen = f.read(begun);
  std::size_t shown = 0;
  for (const char c : seen.text) shown += c == '@' ? 1 : 0;
  CHECK(seen.page.missed == 100);
  CHECK(shown == 150);
  // Larger than all that is kept: its end is there.
  f.publish("c", 400, kLarge);
  const auto later = f.read(seen.page.next);
  CHECK(later.page.missed > 100);
  CHECK(later.page.missed < 400);
  CHECK(later.text.ends_with("c39@399 "));
}

TEST_CASE("feed: what is forgotten is missed") {
  Feed f;
  const auto begun = f.read(std::nullopt).page.next;
  f.publish("a", 2);
  f.feed.clear();
  f.publish("b", 1);
  const auto seen = f.read(begun);
  CHECK(seen.text == "b0@0 ");
  CHECK(seen.page.missed == 2);
}

TEST_CASE("feed: nothing is kept once nobody asks, and a follower that comes back is told") {
  Feed f;
  const auto begun = f.read(std::nullopt).page.next;
  f.clock.advance(ReadingFeed::kFollowNs + 1);
  f.publish("a", 1);
  const auto seen = f.read(begun);
  CHECK(seen.page.gap);
  CHECK(seen.text.empty());
  f.publish("b", 1);
  CHECK(f.read(seen.page.next).text == "b0@0 ");
  // A position of another run of the daemon.
  CHECK(f.read(ReadingFeed::Position{7, 0}).page.gap);
  CHECK(f.read(ReadingFeed::Position{seen.page.next.epoch, 1'000'000}).page.gap);
}

TEST_CASE("feed: pages that are sent slowly keep a bounded amount, and others are told") {
  Feed f;
  const auto begun = f.read(std::nullopt);
  std::vector<ReadingFeed::Page> slow;
  Status refused;
  std::size_t kept = 0;
  for (; refused.ok() && kept < 100; ++kept) {
    f.publish("a", 4, 100'000);
    auto page = f.feed.read(slow.empty() ? begun.page.next : slow.back().next,
                            [](const wire::Reading&) { return true; });
    refused = page.status();
    if (page.ok()) slow.push_back(*std::move(page));
  }
  // As much as is kept for everybody, and as much again.
  CHECK(kept * 400'000 <= ReadingFeed::kBytesMax + ReadingFeed::kPagesBytesMax + 800'000);
  CHECK(refused.code() == StatusCode::Busy);
  CHECK(f.feed.read(std::nullopt, {}).ok());
  slow.erase(slow.begin(), slow.begin() + 2);
  CHECK(f.feed.read(slow.back().next, [](const wire::Reading&) { return true; }).ok());
}

TEST_CASE("feed: many writers and followers at once lose nothing") {
  Feed f;
  constexpr int kBatches = 200;
  const auto begun = f.read(std::nullopt).page.next;
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b"}) {
    threads.emplace_back([&f, name] {
      for (int i = 0; i < kBatches; ++i) f.publish(name, 3);
    });
  }
  std::size_t counts[2] = {};
  for (std::size_t& count : counts) {
    threads.emplace_back([&f, &count, begun] {
      auto position = begun;
      while (count < 2 * 3 * kBatches) {
        const auto page = *f.feed.read(position, [&count](const wire::Reading&) {
          ++count;
          return true;
        });
        if (page.missed > 0 || page.gap) break;
        position = page.next;
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counts[0] == 2 * 3 * kBatches);
  CHECK(counts[1] == 2 * 3 * kBatches);
}

}  // namespace edgecase::ingest
