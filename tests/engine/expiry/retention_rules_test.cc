#include "expiry/retention_rules.h"

#include <doctest/doctest.h>

#include "engine/core/expiring_store.h"
#include "support/manual_clock.h"

namespace edgecase::engine {
namespace {

using test::kHour;
using test::kSecond;

RetentionRule rule(const char* prefix, std::optional<std::int64_t> retention_ns) {
  return {1, prefix, retention_ns};
}

std::int64_t oldest(const RetentionRules& rules, const char* part, std::int64_t now_ns) {
  const std::uint64_t horizon = rules.horizon(make_full_key(1, part), now_ns);
  return horizon == 0 ? INT64_MIN : time_of_ordinal(horizon);
}

}  // namespace

TEST_CASE("of retention rules around a key the longest prefix wins") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("", 100), rule("dev", 50), rule("devS", kRetentionForever)},
                       1000));
  struct Case {
    const char* part;
    std::int64_t want_ns;
  };
  for (const Case& c :
       {Case{"", 100}, Case{"other", 100}, Case{"de", 100}, Case{"dev", 50}, Case{"devT", 50},
        Case{"devS", kRetentionForever}, Case{"devSx", kRetentionForever}}) {
    CAPTURE(c.part);
    CHECK(rules.retention_ns(make_full_key(1, c.part)) == c.want_ns);
    if (c.want_ns != kRetentionForever) CHECK(oldest(rules, c.part, 2000) == 2000 - c.want_ns);
  }
  CHECK(rules.retention_ns(make_full_key(2, "dev")) == kRetentionForever);
  CHECK(rules.horizon(make_full_key(2, "dev"), 2000) == 0);
  CHECK(rules.has_namespace(1));
  CHECK_FALSE(rules.has_namespace(2));
}

TEST_CASE("what a rule let expire stays below the floor, whatever the rules become") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("", 100)}, 1000));
  SUBCASE("lengthened") {
    REQUIRE(rules.change(std::vector{rule("", 500)}, 2000));
  }
  SUBCASE("cleared") {
    REQUIRE(rules.change(std::vector{rule("", std::nullopt)}, 2000));
  }
  SUBCASE("forever") {
    REQUIRE(rules.change(std::vector{rule("", kRetentionForever)}, 2000));
  }
  SUBCASE("an inner rule that is longer") {
    REQUIRE(rules.change(std::vector{rule("dev", 500)}, 2000));
  }
  SUBCASE("an inner rule that comes and goes") {
    REQUIRE(rules.change(std::vector{rule("dev", 500)}, 2000));
    REQUIRE(rules.change(std::vector{rule("dev", std::nullopt)}, 2000));
    CHECK(oldest(rules, "dev", 2001) == 1901);
  }
  SUBCASE("written down and read again") {
    REQUIRE(rules.change(std::vector{rule("", kRetentionForever)}, 2000));
    rules = RetentionRules(rules.scopes());
  }
  CHECK(oldest(rules, "dev", 2000) == 1900);
}

TEST_CASE("an inner scope that follows an outer rule remembers it when that changes") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("", 100), rule("dev", 10)}, 1000));
  REQUIRE(rules.change(std::vector{rule("dev", std::nullopt)}, 1000));
  CHECK(oldest(rules, "dev", 1000) == 990);
  REQUIRE(rules.change(std::vector{rule("", kRetentionForever)}, 3000));
  CHECK(oldest(rules, "dev", 9000) == 2900);
  CHECK(oldest(rules, "other", 9000) == 2900);
}

TEST_CASE(
    "rules that change at once do so in no order: no scope follows one that is not to be its own") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("", 100)}, 1000));
  SUBCASE("the outer one gets shorter, an inner one keeps what it had") {
    REQUIRE(rules.change(std::vector{rule("", 10), rule("dev", 100)}, 2000));
    CHECK(oldest(rules, "dev", 2000) == 1900);
    CHECK(oldest(rules, "other", 2000) == 1990);
  }
  SUBCASE("an inner one goes, the outer one gets what it had") {
    REQUIRE(rules.change(std::vector{rule("dev", 500)}, 1000));
    REQUIRE(rules.change(std::vector{rule("dev", std::nullopt), rule("", 500)}, 1200));
    CHECK(oldest(rules, "dev", 1200) == 900);  // what expired before stays away
    CHECK(oldest(rules, "other", 1200) == 1100);
  }
  SUBCASE("of two changes of one scope the last one counts") {
    REQUIRE(rules.change(std::vector{rule("dev", 1), rule("dev", 100)}, 2000));
    CHECK(oldest(rules, "dev", 2000) == 1900);
  }
}

