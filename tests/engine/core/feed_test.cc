// Reading what was committed after a position: Engine::committed(), ReadOptions::newer_than.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/core/engine_fixture.h"

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

TEST_CASE_FIXTURE(Feed, "there are only so many bounds") {
  CHECK(engine->set_feed_bounds(std::vector<CommitPosition>(kFeedBoundsMax, 1)).ok());
  CHECK(engine->set_feed_bounds(std::vector<CommitPosition>(kFeedBoundsMax + 1, 1)).code() ==
        StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace edgecase::test
