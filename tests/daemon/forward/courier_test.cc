// tidy: allow-file line-length: expected lines of output are kept whole
#include <algorithm>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "forward/courier.h"
#include "wire/reading_json.h"

namespace edgecase::forward {
namespace {

// A target that decides by what it is sent, and counts.
struct Scripted final : Carrier {
  std::function<Answer(std::string_view lines)> decide;
  std::string taken;
  int requests = 0;

  Answer carry(const std::string&, std::string_view lines, std::size_t) override {
    ++requests;
    Answer answer = decide(lines);
    if (answer.verdict == Verdict::Taken) taken += lines;
    return answer;
  }
};

Batch batch_of(const std::vector<std::string>& lines, std::size_t second_part = 0) {
  Batch batch;
  for (const std::string& each : lines) {
    batch.text += each + "\n";
    batch.lines.push_back({static_cast<std::uint32_t>(batch.text.size()), 1, {}});
  }
  const std::size_t split = second_part == 0 ? lines.size() : second_part;
  batch.parts.push_back({"one", 0, split});
  if (split < lines.size()) batch.parts.push_back({"two", split, lines.size()});
  return batch;
}

Answer refuse() {
  return {.verdict = Verdict::Refused, .status = 400, .why = "bad"};
}

Answer refuse_with(std::string_view word, std::string_view lines) {
  return lines.find(word) == std::string_view::npos ? Answer{} : refuse();
}

bool holds() {
  return true;
}

std::vector<std::string> good_lines(std::size_t count) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) lines.push_back("good" + std::to_string(i));
  return lines;
}

TEST_CASE("courier: a batch goes in a request for each part") {
  Scripted target;
  target.decide = [](std::string_view) { return Answer{}; };
  Courier courier(target);
  const Delivery delivery = courier.deliver(batch_of({"a", "b", "c"}, 1), holds);
  CHECK(delivery.last.verdict == Verdict::Taken);
  CHECK(delivery.taken == 3);
  CHECK(target.requests == 2);
  CHECK(target.taken == "a\nb\nc\n");
}

TEST_CASE("courier: a bad line costs itself") {
  Scripted target;
  target.decide = [](std::string_view lines) { return refuse_with("bad", lines); };
  Courier courier(target);
  auto lines = good_lines(100);
  lines[37] = "bad";
  const Delivery delivery = courier.deliver(batch_of(lines), holds);
  CHECK(delivery.last.verdict == Verdict::Taken);
  CHECK(delivery.taken == 99);
  REQUIRE(delivery.refused.size() == 1);
  CHECK(delivery.refused[0] == std::pair<std::size_t, int>{37, 400});
  CHECK(delivery.refused_why == "bad");
  CHECK(target.requests <= 16);
}

TEST_CASE("courier: a batch that is too large goes in pieces") {
  Scripted target;
  target.decide = [](std::string_view lines) {
    return lines.size() > 20 ? Answer{.verdict = Verdict::Refused, .status = 413} : Answer{};
  };
  Courier courier(target);
  const Delivery delivery = courier.deliver(batch_of(good_lines(64)), holds);
  CHECK(delivery.last.verdict == Verdict::Taken);
  CHECK(delivery.taken == 64);
  CHECK(delivery.refused.empty());
}

TEST_CASE("courier: a device whose every line is bad costs itself, where the target takes others") {
  Scripted target;
  target.decide = [](std::string_view lines) { return refuse_with("bad", lines); };
  Courier courier(target);
  REQUIRE(courier.deliver(batch_of({"good"}), holds).taken == 1);
  const Delivery delivery = courier.deliver(batch_of(std::vector<std::string>(500, "bad")), holds);
  CHECK(delivery.last.verdict == Verdict::Taken);
  CHECK(delivery.refused.size() == 500);
}

