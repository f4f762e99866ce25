#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "catalog/names.h"
#include "support/model_engine.h"
#include "wire/line_protocol.h"

using namespace edgecase;

TEST_CASE("names stay where they are, whatever comes after them, until they are wiped") {
  catalog::NameStore store;
  CHECK(store.keep("").empty());
  std::vector<std::pair<std::string, std::string_view>> kept;
  for (int i = 0; i < 50'000; ++i) {  // more than a chunk
    std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(i % 120), 'n');
    const std::string_view view = store.keep(name);
    kept.emplace_back(std::move(name), view);
  }
  std::uint64_t bytes = 0;
  for (const auto& [name, view] : kept) {
    REQUIRE(view == name);
    bytes += name.size();
  }
  CHECK(bytes > 2u << 20);
  CHECK(store.used_bytes() == bytes);
  catalog::NameStore::wipe(kept[100].second);
  CHECK(std::all_of(kept[100].second.begin(), kept[100].second.end(),
                    [](char each) { return each == '\0'; }));
  CHECK(kept[99].second == kept[99].first);
  CHECK(kept[101].second == kept[101].first);
}

using namespace edgecase;

TEST_CASE("name index: finds every row among many, and none that is not there") {
  constexpr std::uint64_t kSeed = 42;
  catalog::NameIndex index;
  std::vector<std::string> names;
  const auto find = [&](const std::string& name) {
    return index.find(catalog::hash_name(kSeed, 1, name),
                      [&](std::uint32_t row) { return names[row] == name; });
  };
  for (std::uint32_t row = 0; row < 20'000; ++row) {
    names.push_back("sensor-" + std::to_string(row));
    CHECK(find(names.back()) == catalog::kNoRow);
    index.insert(catalog::hash_name(kSeed, 1, names.back()), row);
  }
  for (std::uint32_t row = 0; row < 20'000; ++row) CHECK(find(names[row]) == row);
  CHECK(find("sensor-20000") == catalog::kNoRow);
  CHECK(find("") == catalog::kNoRow);
}

TEST_CASE("name index: rows with one hash are told apart by the caller") {
  catalog::NameIndex index;
  for (std::uint32_t row = 0; row < 100; ++row) index.insert(7, row);
  for (std::uint32_t row = 0; row < 100; ++row) {
    CHECK(index.find(7, [&](std::uint32_t candidate) { return candidate == row; }) == row);
  }
  CHECK(index.find(8, [](std::uint32_t) { return true; }) == catalog::kNoRow);
}

TEST_CASE("name index: the hash looks at parent, length and every byte") {
  const auto hash = [](std::uint32_t parent, std::string_view name) {
    return catalog::hash_name(1, parent, name);
  };
  CHECK(hash(1, "abc") != hash(2, "abc"));
  CHECK(hash(1, "abc") != catalog::hash_name(2, 1, "abc"));
  CHECK(hash(1, "") != hash(1, std::string_view("\0", 1)));
  std::string name(33, 'x');
  const std::uint32_t before = hash(1, name);
  for (char& c : name) {
    c = 'y';
    CHECK(hash(1, name) != before);
    c = 'x';
  }
}

namespace edgecase::catalog {
namespace {

// What came as lines, as the catalog has it.
struct Lines {
  test::ModelEngine engine;
  std::unique_ptr<Catalog> catalog = Catalog::open(engine, {}).value();

  // Says names, as `device/sensor`, in the lines' order.
  std::vector<std::string> take(const std::string& text, bool is_written = true) {
    wire::ReadingBatch batch;
    wire::LineProtocolDecoder decoder(text, {});
    REQUIRE(decoder.next(batch));
    REQUIRE(decoder.errors().empty());
    std::vector<SeriesId> ids;
    CatalogAdditions additions;
    REQUIRE(catalog->resolve(batch.readings, ids, additions).ok());
    written = additions.size();
    if (!is_written) return {};
    WriteBatch writes;
    additions.append_to(writes);
    REQUIRE(engine.write(writes, Durability::Sync).ok());
    catalog->confirm(additions);
    std::vector<std::string> names;
    for (const SeriesId& id : ids) {
      for (const SeriesEntry& entry : catalog->select("", wire::Selector{})) {
        if (entry.id == id) names.push_back(entry.device + "/" + entry.sensor);
      }
    }
    return names;
  }
  // By name: what each series is.
  std::map<std::string, wire::Identity> identities() {
    std::map<std::string, wire::Identity> all;
    const auto rows = catalog->select_rows("", wire::Selector{});
    const wire::Selector any;
    std::vector<SeriesRow> by_row = catalog->rows_of("", {&any, 1}, RowOrder::Any);
    CHECK(std::set<SeriesRow>(by_row.begin(), by_row.end()) ==
          std::set<SeriesRow>(rows.begin(), rows.end()));
    std::size_t at = 0;
    std::string measurement;
    SeriesEntry read;  // one after another
    wire::Identity identity;
    for (const SeriesEntry& entry : catalog->select("", wire::Selector{})) {
      catalog->read_measurement(rows.at(at), measurement);
      REQUIRE(catalog->read_series(rows.at(at), read, identity));
      CHECK(catalog->device_row_of(rows.at(at)) != kNoDevice);
      ++at;
      all[entry.device + "/" + entry.sensor] =
          entry.identity.empty()
              ? wire::identity_of(wire::identity_of_names(entry.sensor), entry.device, entry.sensor)
              : wire::decode_identity(entry.identity).value();
      CHECK(all[entry.device + "/" + entry.sensor].measurement == measurement);
      CHECK(all[entry.device + "/" + entry.sensor] == identity);
      CHECK(read.id == entry.id);
      CHECK(read.device + "/" + read.sensor == entry.device + "/" + entry.sensor);
    }
    return all;
  }
  void reopen() { catalog = Catalog::open(engine, {}).value(); }

  std::size_t written = 0;
};

}  // namespace

TEST_CASE("catalog: a series keeps its identity, also after a restart") {
  Lines lines;
  const std::vector<std::string> names = lines.take(
      "cpu,cpu=cpu0,host=pi idle=1 1\ntemp,device=kitchen value=1 1\n"
      "km/h,host=pi value=1 1\nkm:h,host=pi value=1 1\nm,host=p/i v=1 1\n");
  REQUIRE(names.size() == 5);
  CHECK(names[0] == "pi/cpu.idle{cpu=cpu0}");
  CHECK(names[1] == "kitchen/temp");
  CHECK(names[2] == "pi/km:h");
  CHECK(names[3].starts_with("pi/km:h~"));
  CHECK(names[4] == "p:i/m.v");
  for (int round = 0; round < 2; ++round) {
    const auto all = lines.identities();
    REQUIRE(all.size() == 5);
    CHECK(all.at(names[0]) == wire::Identity{"cpu", {{"cpu", "cpu0"}, {"host", "pi"}}, "idle"});
    CHECK(all.at(names[1]) == wire::Identity{"temp", {{"device", "kitchen"}}, "value"});
    CHECK(all.at(names[2]) == wire::Identity{"km/h", {{"host", "pi"}}, "value"});
    CHECK(all.at(names[3]) == wire::Identity{"km:h", {{"host", "pi"}}, "value"});
    CHECK(all.at(names[4]) == wire::Identity{"m", {{"host", "p/i"}}, "v"});
    lines.reopen();
  }
  // What comes again finds its own, whichever came first.
  CHECK(lines.take("km:h,host=pi value=2 2\nkm/h,host=pi value=2 2\n") ==
        std::vector<std::string>{names[3], names[2]});
  CHECK(lines.written == 0);
}

TEST_CASE("catalog: whatever identities are made of, no two share a series") {
  Lines lines;
  const std::string text =
      "a,host=d b.c=1 1\na.b,host=d c=1 1\na.b.c,host=d value=1 1\na,device=d b.c=1 1\n"
      "m{x\\=1},host=d value=1 1\nm,host=d,x=1 value=1 1\nm,host=d,x=1\\,y\\=2 value=1 1\n"
      "m,host=d,x=1,y=2 value=1 1\ns/t,host=d value=1 1\ns:t,host=d value=1 1\n"
      "v,host=a/b value=1 1\nv,host=a:b value=1 1\nw,domain=a,entity_id=b.c value=1 1\n"
      "w,domain=a.b,entity_id=c value=1 1\n";
  const std::vector<std::string> names = lines.take(text);
  const std::set<std::string> distinct(names.begin(), names.end());
  CHECK(distinct.size() == 14);
  lines.reopen();
  CHECK(lines.take(text) == names);
  CHECK(lines.identities().size() == 14);
}

TEST_CASE("catalog: a series with a hash in its name goes on when the name becomes free") {
  Lines lines;
  const std::string other = "km:h,host=pi value=1 1\n";
  const std::vector<std::string> names = lines.take("km/h,host=pi value=1 1\n" + other);
  Erased erased;
  erased.series = lines.catalog->select("default", wire::parse_selector("pi/km:h").value());
  REQUIRE(erased.series.size() == 1);
  lines.catalog->forget(erased);
  CHECK(lines.take(other) == std::vector<std::string>{names[1]});
  CHECK(lines.written == 0);
  // The free name is for whoever comes first.
  const std::string third = "km/h,host=pi,device=pi value=1 1\n";
  CHECK(lines.take(third) == std::vector<std::string>{"pi/km:h{host=pi}"});
  CHECK(lines.take("km/h,host=pi value=1 1\n") == std::vector<std::string>{"pi/km:h"});
  CHECK(lines.take(other) == std::vector<std::string>{names[1]});
}

TEST_CASE("catalog: a series of version 1 takes the identity of the first line that is stored") {
  Lines lines;
  const NamespaceId id = lines.catalog->ensure_namespace("default").value();
  const NamespaceId own = lines.engine.find_namespace(kCatalogNamespace)->id;
  WriteBatch old;
  old.put(own, encode_record_key({RecordKind::Device, id, 1, 0}), Bytes("\1\1\2pi"));
  old.put(own, encode_record_key({RecordKind::Sensor, id, 1, 1}), Bytes("\1\1\4km:h"));
  REQUIRE(lines.engine.write(old, Durability::Sync).ok());
  lines.reopen();
  CHECK(lines.identities().at("pi/km:h").measurement == "km:h");
  // One that is not written is brought again by whoever comes.
  lines.take("km/h,host=pi value=1 1\n", false);
  CHECK(lines.written == 1);
  lines.take("km/h,host=pi value=1 1\n", false);
  CHECK(lines.written == 1);
  CHECK(lines.take("km/h,host=pi value=1 1\n") == std::vector<std::string>{"pi/km:h"});
  lines.take("km/h,host=pi value=1 2\n");
  CHECK(lines.written == 0);
  CHECK(lines.take("km:h,host=pi value=1 1\n")[0].starts_with("pi/km:h~"));
  lines.reopen();
  CHECK(lines.identities().at("pi/km:h").measurement == "km/h");
}

TEST_CASE("catalog: a damaged identity is said, and an erased one is gone") {
  Lines lines;
  const std::vector<std::string> names =
      lines.take("km/h,host=pi value=1 1\nx,host=pi value=1 1\n");
  Erased erased;
  erased.series = lines.catalog->select("default", wire::parse_selector("pi/km:h").value());
  REQUIRE(erased.series.size() == 1);
  lines.catalog->forget(erased);
  CHECK(lines.identities().size() == 1);
  const NamespaceId own = lines.engine.find_namespace(kCatalogNamespace)->id;
  const SeriesEntry other = lines.catalog->find("default", "pi", "x").value();
  Bytes record = encode_record(FieldTag::Name, "x");
  append_record_field(FieldTag::Identity, "\5x", record);
  WriteBatch bad;
  bad.put(own,
          encode_record_key(
              {RecordKind::Sensor, other.id.namespace_id, other.id.device, other.id.sensor}),
          record);
  REQUIRE(lines.engine.write(bad, Durability::Sync).ok());
  CHECK(Catalog::open(lines.engine, {}).status().code() == StatusCode::Corruption);
}

TEST_CASE("catalog: 100,000 series of benchmarks' tag sets take a quarter of 64 MiB" *
          doctest::test_suite("bulk")) {
  // As TSBS has them: tags of ten thousand hosts or trucks, ten fields each.
  constexpr int kSets = 10'000, kFields = 10;
  const auto text_of = [](bool of_trucks, int first, int sets) {
    std::string text;
    for (int i = first; i < first + sets; ++i) {
      const std::string number = std::to_string(i);
      const std::string tags =
          of_trucks ? ",name=truck_" + number + ",fleet=" + (i % 2 == 0 ? "South" : "North") +
                          ",driver=Rodney,model=G-2000,device_version=v2.3,load_capacity=5000," +
                          "fuel_capacity=300,nominal_fuel_consumption=" + std::to_string(i % 19)
                    : ",hostname=host_" + number +
                          ",region=ap-northeast-1,datacenter=ap-northeast-1a,rack=" +
                          std::to_string(i % 100) + ",os=Ubuntu16.04LTS,arch=x64,team=NYC" +
                          ",service=" + std::to_string(i % 20) +
                          ",service_version=1,service_environment=production";
      text += (of_trucks ? "readings" : "cpu") + tags + ' ';
      for (int field = 0; field < kFields; ++field)
        text += std::string(field == 0 ? "" : ",") + "usage_of_field_" + char('0' + field) + "=1";
      text += " 1\n";
    }
    return text;
  };
  for (const bool of_trucks : {false, true}) {
    CAPTURE(of_trucks);
    Lines lines;
    lines.catalog = Catalog::open(lines.engine, {.memory_bytes = 16u << 20}).value();
    constexpr int kAtOnce = 1'000;
    for (int first = 0; first < kSets; first += kAtOnce) {
      const std::string text = text_of(of_trucks, first, kAtOnce);
      wire::LineProtocolDecoder decoder(text, {});
      wire::ReadingBatch batch;
      WriteBatch writes;  // one: each copies what the engine has
      while (decoder.next(batch)) {
        std::vector<SeriesId> ids;
        CatalogAdditions additions;
        REQUIRE(lines.catalog->resolve(batch.readings, ids, additions).ok());
        additions.append_to(writes);
        lines.catalog->confirm(additions);
        batch.clear_readings();
      }
      REQUIRE(lines.engine.write(writes, Durability::Sync).ok());
      REQUIRE(decoder.errors().empty());
    }
    CHECK(lines.catalog->series_count() == kSets * kFields);
    MESSAGE("bytes of catalog memory: ", lines.catalog->memory_bytes());
    CHECK(lines.catalog->memory_bytes() <= 16u << 20);
    // Nor more after a restart.
    const std::uint64_t before = lines.catalog->memory_bytes();
    lines.reopen();
    CHECK(lines.catalog->series_count() == kSets * kFields);
    CHECK(lines.catalog->memory_bytes() <= before + before / 16);
  }
}

TEST_CASE("catalog: of tags that series share nothing is left once the last of them is erased") {
  Lines lines;
  const std::string text = "cpu,host=pi,cpu=cpu0 idle=1,user=1 1\ncpu,host=pi,cpu=cpu1 idle=1 1\n";
  lines.take(text);
  Erased erased;
  erased.series = lines.catalog->select("default", wire::parse_selector("pi/cpu.idle*").value());
  REQUIRE(erased.series.size() == 2);
  lines.catalog->forget(erased);
  CHECK(lines.identities().size() == 1);
  CHECK(lines.identities().begin()->second ==
        wire::Identity{"cpu", {{"cpu", "cpu0"}, {"host", "pi"}}, "user"});
  // They come back under the same names.
  CHECK(lines.take(text) == std::vector<std::string>{"pi/cpu.idle{cpu=cpu0}",
                                                     "pi/cpu.user{cpu=cpu0}",
                                                     "pi/cpu.idle{cpu=cpu1}"});
  erased.series = lines.catalog->select("default", wire::parse_selector("pi/*").value());
  REQUIRE(erased.series.size() == 3);
  lines.catalog->forget(erased);
  CHECK(lines.identities().empty());
}

TEST_CASE("catalog: names of sensors are what they were, wherever their tags begin") {
  NameStore store;
  SensorNames names(store, 7);
  const std::vector<std::string> texts = {"s",      "m.f{a=b}", "n.f{a=b}",  "{a=b}",   "{}",
                                          "}",      "{",        "a{b",       "a}b",     "a{b}c",
                                          "s{a=c}", "m.f",      "m.f{a=bc}", "a{b{c}}", "m{a=b}"};
  std::vector<SensorNames::Name> kept;
  for (const std::string& text : texts) kept.push_back(names.keep(text));
  std::string read;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    names.read(kept[i], read);
    CHECK(read == texts[i]);
    for (std::size_t k = 0; k < texts.size(); ++k) {
      CHECK(names.is(kept[i], texts[k]) == (i == k));
      CHECK(names.is_before(kept[i], kept[k]) == (texts[i] < texts[k]));
    }
    CHECK_FALSE(names.is(kept[i], texts[i] + "x"));
    CHECK_FALSE(names.is(kept[i], ""));
  }
  CHECK(kept[1].tail == kept[2].tail);
  const std::string_view shared = names.tail(kept[1]);
  for (const std::size_t i : {1u, 2u, 3u}) {
    CHECK(shared == "{a=b}");
    names.give_back(kept[i]);
    CHECK(kept[i].empty());
  }
  CHECK(shared == "{a=b}");  // one has it
  names.give_back(kept.back());
  CHECK(shared == std::string(5, '\0'));
  CHECK_FALSE(names.has_tail("{a=b}"));
  names.read(names.keep("m.f{a=b}"), read);
  CHECK(read == "m.f{a=b}");
}

TEST_CASE("catalog: what identities have in common is kept once") {
  NameStore names;
  IdentityTable table(names, 7);
  const Bytes body = wire::encode_identity({"km/h", {{"fleet", "South"}}, "value"});
  const wire::SeriesIdentity identity{0, "host", body};
  const IdentityTable::Handle first = table.keep(identity, "km:h{fleet=South}");
  const std::uint64_t bytes = names.used_bytes();
  for (int i = 0; i < 1'000; ++i) CHECK(table.keep(identity, "km:h{fleet=South}") == first);
  CHECK(names.used_bytes() == bytes);
  CHECK(table.at(first, "km:h{fleet=South}") == identity);
  for (int i = 0; i < 1'001; ++i) table.give_back(first);
  const IdentityTable::Handle again = table.keep(identity, "km:h{fleet=South}");
  CHECK(table.at(again, "km:h{fleet=South}") == identity);
  CHECK(table.keep(wire::identity_of_names("s"), "s") == IdentityTable::kOfNames);
}

}  // namespace edgecase::catalog
