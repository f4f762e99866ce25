// Retention rules through a whole engine: what reads see, and what survives.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "engine/core/expiring_store.h"
#include "engine/core/secrets.h"

namespace edgecase::engine {

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

TEST_CASE("what is older than its rule allows is unreadable to the nanosecond, on every way") {
  for (const int place : {0, 1, 2}) {
    CAPTURE(place);
    ExpiringStore store;
    store.fill("a1", kStartNs, 100);
    store.fill("b1", kStartNs, 100);
    store.fill("b2", kStartNs, 100);
    if (place >= 1) REQUIRE(store.engine->flush().ok());
    if (place == 2) REQUIRE(store.engine->compact({store.id}, {}).ok());
    const auto snapshot = store.engine->snapshot();
    store.set("b", kHour);
    store.set("b2", kRetentionForever);
    store.clock.advance(kHour + 50 * kSecond);  // now the reading of second 50 is an hour old
    CHECK(store.count() == 250);
    CHECK_FALSE(store.has("b1", kStartNs + 49 * kSecond));
    CHECK(store.has("b1", kStartNs + 50 * kSecond));
    CHECK(store.has("b2", kStartNs));
    CHECK(store.has("a1", kStartNs));
    store.clock.advance(1);
    CHECK_FALSE(store.has("b1", kStartNs + 50 * kSecond));
    CHECK(store.count() == 249);
    // Through a snapshot that is older than the rule, too.
    ReadOptions old;
    old.snapshot = snapshot;
    CHECK_FALSE(store.engine->get(store.id, key_at("b1", kStartNs), old).ok());
    CHECK(store.scan(old).size() == 249);
    // In ranges that begin or end within what has expired.
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      ReadOptions how;
      how.direction = direction;
      const auto between = [&](int first, int last) {
        return store
            .scan(how, {key_at("b1", kStartNs + first * kSecond),
                        key_at("b1", kStartNs + last * kSecond)})
            .size();
      };
      CHECK(between(10, 40) == 0);
      CHECK(between(10, 60) == 9);
      CHECK(between(60, 70) == 10);
    }
    // What is written too late is not there.
    REQUIRE(store.put(store.id, key_at("b1", kStartNs), "late").ok());
    CHECK_FALSE(store.has("b1", kStartNs));
    store.expect_sound();
    CHECK(store.count() == 249);
  }
}

TEST_CASE("what expired never returns: not by a rule, a reopening, or a clock that is set back") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 100);
  store.set("", kHour);
  store.clock.advance(kHour + 50 * kSecond);
  REQUIRE(store.count() == 50);
  SUBCASE("lengthened") {
    store.set("", 9 * kHour);
  }
  SUBCASE("cleared") {
    store.set("", std::nullopt);
  }
  SUBCASE("an inner rule that is longer") {
    store.set("a1", 9 * kHour);
  }
  SUBCASE("lengthened, then reopened") {
    store.set("", 9 * kHour);
    store.reopen();
  }
  SUBCASE("reopened after the clock went on, then lengthened") {
    store.close();
    store.clock.set_wall_ns(store.clock.wall_ns() + 10 * kSecond);
    REQUIRE(store.open().ok());
    CHECK(store.count() == 40);
    store.set("", 9 * kHour);
    store.fill("a1", kStartNs, 60);
    CHECK(store.count() == 40);
    store.fill("a1", kStartNs + 60 * kSecond, 50);  // ten that had not been there
  }
  SUBCASE("reopened with the clock set back") {
    store.close();
    store.clock.set_wall_ns(kStartNs);
    REQUIRE(store.open().ok());
  }
  SUBCASE("the clock is set back") {
    store.clock.set_wall_ns(kStartNs);
  }
  SUBCASE("the clock is no longer trusted") {
    store.clock.set_trust(ClockTrust::Untrusted);
  }
  CHECK(store.count() == 50);
  store.fill("a1", kStartNs, 10);
  CHECK(store.count() == 50);
}

TEST_CASE("after a start nothing expires by a clock that is far ahead, until it is confirmed") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 100);
  store.set("", kHour / 2);
  store.clock.advance(kSecond);
  store.close();
  store.clock.set_wall_ns(kStartNs + 640'000 * kHour);
  REQUIRE(store.open().ok());
  REQUIRE(store.engine->flush().ok());
  store.executor.run_all();
  CHECK(store.count() == 100);
  // Nor is what a dead clock said the mark of the next start.
  store.reopen();
  CHECK(store.count() == 100);
  SUBCASE("set right") {
    store.clock.set_wall_ns(kStartNs + kHour / 2 + 50 * kSecond);
    CHECK(store.count() == 50);
  }
  SUBCASE("confirmed") {
    store.clock.set_synchronised(true);
    CHECK(store.count() == 0);
  }
  SUBCASE("not confirmed for as long as a jump is waited for: by the time that passes") {
    store.clock.advance(kHour / 2 + 49 * kSecond);
    CHECK(store.count() == 50);
    store.clock.advance(kHour / 2);
    CHECK(store.count() == 0);
  }
}

TEST_CASE("nothing expires while the clock is not trusted") {
  ExpiringStore store;
  store.clock.set_trust(ClockTrust::Untrusted);
  store.reopen();
  store.fill("a1", kStartNs, 100);
  store.set("", kSecond);
  store.clock.advance(1000 * kHour);
  CHECK(store.count() == 100);
  store.reopen();
  CHECK(store.count() == 100);
  store.clock.set_trust(ClockTrust::Trusted);
  CHECK(store.count() == 0);
}