TEST_CASE("a scope that is new begins with nothing expired, whatever the rule around it let go") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("", 100)}, 1000));
  RetentionRule fresh = rule("dev", 5000);
  fresh.is_new = true;
  REQUIRE(rules.change(std::vector{fresh, rule("old", 5000)}, 9000));
  CHECK(oldest(rules, "dev", 9000) == 4000);
  CHECK(oldest(rules, "old", 9000) == 8900);
  // Not twice.
  REQUIRE(rules.change(std::vector{rule("dev", 10)}, 9000));
  REQUIRE(rules.change(std::vector{fresh}, 9000));
  CHECK(oldest(rules, "dev", 9000) == 8990);
  rules.give_up({1, 8995});
  CHECK(oldest(rules, "dev", 9000) == 8995);
}

TEST_CASE("many rules that change at once are found, in whatever order they come") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("d5", 7), rule("d50", 8)}, 1000));
  std::vector<RetentionRule> many;
  for (int i = 999; i >= 0; --i) many.push_back(rule(("d" + std::to_string(i)).c_str(), i + 1));
  REQUIRE(rules.change(many, 1000));
  CHECK(rules.scopes().size() == 1000);
  CHECK(rules.rule_count() == 1000);
  CHECK(rules.memory_bytes() >= 1000 * sizeof(ScopeState));
  int seen = 0;
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const Bytes prefix = make_full_key(1, "d" + std::to_string(i));
    rules.each(1, {"d" + std::to_string(i), "d" + std::to_string(i) + '!'},
               [&](ByteView found, std::int64_t retention_ns) {
                 CHECK(found == "d" + std::to_string(i));
                 CHECK(retention_ns == i + 1);
                 ++seen;
               });
    CHECK(rules.retention_ns(prefix) == i + 1);
  }
  CHECK(seen == 1000);
  const auto none = [](ByteView, std::int64_t) { FAIL("there is none"); };
  rules.each(1, {"d1000", "d1001"}, none);
  rules.each(2, {}, none);
  CHECK(rules.retention_ns(make_full_key(1, "d1000")) == 101);
  RetentionRules read_again = RetentionRules(rules.scopes());
  CHECK(read_again.scopes() == rules.scopes());
  CHECK(read_again.retention_ns(make_full_key(1, "d77x")) == 78);
}

TEST_CASE("a rule that changed is noticed over every range of keys it may hold for") {
  RetentionRules rules;
  REQUIRE(rules.change(std::vector{rule("b", 100)}, 1000));
  const auto changed = [&](const char* first, const char* last, RuleEpoch epoch) {
    return rules.changed_since(make_full_key(1, first), make_full_key(1, last), epoch);
  };
  CHECK(changed("a", "c", 0));
  CHECK(changed("b", "b", 0));
  CHECK(changed("bx", "by", 0));
  CHECK_FALSE(changed("a", "az", 0));
  CHECK_FALSE(changed("c", "d", 0));
  CHECK_FALSE(changed("a", "c", 1));
  REQUIRE(rules.change(std::vector{rule("", 100)}, 1000));
  CHECK(changed("c", "d", 1));
}

TEST_CASE("the epoch is the same after rules were read again, whatever was changed and forgotten") {
  RetentionRules rules;
  const auto check = [&] { CHECK(RetentionRules(rules.scopes()).epoch() == rules.epoch()); };
  REQUIRE(rules.change(std::vector{rule("b", 100)}, 1000));
  check();
  REQUIRE(rules.change(std::vector{rule("never set", std::nullopt)}, 1000));
  check();
  REQUIRE(rules.change(std::vector{rule("b", std::nullopt)}, 1000));
  check();
  rules.forget_namespace(1);
  check();
  CHECK(rules.epoch() == 2);
}

TEST_CASE("rules are bounded, and scopes that hide nothing more are forgotten before") {
  RetentionRules rules;
  std::vector<RetentionRule> many;
  for (std::size_t i = 0; i < kRetentionRulesMax; ++i)
    many.push_back(rule(("d" + std::to_string(i)).c_str(), 100));
  REQUIRE(rules.change(many, 1000));
  RetentionRules full = rules;
  CHECK_FALSE(full.change(std::vector{rule("one more", 5)}, 1000));
  many.front().retention_ns.reset();
  REQUIRE(rules.change(std::vector{many.front(), rule("", 50)}, 1000));
  CHECK_FALSE(rules.change(std::vector{rule("x", 5), rule("y", 5)}, 1000));
}

