// Readings through a real broker into a real store: the telemetry of the shared data read back
// value by value, and a process that is killed while it drains the broker's queue.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "flow/mqtt_store.h"
#include "mqtt/topic_rule.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"
#include "support/test_data.h"

using namespace edgecase;
using test::eventually;
using test::MosquittoBroker;
using test::MqttStore;

namespace {

config::MqttSettings settings_for(const MosquittoBroker& broker, const char* topic) {
  config::MqttSettings settings;
  settings.broker = broker.url();
  settings.client_id = "edgecase-flow";
  config::MqttRuleSettings rule;
  rule.topic = topic;
  settings.rules = {rule};
  return settings;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// "device/sensor@time" to the value's JSON text.
using Table = std::map<std::string, std::string>;

std::string key_of(std::string_view device, std::string_view sensor, std::int64_t time_ns) {
  return std::string(device) + "/" + std::string(sensor) + "@" + std::to_string(time_ns);
}

// What the messages hold, read by another parser. The time's digits are cut out of the text, since
// a double could not hold them.
Table expected_of(const std::vector<std::string>& messages) {
  Table table;
  for (const std::string& message : messages) {
    const auto json = nlohmann::json::parse(message);
    const std::size_t begin = message.find("\"ts\":") + 5;
    const std::size_t end = message.find_first_of(",}", begin);
    const auto time_ns =
        mqtt::parse_message_time_ns(message.substr(begin, end - begin), mqtt::TimeFormat::Unix);
    REQUIRE(time_ns.ok());
    const std::string device = json["device"];
    for (const auto& [name, value] : json["data"].items()) {
      table[key_of(device, "data." + name, *time_ns)] = value.dump();
    }
    table[key_of(device, "device_id", *time_ns)] = json["device_id"].dump();
  }
  return table;
}

std::string json_of(const wire::Value& value) {
  if (value.type == wire::ValueType::Bool) return value.boolean ? "true" : "false";
  if (value.type == wire::ValueType::Text) return nlohmann::json(value.text).dump();
  return nlohmann::json(value.float64).dump();
}

int number_of_kills() {
  const char* text = std::getenv("EDGECASE_FLOW_KILLS");
  return text != nullptr ? std::atoi(text) : 5;
}

std::uint64_t seed_of_this_run() {
  const char* text = std::getenv("EDGECASE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : system_random().next();
}

// The process to be killed: drains the broker into the store until then.
[[noreturn]] void drain(const std::string& directory, const config::MqttSettings& settings) {
  auto store = MqttStore::open(directory);
  if (!store.ok() || !(*store)->subscribe(settings).ok()) ::_exit(3);
  while (true) ::pause();
}

}  // namespace

TEST_CASE("mqtt flow: real telemetry comes back value by value") {
  const auto data = test::read_test_data("mqtt_env_telemetry_h00-12.jsonl.gz");
  if (!data || !MosquittoBroker::is_installed()) {
    MESSAGE("skipped: no test data or no mosquitto");
    return;
  }
  const std::vector<std::string> messages = lines_of(*data);
  MosquittoBroker broker;
  REQUIRE(broker.start());
  test::TempDirectory directory;
  auto settings = settings_for(broker, "env/telemetry");
  settings.rules[0].device = "/device";
  settings.rules[0].time = "/ts";
  settings.rules[0].time_format = "unix";
  {
    auto store = MqttStore::open(directory.path());
    REQUIRE(store.ok());
    REQUIRE((*store)->subscribe(settings).ok());
    mqtt::MqttSource& source = (*store)->source();
    REQUIRE(eventually([&source] { return source.status().connected; }));
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(broker.publish("env/telemetry", messages));
    REQUIRE(eventually([&] { return source.status().counters.messages >= messages.size(); }, 900));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    source.stop();
    CHECK(source.status().counters.rejected == 0);
    MESSAGE((static_cast<double>(messages.size()) / taken.count()) << " durable messages/s");
  }
  // Opened again: from the drives, not from memory.
  auto store = MqttStore::open(directory.path());
  REQUIRE(store.ok());
  Table expected = expected_of(messages);
  std::size_t wrong = 0;
  const Status read = (*store)->visit("default", [&](const wire::Reading& reading) {
    const auto found = expected.find(key_of(reading.device, reading.sensor, *reading.time_ns));
    if (found == expected.end() || found->second != json_of(reading.value)) {
      ++wrong;
      return;
    }
    expected.erase(found);
  });
  CHECK(read.ok());
  CHECK(wrong == 0);
  CHECK(expected.empty());
}

// Numbered messages wait at the broker. A process drains them and is killed, again and again, each
// time at another moment. What it acknowledged the broker never sends again, so at the end every
// number must be in the store.
TEST_CASE("mqtt flow: kill -9 while draining loses nothing that was acknowledged") {
  if (!MosquittoBroker::is_installed()) {
    MESSAGE("skipped: mosquitto is not installed");
    return;
  }
  constexpr int kMessagesARound = 400;
  MosquittoBroker broker;
  REQUIRE(broker.start());
  test::TempDirectory directory;
  const auto settings = settings_for(broker, "s/{device}/{sensor}");
  {
    auto store = MqttStore::open(directory.path());
    REQUIRE(store.ok());
    REQUIRE((*store)->subscribe(settings).ok());
    REQUIRE(eventually([&store] { return (*store)->source().status().connected; }));
  }
  const std::uint64_t seed = seed_of_this_run();
  MESSAGE("seed " << seed);
  SeededRandom random(seed);
  int published = 0;
  const int kills = number_of_kills();
  for (int round = 0; round < kills; ++round) {
    std::vector<std::string> numbers;
    for (int i = 0; i < kMessagesARound; ++i) numbers.push_back(std::to_string(published++));
    REQUIRE(broker.publish("s/k/n", numbers));
    const pid_t child = ::fork();
    if (child == 0) drain(directory.path(), settings);
    // Opening and connecting take part of this; the rest falls into the draining.
    const double seconds = 0.1 + static_cast<double>(random.below(900)) / 1'000;
    const bool ended =
        eventually([child] { return ::waitpid(child, nullptr, WNOHANG) == child; }, seconds);
    REQUIRE(!ended);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::map<int, int> seen;
  std::uint64_t rest = 0;
  {
    auto store = MqttStore::open(directory.path());
    REQUIRE(store.ok());
    REQUIRE((*store)
                ->visit("default",
                        [&seen](const wire::Reading& reading) {
                          ++seen[static_cast<int>(reading.value.float64)];
                        })
                .ok());
    const std::size_t before = seen.size();
    REQUIRE((*store)->subscribe(settings).ok());
    mqtt::MqttSource& source = (*store)->source();
    REQUIRE(eventually([&source] { return source.status().connected; }));
    // The broker sends in order: once this one is there, so is everything it still had.
    REQUIRE(broker.publish("s/k/end", {"1"}));
    bool end_came = false;
    REQUIRE(eventually(
        [&] {
          end_came = false;
          seen.clear();
          const Status read = (*store)->visit("default", [&](const wire::Reading& reading) {
            if (reading.sensor == "end") {
              end_came = true;
            } else {
              ++seen[static_cast<int>(reading.value.float64)];
            }
          });
          return read.ok() && end_came;
        },
        900));
    rest = source.status().counters.messages;
    MESSAGE(kills << " kills, " << published << " messages: " << before
                  << " stored before the last run, " << rest << " sent in it");
  }
  int missing = 0;
  int twice = 0;
  for (int i = 0; i < published; ++i) {
    const auto found = seen.find(i);
    missing += found == seen.end() ? 1 : 0;
    twice += found != seen.end() && found->second > 1 ? 1 : 0;
  }
  MESSAGE(missing << " missing, " << twice << " stored more than once");
  CHECK(missing == 0);
  CHECK(seen.size() == static_cast<std::size_t>(published));
}
