#include "mqtt/connection.h"

#include <doctest/doctest.h>

#include "support/model_engine.h"

using namespace edgecase;
using mqtt::SubscribedFilters;

namespace {

std::unique_ptr<SubscribedFilters> filters_of(Engine& engine, std::string_view client_id,
                                              std::string_view broker) {
  auto opened = SubscribedFilters::open(engine, client_id, broker);
  REQUIRE(opened.ok());
  return std::move(opened).value();
}

}  // namespace

TEST_CASE("subscribed filters: remembered for each session") {
  test::ModelEngine engine;
  auto filters = filters_of(engine, "edge", "b:1883");
  CHECK(filters->filters().empty());
  REQUIRE(filters->add("s/+/#").ok());
  REQUIRE(filters->add("t").ok());
  REQUIRE(filters->add("t").ok());
  filters = filters_of(engine, "edge", "b:1883");
  CHECK(filters->filters() == std::set<std::string>{"s/+/#", "t"});
  REQUIRE(filters->remove("t").ok());
  CHECK(filters_of(engine, "edge", "b:1883")->filters() == std::set<std::string>{"s/+/#"});
  CHECK(filters_of(engine, "edge2", "b:1883")->filters().empty());
  CHECK(filters_of(engine, "edge", "b:18830")->filters().empty());
}

TEST_CASE("subscribed filters: what could not be written is not taken for remembered") {
  test::ModelEngine engine;
  auto filters = filters_of(engine, "edge", "b:1883");
  engine.fail_next_write(out_of_space("full"));
  CHECK(filters->add("t").code() == StatusCode::OutOfSpace);
  CHECK(filters->filters().empty());
  REQUIRE(filters->add("t").ok());
  engine.fail_next_write(io_error("gone"));
  CHECK(filters->remove("t").code() == StatusCode::IoError);
  CHECK(filters->filters().size() == 1);
}