TEST_CASE("what was given up of a namespace is gone in all its scopes, whatever rules say") {
  RetentionRules rules;
  const Bytes in_two = make_full_key(2, "a1");
  const Bytes in_three = make_full_key(3, "a1");
  CHECK(rules.empty());
  rules.give_up({2, 1000});
  CHECK_FALSE(rules.empty());
  CHECK(rules.has_namespace(2));
  CHECK_FALSE(rules.has_namespace(3));
  CHECK(rules.horizon(in_two, 0) == ordinal_of_time(1000));
  CHECK(rules.horizon(in_three, 0) == 0);
  CHECK(rules.epoch() == 0);  // no file is cut otherwise than before
  rules.give_up({2, 999});
  CHECK(rules.horizon(in_two, 0) == ordinal_of_time(1000));
  const RetentionRule longer{2, "a1", 500};
  REQUIRE(rules.change({&longer, 1}, 600));
  CHECK(rules.horizon(in_two, 600) == ordinal_of_time(1000));
  CHECK(rules.horizon(in_two, 2000) == ordinal_of_time(1500));
  CHECK(rules.given_up() == std::vector<GivenUp>{{2, 1000}});
  rules.forget_namespace(2);
  CHECK(rules.horizon(in_two, 0) == 0);
}

TEST_CASE("buckets hold what expires together, 16 to 32 of them a retention") {
  for (const std::int64_t retention_ns : {20 * kSecond, kHour, 24 * kHour, 30 * 24 * kHour}) {
    CAPTURE(retention_ns);
    const Bucket bucket = bucket_of(123 * kHour, retention_ns);
    const std::int64_t length_ns = std::int64_t{1} << bucket.bucket_class;
    CHECK(bucket.end_ns > 123 * kHour + retention_ns);
    CHECK(bucket.end_ns - length_ns <= 123 * kHour + retention_ns);
    CHECK(bucket.end_ns % length_ns == 0);
    CHECK(length_ns <= std::max<std::int64_t>(retention_ns / 16, 1 << kBucketClassMin));
    CHECK(length_ns > retention_ns / 32);
  }
  CHECK_FALSE(bucket_of(5, kRetentionForever).expires());
  CHECK_FALSE(bucket_of(INT64_MAX - 5, kHour).expires());
  CHECK_FALSE(bucket_of(INT64_MAX - 2 * kHour, kHour).end_ns < 0);
  CHECK(bucket_of(-5 * kHour, kHour).end_ns > -4 * kHour);
}

TEST_CASE("expiry time follows a trusted wall, never goes back, and does not follow a jump") {
  test::ManualClock clock;
  ExpiryClock expiry(clock, kNoMarkNs);
  clock.set_trust(ClockTrust::Untrusted);
  CHECK(expiry.now_ns() == kNoMarkNs);
  clock.set_trust(ClockTrust::Trusted);
  CHECK(expiry.now_ns() == clock.wall_ns());
  clock.advance(10 * kHour);  // time that passed is no jump
  CHECK(expiry.now_ns() == clock.wall_ns());

  const std::int64_t before_ns = clock.wall_ns();
  SUBCASE("set back") {
    clock.set_wall_ns(before_ns - kHour);
    CHECK(expiry.now_ns() == before_ns);
    clock.advance(kHour + 1);
    CHECK(expiry.now_ns() == before_ns + 1);
  }
  SUBCASE("no longer trusted") {
    clock.set_trust(ClockTrust::Untrusted);
    clock.advance(kHour);
    CHECK(expiry.now_ns() == before_ns);
  }
  SUBCASE("set forward by less than an hour") {
    clock.set_wall_ns(before_ns + ExpiryClock::kJumpMaxNs);
    CHECK(expiry.now_ns() == clock.wall_ns());
  }
  SUBCASE("set forward by more, and left there") {
    clock.set_wall_ns(before_ns + 1000 * kHour);
    CHECK(expiry.now_ns() == before_ns);
    clock.advance(ExpiryClock::kJumpSettleNs - 1);
    CHECK(expiry.now_ns() == before_ns + ExpiryClock::kJumpSettleNs - 1);
    clock.advance(1);
    CHECK(expiry.now_ns() == clock.wall_ns());
  }
  SUBCASE("set forward by more, and confirmed") {
    clock.set_wall_ns(before_ns + 1000 * kHour);
    CHECK(expiry.now_ns() == before_ns);
    clock.set_synchronised(true);
    CHECK(expiry.now_ns() == clock.wall_ns());
  }
  SUBCASE("set back, and forward to where it would have been") {
    clock.set_wall_ns(before_ns - 1000 * kHour);
    CHECK(expiry.now_ns() == before_ns);
    clock.set_wall_ns(before_ns + kHour);
    CHECK(expiry.now_ns() == before_ns + kHour);
  }
  SUBCASE("set forward and back again") {
    clock.set_wall_ns(before_ns + 1000 * kHour);
    CHECK(expiry.now_ns() == before_ns);
    clock.set_wall_ns(before_ns);
    clock.advance(2 * kHour);
    CHECK(expiry.now_ns() == before_ns + 2 * kHour);
  }
}