TEST_CASE("rules are refused that mean nothing, and change nothing then") {
  ExpiringStore store;
  const NamespaceId plain = store.make_namespace("plain");
  const auto code = [&](const std::vector<RetentionRule>& rules) {
    return store.engine->set_retention(rules).code();
  };
  CHECK(code({{store.id, "", kHour}, {plain, "", kHour}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, "", kHour}, {99, "", kHour}}) == StatusCode::NotFound);
  CHECK(code({{store.id, "", 0}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, "", -5}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, Bytes(kKeySizeMaxBytes + 1, 'x'), kHour}}) == StatusCode::InvalidArgument);
  CHECK(store.engine->retention_rules().empty());
  CHECK(code({}) == StatusCode::Ok);
}

TEST_CASE("a store without rules knows by its flushes what time it is at least") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 10);
  REQUIRE(store.engine->flush().ok());
  store.close();
  store.clock.set_wall_ns(kStartNs - 72 * kHour);
  REQUIRE(store.open().ok());
  CHECK(store.engine->expiry_now_ns() == kStartNs);
  store.expect_sound();
  // Over a manifest that was written anew, too.
  store.reopen();
  CHECK(store.engine->expiry_now_ns() == kStartNs);
}

TEST_CASE(
    "what is stored of a scope that is new is there again after a start, as its rule keeps it") {
  ExpiringStore store;
  store.set("", kHour);
  REQUIRE(store.engine->set_retention({{store.id, "a1", 9 * kHour, true}}).ok());
  store.fill("a1", kStartNs - 8 * kHour, 10);
  store.fill("b1", kStartNs - 8 * kHour, 10);
  const auto check = [&] {
    CHECK(store.scan().size() == 10);
    CHECK(store.has("a1", kStartNs - 8 * kHour));
  };
  check();
  store.reopen();
  check();
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  store.expect_sound();
  check();
}

TEST_CASE("rules outlive the process and go with their namespace") {
  ExpiringStore store;
  store.set("b", 7);
  store.set("", kHour);
  store.set("c", 9);
  store.set("c", std::nullopt);
  store.reopen();
  const std::vector<RetentionRule> rules = store.engine->retention_rules();
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].prefix.empty());
  CHECK(rules[0].retention_ns == kHour);
  CHECK(rules[1].prefix == "b");
  CHECK(rules[1].retention_ns == 7);
  CHECK(rules[1].namespace_id == store.id);
  REQUIRE(store.engine->drop_namespace(store.id).ok());
  CHECK(store.engine->retention_rules().empty());
  store.reopen();
  CHECK(store.engine->retention_rules().empty());
}

TEST_CASE("exact expiry leaves no byte on either drive, in no file and in no log") {
  for (const bool flushed : {true, false}) {
    CAPTURE(flushed);
    ExpiringStore store;
    store.disk.keep_freed();
    store.options.expiry = ExpiryMode::Exact;
    store.options.removal = Removal::Overwrite;
    store.reopen();
    store.set("", kHour);
    store.set("t", 10 * kHour);
    std::vector<Bytes> needles;
    for (int i = 0; i < 300; ++i) {
      const std::string part = "s" + test::secret("k", i);
      needles.push_back(test::secret("k", i));
      needles.push_back(test::secret("v", i));
      REQUIRE(store.put(store.id, key_at(part, kStartNs + i % 3), test::secret("v", i)).ok());
      REQUIRE(store.put(store.id, key_at("t" + std::to_string(i), kStartNs), "stays").ok());
      if (flushed && i % 100 == 50) REQUIRE(store.engine->flush().ok());
    }
    store.executor.run_all();
    store.reopen();
    CHECK_FALSE(store.disk.find_bytes(needles).empty());
    store.clock.advance(kHour + 3);
    CHECK(store.count() == 300);
    // Within the second.
    for (int i = 0; i < 4; ++i) {
      store.executor.advance(kExactExpiryCheckNs);
      store.clock.advance(kExactExpiryCheckNs);
      store.executor.run_all();
    }
    CHECK(store.disk.find_bytes(needles) == "");
    CHECK(store.count() == 300);
    store.expect_sound();
    CHECK(store.disk.find_bytes(needles) == "");
  }
}

TEST_CASE("retention: a store that does not open notes no time") {
  ExpiringStore store;
  store.set("", kHour);
  store.fill("a", kStartNs, 10);
  store.close();
  const auto names = [&] {
    const auto entries = store.disk.list_directory("/m/store");
    REQUIRE(entries.ok());
    std::vector<std::string> all;
    for (const DirectoryEntry& entry : *entries) all.push_back(entry.name);
    std::ranges::sort(all);
    return all;
  };
  const std::vector<std::string> before = names();
  store.clock.advance(kHour / 2);
  // After the directory of the store: that of its log.
  store.disk.fail_nth(test::Operation::ListDirectory, 2, EIO, test::FaultMode::Once, "/m");
  CHECK(store.open().code() == StatusCode::IoError);
  CHECK(store.disk.faults() == 1);
  store.disk.clear_faults();
  CHECK(names() == before);  // an edit would have begun another manifest
  REQUIRE(store.open().ok());
  CHECK(store.count() == 10);
}

}  // namespace edgecase::engine