TEST_CASE("courier: a target that refuses everything is told from one that refuses a line") {
  Scripted target;
  bool is_wrong = true;
  target.decide = [&is_wrong](std::string_view lines) {
    return is_wrong ? refuse() : refuse_with("bad", lines);
  };
  Courier courier(target);
  SUBCASE("one line, before anything was taken") {
    const Delivery delivery = courier.deliver(batch_of({"bad"}), holds);
    CHECK(delivery.refuses_all);
    CHECK(delivery.last.verdict == Verdict::Refused);
  }
  SUBCASE("many lines, at few requests") {
    const Delivery delivery = courier.deliver(batch_of(good_lines(5000)), holds);
    CHECK(delivery.refuses_all);
    CHECK(static_cast<std::size_t>(target.requests) <= Courier::kRefusedInRowMax + 2);
  }
  SUBCASE("after it took lines") {
    is_wrong = false;
    REQUIRE(courier.deliver(batch_of({"good"}), holds).taken == 1);
    CHECK_FALSE(courier.deliver(batch_of({"bad"}), holds).refuses_all);
    is_wrong = true;
    CHECK(courier.deliver(batch_of({"bad"}), holds).refuses_all);
    is_wrong = false;
    courier.forget();
    CHECK(courier.deliver(batch_of({"bad"}), holds).refuses_all);
  }
}

TEST_CASE("courier: what is no answer to lines ends the delivery") {
  for (const Verdict verdict :
       {Verdict::Later, Verdict::Away, Verdict::Denied, Verdict::Wrong, Verdict::Stopped}) {
    Scripted target;
    target.decide = [verdict, &target](std::string_view) {
      return target.requests == 1 ? Answer{} : Answer{.verdict = verdict};
    };
    Courier courier(target);
    const Delivery delivery = courier.deliver(batch_of({"a", "b", "c"}, 1), holds);
    CHECK(delivery.last.verdict == verdict);
    CHECK(target.requests == 2);
  }
}

TEST_CASE("courier: nothing of what has been erased since is sent") {
  Scripted target;
  target.decide = [](std::string_view) { return refuse(); };
  Courier courier(target);
  int asked = 0;
  const Delivery delivery =
      courier.deliver(batch_of(good_lines(8)), [&asked] { return ++asked < 3; });
  CHECK(delivery.last.verdict == Verdict::Stale);
  CHECK(target.requests == 2);
}

// Planted: the line that was taken is sent again whatever was erased since.
TEST_CASE("courier: a line that was erased meanwhile is not tried again") {
  Scripted target;
  target.decide = [](std::string_view) { return Answer{}; };
  Courier courier(target);
  courier.deliver(batch_of({"erased"}), holds);
  target.decide = [](std::string_view) { return refuse(); };
  const int requests = target.requests;
  int asked = 0;
  const Delivery delivery = courier.deliver(batch_of({"bad"}), [&asked] { return asked++ == 0; });
  CHECK(delivery.last.verdict == Verdict::Stale);
  CHECK_FALSE(delivery.refuses_all);
  CHECK(target.requests == requests + 1);
}

Batch columns_of(const std::vector<std::pair<std::uint32_t, std::int64_t>>& lines) {
  Batch batch;
  for (const char* sensor : {"a", "b"}) {
    batch.columns.push_back({.head = R"({"namespace":"n","device":"d","sensor":")" +
                                     std::string(sensor) + R"(","time":")",
                             .is_int = sensor[0] == 'b'});
  }
  for (const auto& [column, time_ns] : lines) {
    batch.text += std::to_string(batch.lines.size()) + "\n";
    batch.lines.push_back({.end = static_cast<std::uint32_t>(batch.text.size()),
                           .namespace_id = 1,
                           .key = {.device = 1, .sensor = column, .time_ns = time_ns},
                           .column = column});
  }
  return batch;
}

TEST_CASE("batch: columns that take turns are an object each, one reading is as any other") {
  const Batch batch = columns_of({{0, 1}, {1, 1}, {0, 3}, {1, 4}, {0, 10}});
  CHECK(
      batch.body_of(0, 5) ==
      R"({"namespace":"n","device":"d","sensor":"a","time":"1970-01-01T00:00:00.000000001Z","steps":[2,7],"values":[0,2,4]})"
      "\n"
      R"({"namespace":"n","device":"d","sensor":"b","time":"1970-01-01T00:00:00.000000001Z","steps":[3],"values":[1,3],"type":"int"})"
      "\n");
  CHECK(
      batch.body_of(3, 4) ==
      R"({"namespace":"n","device":"d","sensor":"b","time":"1970-01-01T00:00:00.000000004Z","value":3,"type":"int"})"
      "\n");
  CHECK(batch.body_of(2, 2).empty());
}