TEST_CASE("a clock that starts over an hour ahead of the mark is followed as after a jump") {
  test::ManualClock clock;
  const std::int64_t mark_ns = clock.wall_ns();
  SUBCASE("no more than an hour: at once") {
    ExpiryClock expiry(clock, mark_ns);
    clock.set_wall_ns(mark_ns + kHour);
    CHECK(expiry.now_ns() == mark_ns + kHour);
  }
  SUBCASE("behind: the mark holds until it is reached") {
    clock.set_wall_ns(mark_ns - 50 * kHour);
    ExpiryClock expiry(clock, mark_ns);
    CHECK(expiry.now_ns() == mark_ns);
    clock.set_wall_ns(mark_ns + kSecond);
    CHECK(expiry.now_ns() == mark_ns + kSecond);
  }
  SUBCASE("confirmed: at once, also where that comes later") {
    clock.set_wall_ns(mark_ns + 200 * kHour);
    ExpiryClock expiry(clock, mark_ns);
    CHECK(expiry.now_ns() == mark_ns);
    clock.advance(kHour / 2);
    CHECK(expiry.now_ns() == mark_ns + kHour / 2);
    clock.set_synchronised(true);
    CHECK(expiry.now_ns() == clock.wall_ns());
  }
  SUBCASE("not confirmed: an hour later") {
    clock.set_wall_ns(mark_ns + 640'000 * kHour);
    ExpiryClock expiry(clock, mark_ns);
    CHECK(expiry.now_ns() == mark_ns);
    clock.advance(ExpiryClock::kJumpSettleNs - 1);
    CHECK(expiry.now_ns() == mark_ns + ExpiryClock::kJumpSettleNs - 1);
    clock.advance(1);
    CHECK(expiry.now_ns() == clock.wall_ns());
  }
  SUBCASE("ahead, and set right meanwhile") {
    clock.set_wall_ns(mark_ns + 640'000 * kHour);
    ExpiryClock expiry(clock, mark_ns);
    CHECK(expiry.now_ns() == mark_ns);
    clock.advance(kHour / 2);
    clock.set_wall_ns(mark_ns + kHour);
    CHECK(expiry.now_ns() == mark_ns + kHour);
    clock.advance(5 * kHour);
    CHECK(expiry.now_ns() == mark_ns + 6 * kHour);
  }
}

TEST_CASE("bytes go by a time that lags behind what the clock leapt to, until that is accepted") {
  test::ManualClock clock;
  const std::int64_t mark_ns = clock.wall_ns();
  ExpiryClock expiry(clock, mark_ns);
  clock.set_wall_ns(mark_ns + 640'000 * kHour);
  CHECK(expiry.read().wait == ExpiryWait::Jump);
  clock.advance(ExpiryClock::kJumpSettleNs);
  CHECK(expiry.read().wait == ExpiryWait::None);
  CHECK(expiry.now_ns() == clock.wall_ns());
  CHECK(expiry.removal_ns() == mark_ns + kHour);
  clock.advance(kHour);
  CHECK(expiry.removal_ns() == mark_ns + 2 * kHour);
  SUBCASE("accepted") {
    expiry.accept(expiry.read().lag_ns);
    CHECK(expiry.removal_ns() == clock.wall_ns());
    // From then on it does not go back.
    const std::int64_t reached_ns = clock.wall_ns();
    clock.set_wall_ns(mark_ns);
    CHECK(expiry.now_ns() == reached_ns);
  }
  SUBCASE("confirmed") {
    clock.set_synchronised(true);
    CHECK(expiry.removal_ns() == clock.wall_ns());
  }
  SUBCASE("set right: what was hidden is there again") {
    clock.set_wall_ns(mark_ns + 100 * kHour);
    CHECK(expiry.now_ns() == mark_ns + 100 * kHour);
    CHECK(expiry.removal_ns() == mark_ns + 2 * kHour);
    clock.set_synchronised(true);
    CHECK(expiry.removal_ns() == mark_ns + 100 * kHour);
  }
  SUBCASE("set back further: no further than what may have gone") {
    clock.set_wall_ns(mark_ns - 100 * kHour);
    CHECK(expiry.now_ns() == mark_ns + 2 * kHour);
    CHECK(expiry.removal_ns() == mark_ns + 2 * kHour);
  }
}

}  // namespace edgecase::engine
