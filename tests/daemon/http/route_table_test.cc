#include "http/router.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "daemon/http/http_fixture.h"
#include "wire/contract.h"

namespace edgecase::http::test {
namespace {

// With names in place of {NAME}.
std::string some_path(const Route& route) {
  const std::string_view fixed = fixed_part(route.path);
  return std::string(fixed) + (fixed.size() < route.path.size() ? "a/b/c" : "");
}

}  // namespace

TEST_CASE("route table: each route is there once, and found by its method and path") {
  std::set<std::string> seen;
  for (const Route& route : route_table()) {
    CAPTURE(route.path);
    CHECK(seen.insert(std::string(route.method) + " " + std::string(route.path)).second);
    CHECK(find_route(route.method, some_path(route)) == &route);
    if (route.method == "GET") CHECK(find_route("HEAD", some_path(route)) == &route);
    CHECK((route.handler != nullptr));
    CHECK_FALSE(route.says.empty());
    CHECK_FALSE(route.gives.empty());
    CHECK_FALSE(route.audit.operation.empty());
    CHECK((route.effect == Effect::Changes || route.method == "GET"));
  }
  CHECK(find_route("GET", "/api/v1/nothing") == nullptr);
  CHECK(find_route("PATCH", wire::routes::kQuery) == nullptr);
}

TEST_CASE("route table: a misspelt parameter is refused, but where others are ignored") {
  ServerFixture f;
  for (const Route& route : route_table()) {
    CAPTURE(route.path);
    const bool ignores = route.parameters.ends_with('*');
    Parameters parameters{{"no_such", "1"}};
    CHECK(check_parameters(route, parameters).ok() == ignores);
    const Answer answer = f.ask(std::string(route.method), some_path(route) + "?no_such=1");
    const bool names_it =
        answer.body.find("unknown parameter \\\"no_such\\\"") != std::string::npos;
    CHECK(names_it == !ignores);
    if (!ignores) CHECK(answer.status == 400);
  }
  const auto told = [](const char* path, const char* name) {
    return check_parameters(*find_route("GET", path), {{name, "1"}}).message();
  };
  CHECK(told(wire::routes::kQuery, "selct") == "unknown parameter \"selct\", did you mean select?");
  const std::string all = told(wire::routes::kQuery, "series");
  CHECK(all.starts_with("unknown parameter \"series\", one of "));
  CHECK(all.find(" select ") != std::string::npos);
  CHECK(all.find_first_of("@!") == std::string::npos);
  CHECK(told(wire::routes::kOpenApi, "x") == "unknown parameter \"x\", there is none here");
}

TEST_CASE("openapi: every route and every parameter of the table is in the document") {
  ServerFixture f;
  const Answer answer = f.ask("GET", wire::routes::kOpenApi);
  REQUIRE(answer.status == 200);
  const nlohmann::json document = json_of(answer);
  const auto resolved = [&](const nlohmann::json& item) {
    if (!item.contains("$ref")) return item;
    return document.at(nlohmann::json::json_pointer(item["$ref"].get<std::string>().substr(1)));
  };
  for (const Route& route : route_table()) {
    CAPTURE(route.path);
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(c + ('a' - 'A'));
    const nlohmann::json operation = document["paths"][std::string(route.path)][method];
    REQUIRE(operation.is_object());
    std::multiset<std::string> told, wanted;
    for (const nlohmann::json& each : operation["parameters"]) {
      const nlohmann::json parameter = resolved(each);
      if (parameter["in"] == "query") told.insert(parameter["name"].get<std::string>());
    }
    for (std::string_view rest = route.parameters; !rest.empty();) {
      const std::string_view key = next_word(rest);
      if (key != "*") wanted.insert(std::string(key.substr(0, key.find_first_of("@!"))));
    }
    CHECK(told == wanted);
    CHECK(operation["responses"].contains(std::string(route.gives.substr(0, 3))));
  }
}

}  // namespace edgecase::http::test
