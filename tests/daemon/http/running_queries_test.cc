#include "http/running_queries.h"

#include <doctest/doctest.h>

namespace edgecase::http::test {
namespace {

struct Behind final : Patience {
  int asked = 0, rested = 0;
  Status go_on() override {
    ++asked;
    return ok();
  }
  void rest() override { ++rested; }
  void resume() override { --rested; }
};

auth::Principal reader(const char* name) {
  auth::Scopes scopes;
  scopes.read = {wire::Selector{}};
  auto grant = std::make_shared<auth::Grant>();
  grant->scopes = scopes;
  return {auth::PrincipalKind::Remote, name, grant};
}

}  // namespace

TEST_CASE(
    "running queries: each is told until it ends, and killed by its asker or an administrator") {
  RunningQueries table;
  const auth::Principal ann = reader("ann"), ben = reader("ben");
  const auth::Principal local{auth::PrincipalKind::LocalSocket, "uid 0", nullptr};
  Behind behind;
  auto first = table.begin("SHOW SERIES", "a", ann, &behind, 1'000);
  auto second = table.begin(std::string(5'000, 'x'), "b", ben, nullptr, 2'000);
  REQUIRE(table.tell(local, 3'000).size() == 2);
  CHECK(table.tell(local, 3'000)[0].running_ns == 2'000);
  CHECK(table.tell(local, 3'000)[1].text.size() == RunningQueries::kTextMaxBytes);
  REQUIRE(table.tell(ann, 3'000).size() == 1);
  CHECK(table.tell(ann, 3'000)[0].text == "SHOW SERIES");
  CHECK(table.tell(ann, 3'000)[0].database == "a");

  const auto id_of = [&](std::size_t i) {
    return static_cast<std::int64_t>(table.tell(local, 0)[i].id);
  };
  for (const std::int64_t id : {id_of(1), std::int64_t{0}, std::int64_t{-1}, INT64_MAX})
    CHECK(table.kill(id, ann).code() == StatusCode::NotFound);
  CHECK(second->go_on().ok());
  CHECK(first->go_on().ok());
  CHECK(behind.asked == 1);
  first->rest();
  CHECK(behind.rested == 1);
  first->resume();
  second->rest();

  CHECK(table.kill(id_of(0), ann).ok());
  CHECK(first->go_on().code() == StatusCode::Cancelled);
  CHECK(table.tell(ann, 0)[0].is_killed);
  CHECK(table.kill(id_of(1), local).ok());
  CHECK(second->go_on().code() == StatusCode::Cancelled);
  first = nullptr;
  CHECK(table.tell(ann, 0).empty());
  CHECK(table.tell(local, 0).size() == 1);
}

}  // namespace edgecase::http::test