TEST_CASE("batch: what a request brings is what was put into it, whole lines among columns too") {
  Batch batch = columns_of({{0, INT64_MIN}, {0, INT64_MAX}, {1, -5}, {1, 5}, {0, 7}});
  const std::string text = R"({"namespace":"n","device":"d","sensor":"t","time":1,"value":"x"})";
  batch.text += text + "\n";
  batch.lines.push_back(
      {.end = static_cast<std::uint32_t>(batch.text.size()), .namespace_id = 1, .key = {}});
  wire::ReadingBatch read;
  wire::JsonDecodeOutcome outcome;
  REQUIRE(wire::decode_readings_json(batch.body_of(0, 6), {}, read, outcome).ok());
  CHECK(outcome.bad == 0);
  REQUIRE(read.readings.size() == 6);
  std::int64_t sum = 0;
  for (const wire::Reading& reading : read.readings) {
    if (reading.value.type == wire::ValueType::Text) continue;
    const bool is_int = reading.value.type == wire::ValueType::Int64;
    const std::int64_t line =
        is_int ? reading.value.int64 : static_cast<std::int64_t>(reading.value.float64);
    CHECK(reading.time_ns == batch.lines[static_cast<std::size_t>(line)].key.time_ns);
    CHECK(is_int == (reading.sensor == "b"));
    sum += line;
  }
  CHECK(sum == 0 + 1 + 2 + 3 + 4);
}

constexpr std::int64_t kPaceSecondNs = 1'000'000'000;

TEST_CASE("pace: what is no answer is rested after, by what it says") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.rest_ns({.verdict = Verdict::Denied}) == Pace::kDeniedNs);
  CHECK(pace.rest_ns({.verdict = Verdict::Wrong}) == Pace::kDeniedNs);
  CHECK(pace.rest_ns({.verdict = Verdict::Stopped}) == 0);
  std::int64_t longest_ns = 0;
  for (int i = 0; i < 100; ++i)
    longest_ns = std::max(longest_ns, pace.rest_ns({.verdict = Verdict::Away}));
  CHECK(longest_ns > 30 * kPaceSecondNs);
  CHECK(longest_ns <= net::Backoff::kMaxNs);
  pace.hurry();
  CHECK(pace.rest_ns({.verdict = Verdict::Away}) <= net::Backoff::kFirstNs);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t rest_ns = pace.rest_ns(
        {.verdict = Verdict::Later, .status = 429, .why = {}, .retry_after_ns = 8 * kPaceSecondNs});
    CHECK(rest_ns >= 8 * kPaceSecondNs);
    CHECK(rest_ns <= 10 * kPaceSecondNs);
  }
}

TEST_CASE("pace: one on this machine is tried each second") {
  SeededRandom random(1);
  Pace pace(random, true, 0);
  for (int i = 0; i < 100; ++i)
    CHECK(pace.rest_ns({.verdict = Verdict::Away}) <= net::Backoff::kLocalMaxNs);
}

TEST_CASE("pace: batches halve where requests take long, and grow in steps") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.lines_max() == Batch::kLinesMax);
  pace.taken(3 * kPaceSecondNs);
  CHECK(pace.lines_max() == Batch::kLinesMax / 2);
  for (int i = 0; i < 20; ++i) pace.rest_ns({.verdict = Verdict::Away});
  CHECK(pace.lines_max() == Pace::kLinesMin);
  pace.rest_ns({.verdict = Verdict::Later});
  pace.taken(1);
  CHECK(pace.lines_max() == Pace::kLinesMin + Pace::kLinesStep);
  for (int i = 0; i < 100; ++i) pace.taken(1);
  CHECK(pace.lines_max() == Batch::kLinesMax);
}

TEST_CASE("pace: commits gather for as long as a request takes") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.gather_ns() == Pace::kGatherNs);
  pace.sent(0, kPaceSecondNs / 2, 0);
  CHECK(pace.gather_ns() == kPaceSecondNs / 2);
  pace.sent(0, 60 * kPaceSecondNs, 0);
  CHECK(pace.gather_ns() == Pace::kGatherMaxNs);
}

TEST_CASE("pace: a budget holds over batches, and saves nothing up") {
  SeededRandom random(1);
  Pace pace(random, false, 1000);
  pace.sent(10 * kPaceSecondNs, 1, 500);
  CHECK(pace.budget_until_ns() == 10 * kPaceSecondNs + kPaceSecondNs / 2);
  pace.sent(10 * kPaceSecondNs, 1, 500);
  CHECK(pace.budget_until_ns() == 11 * kPaceSecondNs);
  pace.sent(20 * kPaceSecondNs, 1, 1000);
  CHECK(pace.budget_until_ns() == 21 * kPaceSecondNs);
}

}  // namespace
}  // namespace edgecase::forward
