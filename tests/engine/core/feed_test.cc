// Reading what was committed after a position: Engine::committed(), ReadOptions::newer_than.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "engine/core/engine_fixture.h"
#include "support/test_seed.h"

namespace edgecase::test {
namespace {

struct Feed : EngineFixture {
  Feed() {
    options.feeds = true;
    reopen();
    id = make_namespace("n");
  }

  // Keys of what is newer, in the order of the scan, with their positions.
  std::vector<std::pair<std::string, CommitPosition>> newer_than(CommitPosition position,
                                                                 ReadOptions read = {}) {
    read.newer_than = position;
    std::vector<std::pair<std::string, CommitPosition>> found;
    auto scan = engine->scan(id, {}, read);
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next())
      found.emplace_back((*scan)->key(), (*scan)->position());
    REQUIRE((*scan)->status().ok());
    return found;
  }
  std::string keys_newer_than(CommitPosition position, ReadOptions read = {}) {
    std::string keys;
    for (const auto& [key, at] : newer_than(position, std::move(read))) {
      CHECK(at > position);
      keys += key + " ";
    }
    return keys;
  }
  std::uint64_t count_newer_than(CommitPosition position) {
    ReadOptions read;
    read.newer_than = position;
    const auto stats = engine->range_stats(id, {}, read);
    REQUIRE(stats.ok());
    return stats->entries;
  }
  // Everything of the namespace, into one run.
  void merge() { REQUIRE(engine->compact({id}, {}).ok()); }
  void flush() { REQUIRE(engine->flush().ok()); }
  void remove(ByteView key) {
    WriteBatch batch;
    batch.remove(id, key);
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  NamespaceId id = 0;
};

TEST_CASE_FIXTURE(Feed, "what was committed after a position is read alone, wherever it lies") {
  CHECK(engine->committed() == 0);
  REQUIRE(put(id, "a", "1").ok());
  REQUIRE(put(id, "b", "1").ok());
  const CommitPosition first = engine->committed();
  CHECK(first == 2);
  REQUIRE(put(id, "b", "2").ok());
  REQUIRE(put(id, "c", "1").ok());
  const CommitPosition second = engine->committed();
  const auto check = [&] {
    CHECK(keys_newer_than(0) == "a b c ");
    CHECK(keys_newer_than(first) == "b c ");
    CHECK(keys_newer_than(second) == "");
    ReadOptions reverse;
    reverse.direction = Direction::Reverse;
    CHECK(keys_newer_than(first, reverse) == "c b ");
    CHECK(count_newer_than(0) == 3);
    CHECK(count_newer_than(first) == 2);
    CHECK(count_newer_than(second) == 0);
    CHECK(engine->committed() == second);
  };
  SUBCASE("in memory") {
    check();
  }
  SUBCASE("in a table") {
    flush();
    check();
  }
  SUBCASE("in a table after a restart") {
    flush();
    reopen();
    check();
  }
  SUBCASE("after a merge") {
    flush();
    merge();
    check();
  }
  SUBCASE("after a restart") {
    reopen();
    check();
  }
}

TEST_CASE_FIXTURE(Feed, "what is superseded, deleted or erased since is not new, nor comes back") {
  REQUIRE(put(id, "a", "1").ok());
  REQUIRE(put(id, "b", "1").ok());
  REQUIRE(put(id, "c", "1").ok());
  flush();
  const CommitPosition before = engine->committed();
  REQUIRE(put(id, "a", "2").ok());
  REQUIRE(put(id, "b", "2").ok());
  REQUIRE(put(id, "d", "2").ok());
  flush();
  remove("a");
  WriteBatch batch;
  batch.erase_range(id, "d", "e");
  REQUIRE(engine->write(batch, Durability::Sync).ok());
  CHECK(keys_newer_than(before) == "b ");
  CHECK(count_newer_than(before) == 1);
  flush();
  CHECK(keys_newer_than(before) == "b ");
  CHECK(keys_newer_than(0) == "b c ");
  CHECK(count_newer_than(before) == 1);
}

TEST_CASE_FIXTURE(Feed, "a snapshot has the position that it was taken at") {
  REQUIRE(put(id, "a", "1").ok());
  ReadOptions read;
  read.snapshot = engine->snapshot();
  REQUIRE(put(id, "b", "1").ok());
  CHECK(read.snapshot->committed() == 1);
  CHECK(engine->committed() == 2);
  CHECK(keys_newer_than(0, read) == "a ");
  CHECK(keys_newer_than(1, read) == "");
}

// Series of `rows` entries each, written round: a group has sequences of all the time.
struct SeriesFeed : Feed {
  static constexpr std::size_t kSeries = 3;

