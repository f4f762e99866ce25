#include "http/influx_query.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <tuple>

#include "edgecase/machine.h"

namespace edgecase::http::test {
namespace {

using Told = std::tuple<std::string, std::string, std::string>;

Told told_of(const Name& name) {
  return {std::string(name.group), std::string(name.first), std::string(name.second)};
}

}  // namespace

TEST_CASE("influx names: in order, each once, whatever they are and however many") {
  constexpr std::size_t kHeldBytes = 64u << 10;
  SeededRandom random{20251129};
  std::vector<Told> given;
  std::size_t bytes = 0;
  // Over three times what is held, most of them several times.
  while (bytes < 4 * kHeldBytes) {
    const auto text = [&random](std::size_t most) {
      std::string made(random.next() % (most + 1), 'x');
      for (char& c : made) c = static_cast<char>("ab\0\xff"[random.next() % 4]);
      return made;
    };
    given.emplace_back(text(2), text(6), text(60));
    bytes += std::get<2>(given.back()).size() + 20;
  }
  given.emplace_back("", "", "");
  given.emplace_back("m", std::string(16'000, 'k'), std::string(2 * kHeldBytes, 'v'));
  const std::set<Told> wanted(given.begin(), given.end());
  int looks = 0;
  Names names(
      [&](const Names::Take& take) {
        ++looks;
        for (const int turn : {0, 1}) {
          static_cast<void>(turn);
          for (const auto& [group, first, second] : given) take({group, first, second});
        }
        return ok();
      },
      kHeldBytes);
  auto next = wanted.begin();
  Name name;
  for (;; ++next) {
    const auto more = names.peek(name);
    REQUIRE(more.ok());
    if (!*more) break;
    REQUIRE(next != wanted.end());
    REQUIRE(told_of(name) == *next);
    // The same again, also where what is held was dropped.
    if (random.next() % 500 == 0) names.drop();
    REQUIRE(*names.peek(name));
    REQUIRE(told_of(name) == *next);
    names.pop();
  }
  CHECK(next == wanted.end());
  CHECK(looks > 3);
  CHECK_FALSE(*names.peek(name));
}

TEST_CASE("influx names: what a look fails with is told, and nothing is none") {
  Names none([](const Names::Take&) { return ok(); });
  Name name;
  CHECK_FALSE(*none.peek(name));
  bool fails = true;
  Names failing([&fails](const Names::Take& take) {
    take({"g", "a", "b"});
    return fails ? busy("not now") : ok();
  });
  CHECK(failing.peek(name).status().code() == StatusCode::Busy);
  fails = false;
  REQUIRE(*failing.peek(name));
  CHECK(told_of(name) == Told{"g", "a", "b"});
}

}  // namespace edgecase::http::test
