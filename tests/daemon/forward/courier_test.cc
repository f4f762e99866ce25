#include "forward/courier.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

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

}  // namespace
}  // namespace edgecase::forward