  SeriesFeed() {
    NamespaceOptions series;
    series.codec = GroupCodec::Series;
    series.scope_bytes = 4;
    id = make_namespace("s", series);
  }

  static Bytes key(std::size_t series, std::uint64_t time) {
    Bytes made = "dev" + std::to_string(series) + "chan";
    for (int shift = 56; shift >= 0; shift -= 8) made.push_back(static_cast<char>(time >> shift));
    return made;
  }
  void write_rows(std::uint64_t first, std::uint64_t count, std::int64_t number = 7) {
    WriteBatch batch;
    for (std::uint64_t row = first; row < first + count; ++row) {
      for (std::size_t series = 0; series < kSeries; ++series) {
        Bytes value(1, kIntegerTag);
        value.resize(9, static_cast<char>(number));
        batch.put(id, key(series, row), value);
      }
    }
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }
  std::size_t count(CommitPosition after) {
    const std::size_t counted = newer_than(after).size();
    CHECK(count_newer_than(after) == counted);
    return counted;
  }
};

TEST_CASE_FIXTURE(SeriesFeed, "flushes and merges move nothing over a bound, nor what is behind") {
  write_rows(0, 100);
  const CommitPosition first = engine->committed();
  write_rows(100, 100);
  const CommitPosition second = engine->committed();
  write_rows(200, 100);
  const CommitPosition third = engine->committed();
  const auto check = [&](std::size_t behind_second) {
    CHECK(count(first) == 600);
    CHECK(count(second) == behind_second);
    CHECK(count(third) == 0);
    CHECK(newer_than(0).size() == 900);
  };
  const auto write_out = [&](std::size_t behind_second) {
    flush();
    check(behind_second);
    merge();
    check(behind_second);
    reopen();
    check(behind_second);
  };
  SUBCASE("nobody has said where feeds stand") {
    write_out(300);
  }
  SUBCASE("both are bounds") {
    REQUIRE(engine->set_feed_bounds({first, second}).ok());
    write_out(300);
  }
  SUBCASE("all of it lies before one") {
    REQUIRE(engine->set_feed_bounds({first, third}).ok());
    // What was between two bounds has risen to the second.
    write_out(600);
  }
  SUBCASE("a bound comes when all is written out") {
    flush();
    REQUIRE(engine->set_feed_bounds({second}).ok());
    merge();
    CHECK(count(second) == 300);
    CHECK(newer_than(0).size() == 900);
  }
}

TEST_CASE_FIXTURE(SeriesFeed, "nobody reads by positions: entries of a group share one") {
  options.feeds = false;
  reopen();
  write_rows(0, 100);
  const CommitPosition first = engine->committed();
  write_rows(100, 100);
  flush();
  CHECK(count(first) == 600);
  CHECK(count(engine->committed()) == 0);
}

TEST_CASE_FIXTURE(SeriesFeed, "what is written again over a bound is current once, with its own") {
  write_rows(0, 100);
  const CommitPosition first = engine->committed();
  REQUIRE(engine->set_feed_bounds({first}).ok());
  flush();
  write_rows(50, 20, 9);
  flush();
  merge();
  CHECK(count(first) == 60);
  CHECK(newer_than(0).size() == 300);
  for (const auto& [at, position] : newer_than(0))
    CHECK((position > first) == (at[15] >= 50 && at[15] < 70));
}

TEST_CASE_FIXTURE(SeriesFeed, "what holds nothing newer is not read") {
  options.group_bytes = 1024;
  reopen();
  const auto read_values = [&](CommitPosition after) {
    const ReadStats before = engine->stats().reads;
    const std::size_t found = newer_than(after).size();
    const ReadStats now = engine->stats().reads;
    return std::vector<std::uint64_t>{found, now.value_reads - before.value_reads,
                                      now.metadata_block_loads - before.metadata_block_loads};
  };
  // Three runs at level 0, side by side.
  std::vector<CommitPosition> ends;
  for (std::uint64_t round = 0; round < 3; ++round) {
    write_rows(1000 * round, 1000);
    ends.push_back(engine->committed());
    flush();
  }
  const auto all = read_values(0);
  CHECK(all[0] == 9000);
  CHECK(all[1] > 10);
  const auto last = read_values(ends[1]);
  CHECK(last[0] == 3000);
  CHECK(3 * last[1] <= all[1]);
  CHECK(read_values(ends[2]) == std::vector<std::uint64_t>{0, 0, 0});
  CHECK(count_newer_than(ends[1]) == 3000);
  // And in one run: items tell.
  REQUIRE(engine->set_feed_bounds({ends[0], ends[1], ends[2]}).ok());
  merge();
  const auto merged = read_values(ends[1]);
  CHECK(merged[0] == 3000);
  CHECK(3 * merged[1] <= read_values(0)[1] + 3);
  CHECK(read_values(ends[2])[1] == 0);
  // In both directions, from wherever.
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    ReadOptions read;
    read.newer_than = ends[1];
    read.direction = direction;
    auto scan = engine->scan(id, {}, read);
    REQUIRE(scan.ok());
    (*scan)->seek(key(1, 500));
    const bool forward = direction == Direction::Forward;
    REQUIRE((*scan)->valid());
    CHECK((*scan)->key() == ByteView(forward ? key(1, 2000) : key(0, 2999)));
    (*scan)->seek(key(1, 2500));
    REQUIRE((*scan)->valid());
    CHECK((*scan)->key() == ByteView(key(1, 2500)));
  }
}

// Against a map, over all that a store does.
TEST_CASE_FIXTURE(SeriesFeed, "a feed answers like a map of newest positions") {
  SeededRandom draws(test_seed(45));
  options.group_bytes = 512;
  options.memtable_bytes = 32u << 10;
  reopen();
  std::map<Bytes, CommitPosition> model;
  std::vector<CommitPosition> bounds;
  CommitPosition at = engine->committed();
  const auto check = [&](CommitPosition after) {
    CAPTURE(after);
    std::vector<std::pair<std::string, CommitPosition>> found = newer_than(after);
    std::size_t expected = 0;
    const bool is_bound = std::ranges::count(bounds, after) > 0 || after == 0;
    for (const auto& [key, position] : model) expected += position > after ? 1 : 0;
    for (const auto& [key, position] : found) {
      const auto known = model.find(key);
      REQUIRE(known != model.end());
      // It may have risen, but over no bound.
      REQUIRE(position >= known->second);
      for (const CommitPosition bound : bounds)
        REQUIRE((position <= bound) == (known->second <= bound));
    }
    CHECK(found.size() >= expected);
    if (is_bound) CHECK(found.size() == expected);
    CHECK(count_newer_than(after) == found.size());
    ReadOptions reverse;
    reverse.direction = Direction::Reverse;
    auto back = newer_than(after, reverse);
    std::ranges::reverse(back);
    CHECK(back == found);
  };
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t what = draws.below(20);
    if (what < 14) {
      WriteBatch batch;
      const std::uint64_t count = 1 + draws.below(60);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t row = draws.below(4) == 0 ? draws.below(3000) : 3000 + at + i;
        const Bytes written = key(draws.below(kSeries), row);
        ++at;
        if (draws.below(12) == 0) {
          batch.remove(id, written);
          model.erase(written);
        } else {
          batch.put(id, written, Bytes(1, kFloatTag) + Bytes(8, 'v'));
          model[written] = at;
        }
      }
      if (draws.below(10) == 0) {
        const Bytes from = key(0, draws.below(3000));
        const Bytes to = key(0, draws.below(4000));
        ++at;
        batch.erase_range(id, from, std::max(from, to) + "x");
        model.erase(model.lower_bound(from), model.lower_bound(std::max(from, to) + "x"));
      }
      REQUIRE(engine->write(batch, Durability::Sync).ok());
      REQUIRE(engine->committed() == at);
    } else if (what == 14) {
      flush();
    } else if (what == 15) {
      merge();
    } else if (what == 16) {
      reopen();
      REQUIRE(engine->set_feed_bounds(bounds).ok());
    } else if (what == 17) {
      if (bounds.size() > 6) bounds.erase(bounds.begin());
      bounds.push_back(at);
      REQUIRE(engine->set_feed_bounds(bounds).ok());
    } else {
      executor.run_all();
    }
    if (step % 8 == 0) {
      check(draws.below(at + 1));
      for (const CommitPosition bound : bounds) check(bound);
    }
  }
}

TEST_CASE_FIXTURE(Feed, "there are only so many bounds") {
  CHECK(engine->set_feed_bounds(std::vector<CommitPosition>(kFeedBoundsMax, 1)).ok());
  CHECK(engine->set_feed_bounds(std::vector<CommitPosition>(kFeedBoundsMax + 1, 1)).code() ==
        StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace edgecase::test
