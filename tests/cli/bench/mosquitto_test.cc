#include "bench/processes.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "bench/loads.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("bench: a child ends with its owner, and one that cannot start is told of") {
  const test::TempDirectory directory;
  pid_t id = 0;
  {
    auto child = ChildProcess::start({"sleep", "1000"}, directory / "log");
    REQUIRE(child.ok());
    id = (*child)->id();
    CHECK((*child)->running());
    CHECK(usage_of(id).resident_bytes > 0);
  }
  CHECK(kill(id, 0) == -1);
  CHECK(errno == ESRCH);
  auto nothing = ChildProcess::start({"/nowhere/program"}, directory / "log");
  REQUIRE(nothing.ok());
  CHECK(wait_until_ready(**nothing, 10, [] { return false; }).code() == StatusCode::Unavailable);
}

TEST_CASE("bench: messages published reach a subscriber through a private mosquitto") {
  if (access("/usr/sbin/mosquitto", X_OK) != 0) {
    MESSAGE("skipped: no mosquitto here");
    return;
  }
  const test::TempDirectory directory;
  {
    const auto broker = MosquittoProcess::start(directory.path());
    REQUIRE_MESSAGE(broker.ok(), broker.status().to_string());
    for (const int qos : {0, 1}) {
      const auto counter = CountingSubscriber::connect((*broker)->port(), qos);
      REQUIRE_MESSAGE(counter.ok(), counter.status().to_string());
      REQUIRE(publish_all((*broker)->endpoint(), {.publishers = 2, .messages = 501}).ok());
      for (int i = 0; i < 10'000 && (*counter)->messages() < 501; ++i) sleep_ms(1);
      CHECK((*counter)->messages() == 501);
    }
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}
