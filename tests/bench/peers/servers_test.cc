// The servers of another make that a benchmark starts, where they are installed.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "bench/loads.h"
#include "bench/peers/influx_process.h"
#include "bench/peers/redis_process.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("bench: a private InfluxDB takes the lines") {
  if (access("/usr/bin/influxd", X_OK) != 0) {
    MESSAGE("skipped: no influxd here");
    return;
  }
  const test::TempDirectory directory;
  {
    const auto influx = InfluxProcess::start(directory.path());
    REQUIRE_MESSAGE(influx.ok(), influx.status().to_string());
    REQUIRE(create_database((*influx)->endpoint(), "bench").ok());
    SensorLineOptions lines;
    lines.lines = 2'000;
    lines.lines_per_body = 300;
    const auto requests = make_write_requests(make_sensor_bodies(lines), "bench");
    const auto load = send_all((*influx)->endpoint(), requests, 2, 0);
    REQUIRE_MESSAGE(load.ok(), load.status().to_string());
    CHECK(load->requests == 7);
    HttpClient client((*influx)->endpoint());
    const auto count = client.get("/query?db=bench&q=SELECT%20count(co2)%20FROM%20node");
    REQUIRE(count.ok());
    CHECK(count->find(",2000]") != std::string::npos);
    CHECK_FALSE(
        send_all((*influx)->endpoint(), make_write_requests({"no line"}, "bench"), 1, 0).ok());
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench: a private Redis keeps and forgets keys") {
  if (!RedisProcess::is_installed()) {
    MESSAGE("skipped: no redis-server here");
    return;
  }
  const test::TempDirectory directory;
  {
    const auto redis = RedisProcess::start(directory.path());
    REQUIRE_MESSAGE(redis.ok(), redis.status().to_string());
    auto client = RedisClient::connect((*redis)->endpoint());
    REQUIRE(client.ok());
    REQUIRE(client->call({{"SET", "a", "1"}, {"SET", "b", "2"}}).ok());
    CHECK(client->call({{"DBSIZE"}}).value() == 2);
    CHECK(client->call({{"DEL", "a"}, {"PEXPIRE", "b", "1"}}).value() == 1);
    std::uint64_t left = 1;
    for (int i = 0; i < 10'000 && left > 0; ++i) {
      left = client->call({{"EXISTS", "b"}}).value();
      if (left > 0) sleep_ms(1);
    }
    CHECK(left == 0);
    CHECK_FALSE(client->call({{"NOSUCHCOMMAND"}}).ok());
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}
