// The records, roles and model of `bench gdprbench`.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "bench/experiments/gdpr_model.h"
#include "bench/experiments/gdpr_records.h"

using namespace edgecase::cli::bench;

TEST_CASE("gdprbench: a record is made of its number alone") {
  const GdprLayout layout(100'000);
  CHECK(layout.users() == 10'000);
  for (const std::uint64_t number : {0ull, 7ull, 99'999ull, 123'456ull}) {
    CAPTURE(number);
    const GdprRecord record = layout.record(number);
    CHECK(record.values ==
          std::array<std::uint32_t, kGdprFields>{
              static_cast<std::uint32_t>(number % 10'000), static_cast<std::uint32_t>(number % 100),
              static_cast<std::uint32_t>(number % 2), static_cast<std::uint32_t>(number % 10),
              static_cast<std::uint32_t>(number % 10), static_cast<std::uint32_t>(number % 10),
              static_cast<std::uint32_t>(number % 10)});
    CHECK(gdpr_key(number) == "key" + std::to_string(number));
    CHECK(gdpr_purpose_of(number) == number % 25);
    CHECK(gdpr_data(number, 0).size() == kGdprDataBytes);
    CHECK(gdpr_data(number, 0) == gdpr_data(number, 0));
    CHECK(gdpr_data(number, 0) != gdpr_data(number, 1));
    CHECK(gdpr_data(number, 0) != gdpr_data(number + 1, 0));
  }
  CHECK(gdpr_namespace(gdpr_ttl_class(20)) == "ttl30");
  CHECK(gdpr_namespace(gdpr_ttl_class(29)) == "ttl1000000");
}

TEST_CASE("gdprbench: each role does its operations in its shares, the same for the same seed") {
  for (const GdprRole& role : gdpr_roles()) {
    CAPTURE(role.name);
    const auto operations = draw_operations(role, 1'000, 5'000, 7);
    REQUIRE(operations.size() == 1'000);
    std::map<GdprAct, unsigned> counts;
    std::map<std::uint32_t, unsigned> numbers;
    for (const GdprOperation& each : operations) {
      ++counts[each.act];
      ++numbers[each.number];
      CHECK(each.number < 5'000);
    }
    unsigned percent = 0, hottest = 0;
    for (const GdprRole::Part& part : role.parts) {
      CHECK(counts[part.act] == part.percent * 10);
      percent += part.percent;
    }
    CHECK(percent == 100);
    for (const auto& [number, count] : numbers) hottest = std::max(hottest, count);
    CHECK((hottest > 10) == (role.draw == GdprDraw::Zipfian));
    const auto again = draw_operations(role, 1'000, 5'000, 7);
    const auto other = draw_operations(role, 1'000, 5'000, 8);
    std::size_t same = 0, alike = 0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      same += operations[i].number == again[i].number && operations[i].act == again[i].act &&
              operations[i].other == again[i].other;
      alike += operations[i].number == other[i].number && operations[i].act == other[i].act;
    }
    CHECK(same == 1'000);
    CHECK(alike < 500);
  }
}

TEST_CASE("gdprbench: the model knows who is found, by whom, and until when") {
  GdprModel model(1'000, 1'010);
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t number = model.take_number();
    GdprRecord record = model.layout().record(number);
    record.time_ns = 1'000'000'000;
    model.add(number, record);
  }
  CHECK(model.of_user(3).size() == 10);
  // By key as the store orders it: key103 before key3.
  CHECK(model.of_purpose(3, 3, 3, 3) == std::vector<std::uint64_t>{303, 353, 403});
  CHECK(model.of_purpose(3, 3, 353, 2) == std::vector<std::uint64_t>{403, 453});
  CHECK(model.of_purpose(3, 4, 0, 10).empty());
  model.set_erased(353);
  model.set_value(103, GdprField::User, 7);
  CHECK(model.of_purpose(3, 3, 3, 3) == std::vector<std::uint64_t>{303, 403, 453});
  CHECK(model.of_user(3).size() == 9);
  CHECK(model.of_user(7).size() == 11);
  CHECK(model.erased_count() == 1);
  const std::int64_t second = 1'000'000'000;
  const auto presence = [&](std::uint64_t number, std::int64_t from, std::int64_t to) {
    return GdprModel::presence(number, model.record(number), from * second, to * second);
  };
  CHECK(presence(10, 5, 6) == Presence::There);
  CHECK(presence(10, 30, 32) == Presence::Either);
  CHECK(presence(10, 32, 33) == Presence::Gone);
  CHECK(presence(11, 32, 33) == Presence::There);
  CHECK(presence(353, 5, 6) == Presence::Gone);
}
