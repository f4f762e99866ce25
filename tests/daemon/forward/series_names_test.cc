#include "forward/series_names.h"

#include <doctest/doctest.h>

#include "wire/names.h"

namespace edgecase::forward {
namespace {

catalog::SeriesEntry entry_of(const char* device, const char* sensor,
                              const wire::Identity& identity) {
  return {.namespace_name = "default",
          .device = device,
          .sensor = sensor,
          .id = {},
          .identity = wire::encode_identity(identity)};
}

TEST_CASE("names there: a column's suffix goes behind the field, before tags") {
  constexpr wire::WindowColumn min = wire::WindowColumn::Min;
  struct Case {
    catalog::SeriesEntry entry;
    const char* sensor;
    wire::Identity identity;
  };
  const Case cases[] = {
      {entry_of("a", "cpu.idle{core=1}", {"cpu", {{"core", "1"}, {"host", "a"}}, "idle"}),
       "cpu.idle_min{core=1}",
       {"cpu", {{"core", "1"}, {"host", "a"}}, "idle_min"}},
      {entry_of("a", "cpu.idle~1f", {"cpu", {{"host", "a"}}, "idle"}),
       "cpu.idle~1f_min",
       {"cpu", {{"host", "a"}}, "idle_min"}},
      {{"default", "a", "temp", {}, {}},
       "temp.value_min",
       {"temp", {{"device", "a"}}, "value_min"}},
  };
  for (const Case& each : cases) {
    const catalog::SeriesEntry named = column_of(each.entry, min);
    CHECK(named.sensor == each.sensor);
    CHECK(named.device == "a");
    CHECK(catalog::identity_of(named).value() == each.identity);
  }
}

TEST_CASE("names there: a pseudonym is by target, namespace and name, and tells none of them") {
  const Pseudonyms one(Bytes(32, 'a')), other(Bytes(32, 'b')), none;
  const std::string name = one.of("default", "truck-7");
  CHECK(name.size() == 25);
  CHECK(name == one.of("default", "truck-7"));
  CHECK(name != one.of("default", "truck-8"));
  CHECK(name != one.of("lab", "truck-7"));
  CHECK(name != other.of("default", "truck-7"));
  CHECK(none.of("default", "truck-7") == "truck-7");
}

TEST_CASE("names there: nothing of a device is left in what names it") {
  const Pseudonyms pseudonyms(Bytes(32, 'a'));
  const std::string name = pseudonyms.of("default", "truck");
  struct Case {
    catalog::SeriesEntry entry;
    const char* device;
    wire::Identity identity;
    std::string sensor;
  };
  const std::string pair = pseudonyms.of("default", "fleet.truck");
  const std::string part = pseudonyms.of("default", "fleet");
  const Case cases[] = {
      {entry_of("truck", "m.f{site=x}", {"m", {{"host", "truck"}, {"site", "x"}}, "f"}),
       "truck",
       {"m", {{"host", name}, {"site", "x"}}, "f"},
       "m.f{site=x}"},
      {entry_of("fleet.truck", "m.f", {"m", {{"group", "fleet"}, {"host", "truck"}}, "f"}),
       "fleet.truck",
       {"m", {{"group", part}, {"host", name}}, "f"},
       "m.f"},
      {entry_of("truck", "truck.f", {"truck", {}, "f"}), "truck", {name, {}, "f"}, name + ".f"},
      {entry_of("truck", "truck.f~9", {"truck", {}, "f"}), "truck", {name, {}, "f"}, name + ".f"},
  };
  for (const Case& each : cases) {
    const catalog::SeriesEntry named = pseudonyms.of(each.entry);
    CHECK(named.device == pseudonyms.of("default", each.device));
    CHECK(named.sensor == each.sensor);
    CHECK(catalog::identity_of(named).value() == each.identity);
  }
}

}  // namespace
}  // namespace edgecase::forward
