#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "app/daemon.h"
#include "daemon/audit/audit_room.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::app {

TEST_CASE("setting changes: what holds at once, and what needs a restart") {
  config::Settings before;
  config::MqttRuleSettings rule;
  rule.topic = "a/{device}/{sensor}";
  rule.line = 3;
  rule.where = "e.toml:3:1";
  before.mqtt.rules.push_back(rule);
  CHECK(changes_of(before, before).now.empty());

  config::Settings after = before;
  after.mqtt.rules[0].line = 9;  // a comment above it
  after.mqtt.rules[0].where = "e.toml:9:1";
  SettingChanges changes = changes_of(before, after);
  CHECK(!changes.of_source);
  CHECK(changes.now.empty());

  after.mqtt.rules[0].retention = "1d";
  after.mqtt.username = "board";
  after.http.threads = 9;
  after.storage.values = "/elsewhere";
  changes = changes_of(before, after);
  CHECK(changes.of_rules);
  CHECK(changes.of_source);
  CHECK(changes.now == "mqtt.username, mqtt.rule");
  CHECK(changes.at_restart == "storage.values, http.threads");

  after = before;
  after.influx.rules.push_back({"a", "{b}", 12});
  changes = changes_of(before, after);
  CHECK(changes.now == "influx.rule");
  CHECK(!changes.of_source);
  config::Settings moved = after;
  moved.influx.rules[0].line = 13;
  CHECK(changes_of(after, moved).now.empty());

  after = before;
  after.limits.query_windows = 7;
  after.limits.query_statements = 7;
  changes = changes_of(before, after);
  CHECK(changes.now == "limits.query-windows");
  CHECK(changes.at_restart == "limits.query-statements");

  // From nothing to something, or back, is built at the start alone.
  after = before;
  after.mqtt.broker = "";
  after.http.tls_cert = "/c";
  changes = changes_of(before, after);
  CHECK(changes.at_restart == "http.tls-cert, mqtt.broker");
  CHECK(!changes.of_source);
  before.http.tls_cert = "/b";
  after.mqtt.broker = before.mqtt.broker;
  changes = changes_of(before, after);
  CHECK(changes.now == "http.tls-cert");
  CHECK(changes.at_restart.empty());
}

TEST_CASE("a clock behind what the store has known is not trusted, unless it is confirmed") {
  constexpr std::int64_t kHour = 3600LL * 1'000'000'000;
  test::ManualClock machine;
  test::ModelEngine engine;
  StoreClock clock(machine);
  engine.set_expiry_now_ns(machine.wall_ns() + 72 * kHour);
  CHECK(clock.trust() == ClockTrust::Trusted);  // nothing is known yet
  clock.follow(engine);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.set_synchronised(true);
  CHECK(clock.trust() == ClockTrust::Trusted);
  machine.set_synchronised(false);
  machine.advance(72 * kHour - StoreClock::kBehindMaxNs - 1);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.advance(1);
  CHECK(clock.trust() == ClockTrust::Trusted);
  machine.set_trust(ClockTrust::Untrusted);
  machine.set_synchronised(true);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.set_trust(ClockTrust::Trusted);
  engine.set_expiry_now_ns(INT64_MIN);
  CHECK(clock.trust() == ClockTrust::Trusted);
}

namespace {

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends, O_NONBLOCK) == 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  int ends[2] = {-1, -1};
};

// An audit log, and a log that is read back.
struct Room : audit::test::AuditRoom {
  void look(const ExpiryStats& stats) {
    clock.advance(10'000'000'000);
    watch.look(stats);
    log->tick();
  }
  std::string told() const {
    std::string all(65536, '\0');
    const ssize_t got = read(pipe.ends[0], all.data(), all.size());
    all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return all;
  }
  std::vector<std::string> recorded() const {
    std::vector<std::string> all;
    for (const audit::Record& record : list())
      all.push_back(record.actor + " " + record.operation + " " + record.detail);
    return all;
  }

  Pipe pipe;
  observe::Logger logger{pipe.ends[1], observe::LogStyle::Journal, clock};
  ExpiryWatch watch{logger, *log};
};

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what a leap of the clock holds is told once, and once when nothing is held any more") {
  Room room;
  ExpiryStats stats;
  room.look(stats);
  CHECK(room.told().empty());
  CHECK(room.recorded().empty());
  stats.held_bytes = 5'000'000;
  room.look(stats);
  const std::string error = room.told();
  CHECK(error.starts_with("<3>expiry: the clock leapt, and 5000000 bytes"));
  const std::vector<std::string> held = {"daemon expiry.held 5000000 bytes"};
  REQUIRE(room.recorded() == held);
  CHECK(room.list().front().time_ns == room.clock.wall_ns());
  stats.held_bytes = 6'000'000;
  room.look(stats);
  room.look(stats);
  CHECK(room.told().empty());
  CHECK(room.recorded() == held);
  stats.held_bytes = 0;
  room.look(stats);
  CHECK(room.told().starts_with("<5>expiry: nothing is kept any more"));
  const std::vector<std::string> all = {held.front(), "daemon expiry.released 6000000 bytes"};
  CHECK(room.recorded() == all);
  room.look(stats);
  CHECK(room.told().empty());
  CHECK(room.recorded() == all);
  CHECK(room.verified().faults.empty());
}

TEST_CASE("why readings do not expire by the clock is told when it begins and when it ends") {
  Room room;
  ExpiryStats stats;
  stats.wait = ExpiryWait::Jump;
  room.look(stats);  // without rules it is nobody's concern
  CHECK(room.told().empty());
  stats.rules = 1;
  for (const auto& [wait, told] :
       {std::pair{ExpiryWait::Jump, "<4>expiry: the clock is over an hour ahead"},
        std::pair{ExpiryWait::Untrusted, "<4>expiry: nothing expires"},
        std::pair{ExpiryWait::None, "<5>expiry: goes by the clock again"}}) {
    stats.wait = wait;
    room.look(stats);
    CHECK(holds(room.told(), told));
    room.look(stats);
    CHECK(room.told().empty());
  }
  CHECK(room.recorded().empty());
}

TEST_CASE("what is held is told in the log where nobody keeps an audit log") {
  Room room;
  room.log.reset();
  room.options.mode = audit::Mode::Off;
  room.open();
  ExpiryWatch watch(room.logger, *room.log);
  ExpiryStats stats;
  stats.held_bytes = 1;
  watch.look(stats);
  CHECK(holds(room.told(), "the clock leapt, and 1 bytes"));
}

}  // namespace edgecase::app
