#include "erase/erase_service.h"

#include "daemon/erase/erase_room.h"

namespace edgecase::erase {

TEST_CASE("a topic names a device by one level or by several") {
  CHECK(topic_names("sensors/kitchen/temp", "kitchen"));
  CHECK(topic_names("kitchen", "kitchen"));
  CHECK(topic_names("a/house/kitchen/x", "house.kitchen"));
  CHECK(topic_names("a/house.kitchen/x", "house.kitchen"));
  CHECK(topic_names("sensors/7/temp", "7"));
  CHECK_FALSE(topic_names("sensors/kitchen2/temp", "kitchen"));
  CHECK_FALSE(topic_names("sensors/my-kitchen/temp", "kitchen"));
  CHECK_FALSE(topic_names("", "kitchen"));
}

TEST_CASE("a text names what stands alone in it") {
  CHECK(text_names("reading 1, kitchen/temp: no number", "kitchen"));
  CHECK(text_names("{\"id\":\"00:11:22\"}", "00:11:22"));
  CHECK_FALSE(text_names("kitchenette", "kitchen"));
  CHECK_FALSE(text_names("the kitchens", "kitchen"));
  CHECK_FALSE(text_names("\u00fckitchen", "kitchen"));
  CHECK_FALSE(text_names("it is on", "on"));  // too short to tell anything
}

TEST_CASE("messages that name what is erased go, in whatever form they are kept") {
  test::Room room;
  room.fill("kitchen", "temp");
  room.fill("kitchen", "hum");
  room.reject(R"({"topic":"t/kitchen/temp","reason":"r","payload":"p"})");
  room.reject(R"({"topic":"t/cellar/hum","reason":"kitchen/hum is bad","payload":"p"})");
  room.reject(R"({"topic":"t","reason":"r","payload_base64":"/2tpdGNoZW4="})");  // \xff, kitchen
  room.reject(R"({"topic":"t","reason":"r","payload_base64":"ACBraXRjaGVuIA=="})");
  room.reject("no json, of the kitchen");
  room.reject(R"({"topic":"t/attic/temp","reason":"r","payload":"p"})");
  REQUIRE(room.erase("kitchen/hum").ok());
  CHECK(room.readings("_rejected") == 5);
  REQUIRE(room.erase("kitchen").ok());
  CHECK(room.readings("_rejected") == 2);
  CHECK(room.holds("attic"));
}

TEST_CASE("views lose the series that are erased, and keep the others") {
  test::Room room;
  for (const char* sensor : {"temp", "hum"}) room.fill("my kitchen", sensor);
  room.fill("cellar", "temp");
  room.fill("my kitchen", "temp", "other");
  const auto keep = [&room](const char* name, const std::string& text) {
    wire::ReadingBatch batch;
    batch.readings.push_back(
        {wire::kViewsNamespace, name, "charts", test::kNow, wire::Value::of_text(text)});
    const auto authorized = auth::authorize_write(test::local(), batch);
    REQUIRE(authorized.ok());
    REQUIRE(room.pipeline->ingest(*authorized).ok());
  };
  keep("rooms",
       R"({"version":1,"from":"-1d","charts":[["default/my%20kitchen/temp","default/cellar/temp"],)"
       R"(["other/my%20kitchen/temp"],["default/my%20kitchen/hum"]]})");
  keep("odd", "not JSON, of my kitchen");
  keep("cellars", R"({"charts":[["default/cellar/temp"]]})");
  REQUIRE(room.erase("my kitchen/hum").ok());
  CHECK(room.holds(R"("charts":[["default/my%20kitchen/temp","default/cellar/temp"],)"
                   R"(["other/my%20kitchen/temp"],[]])"));
  CHECK(room.readings("_views") == 3);
  REQUIRE(room.erase("my kitchen").ok());
  CHECK(room.holds(R"("charts":[["default/cellar/temp"],["other/my%20kitchen/temp"],[]])"));
  CHECK(room.readings("_views") == 2);
  CHECK_FALSE(room.holds("of my kitchen"));
  // Views that cannot be read hold up no erasure: all may name it.
  catalog::Erased erased;
  erased.series.push_back(room.catalog->find("default", "cellar", "temp").value());
  CHECK(find_views(room.engine, erased).size() == 2);
  room.engine.fail_next_read(corruption("a damaged table"));
  const std::vector<ViewMention> all = find_views(room.engine, erased);
  REQUIRE(all.size() == 1);
  CHECK(all.front().key.empty());
  CHECK(all.front().value.empty());
  // Erasing a view takes all of it.
  REQUIRE(room.erase("rooms", "_views").ok());
  CHECK(room.readings("_views") == 1);
  CHECK_FALSE(room.holds("other/my"));
}

TEST_CASE("messages that cannot be read, or too many names, take every message") {
  test::Room room;
  room.fill("kitchen", "temp");
  room.reject(R"({"topic":"t/attic/temp","reason":"r","payload":"p"})");
  const auto series = room.catalog->find("default", "kitchen", "temp").value();
  catalog::Erased erased;
  erased.series.push_back(series);
  CHECK(find_mentions(room.engine, *room.catalog, erased).empty());
  room.engine.fail_next_read(unavailable("the values drive is away"));
  CHECK(find_mentions(room.engine, *room.catalog, erased).size() == 1);
  erased.series.assign(kMentionedNamesMax + 1, series);
  CHECK(find_mentions(room.engine, *room.catalog, erased).size() == 1);
  CHECK(find_mentions(room.engine, *room.catalog, {}).empty());
}

}  // namespace edgecase::erase
