#include "catalog/device_index.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "catalog/catalog.h"
#include "edgecase/machine.h"
#include "support/counting_engine.h"
#include "support/model_engine.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::test;
using catalog::DeviceFilter;
using catalog::DeviceIndex;
using catalog::DeviceMetadata;
using catalog::DeviceName;

namespace {

struct Room {
  Room() { reopen(); }
  void reopen() { index = DeviceIndex::open(engine).value(); }
  void set(const std::string& device, const DeviceMetadata& metadata) {
    REQUIRE(index->set({"home", device}, metadata).ok());
  }
  std::string found(const DeviceFilter& filter, std::string_view namespace_name = "") {
    std::string text;
    const auto names = index->find(namespace_name, filter);
    REQUIRE(names.ok());
    for (const DeviceName& name : *names) {
      text += name.namespace_name + "/" + name.device + " ";
    }
    return text;
  }
  std::size_t records() {
    const NamespaceId id = engine.find_namespace(catalog::kDevicesNamespace)->id;
    return static_cast<std::size_t>(engine.range_stats(id, {}, {})->entries);
  }
  StatusCode check(std::string_view device, std::string_view purpose) {
    return index->check_purpose("home", device, purpose).code();
  }

  ModelEngine engine;
  std::unique_ptr<DeviceIndex> index;
};

DeviceMetadata meter() {
  DeviceMetadata metadata;
  metadata.owner = "alice";
  metadata.purposes = {"billing", "heating"};
  metadata.objections = {"marketing"};
  metadata.location = "cellar";
  metadata.labels = {{"floor", "-1"}, {"kind", "meter"}};
  return metadata;
}

}  // namespace

TEST_CASE("devices: what is said is kept, and found by each of it, also after a restart") {
  Room room;
  room.set("m1", meter());
  REQUIRE(room.index->set({"shop", "m1"}, meter()).ok());
  for (int round = 0; round < 2; ++round, room.reopen()) {
    CHECK(room.index->metadata({"home", "m1"}).value() == meter());
    CHECK(room.index->metadata({"home", "m2"}).value() == DeviceMetadata{});
    for (const DeviceFilter& filter :
         {DeviceFilter{"alice", "", "", {}}, DeviceFilter{"", "billing", "", {}},
          DeviceFilter{"", "", "marketing", {}}, DeviceFilter{"", "", "", {{"kind", "meter"}}},
          DeviceFilter{"alice", "heating", "marketing", {{"kind", "meter"}, {"floor", "-1"}}}}) {
      CHECK(room.found(filter) == "home/m1 shop/m1 ");
      CHECK(room.found(filter, "shop") == "shop/m1 ");
      CHECK(room.found(filter, "sho").empty());
    }
    for (const DeviceFilter& filter :
         {DeviceFilter{"alic", "", "", {}}, DeviceFilter{"", "marketing", "", {}},
          DeviceFilter{"alice", "cooking", "", {}}, DeviceFilter{"", "", "", {{"kind", "lamp"}}}}) {
      CHECK(room.found(filter).empty());
    }
  }
  CHECK(room.index->find("", {}).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("devices: what is taken back is found no more, and leaves no record") {
  Room room;
  room.set("m1", meter());
  DeviceMetadata other = meter();
  other.owner = "bob";
  other.labels.erase("kind");
  room.set("m1", other);
  CHECK(room.found({"alice", "", "", {}}).empty());
  CHECK(room.found({"", "", "", {{"kind", "meter"}}}).empty());
  CHECK(room.found({"bob", "", "", {}}) == "home/m1 ");
  REQUIRE(room.index->set({"home", "m1"}, {}).ok());
  CHECK(room.records() == 0);
  CHECK(room.check("m1", "") == StatusCode::Ok);
}

TEST_CASE("devices: forgetting a namespace leaves those whose names begin alike") {
  Room room;
  for (int i = 0; i < 1'100; ++i) room.set(std::to_string(i), meter());
  REQUIRE(room.index->set({"home2", "m"}, meter()).ok());
  REQUIRE(room.index->forget_namespace("home").ok());
  CHECK(room.found({"alice", "", "", {}}) == "home2/m ");
  CHECK(room.check("5", "") == StatusCode::Ok);
  CHECK(room.records() == 1 + 1 + 2 + 1 + 2);
}

TEST_CASE("devices: what a device may be read for") {
  Room room;
  room.set("both", meter());
  DeviceMetadata only;
  only.objections = {"marketing"};
  room.set("objects", only);
  only = {};
  only.owner = "alice";
  room.set("owned", only);
  struct Case {
    const char *device, *purpose;
    bool want;
  };
  for (const Case& c :
       {Case{"both", "billing", true}, Case{"both", "", false}, Case{"both", "cooking", false},
        Case{"both", "marketing", false}, Case{"objects", "cooking", true},
        Case{"objects", "marketing", false}, Case{"objects", "", false}, Case{"owned", "", true},
        Case{"owned", "anything", true}, Case{"unknown", "", true}}) {
    CAPTURE(c.device);
    CAPTURE(c.purpose);
    CHECK((room.check(c.device, c.purpose) == StatusCode::Ok) == c.want);
    room.reopen();
    CHECK((room.check(c.device, c.purpose) == StatusCode::Ok) == c.want);
  }
  // An objection acts at once, though the purpose is allowed.
  DeviceMetadata objected = meter();
  objected.objections = {"billing"};
  room.set("both", objected);
  CHECK(room.check("both", "billing") == StatusCode::NotAllowed);
}

TEST_CASE("devices: what a topic says is for devices that nothing is said of") {
  Room room;
  DeviceMetadata topic;
  topic.owner = "bob";
  REQUIRE(room.index->introduce({"home", "new"}, topic).ok());
  CHECK(room.found({"bob", "", "", {}}) == "home/new ");
  room.set("known", meter());
  REQUIRE(room.index->introduce({"home", "known"}, topic).ok());
  CHECK(room.index->metadata({"home", "known"}).value() == meter());
}

TEST_CASE("devices: a drive that refuses changes nothing") {
  Room room;
  room.set("m1", meter());
  room.engine.fail_next_write(out_of_space("full"));
  CHECK(room.index->set({"home", "m1"}, {}).code() == StatusCode::OutOfSpace);
  CHECK(room.index->metadata({"home", "m1"}).value() == meter());
  CHECK(room.check("m1", "") == StatusCode::NotAllowed);
}

TEST_CASE("devices: names and limits") {
  Room room;
  const auto refused = [&room](auto change) {
    return room.index->update({"home", "m"}, change).status().code() == StatusCode::InvalidArgument;
  };
  CHECK(refused([](DeviceMetadata& m) { m.owner = std::string(129, 'x'); }));
  CHECK(refused([](DeviceMetadata& m) { m.owner = std::string("a\0b", 3); }));
  CHECK(refused([](DeviceMetadata& m) { m.purposes = {""}; }));
  CHECK(refused([](DeviceMetadata& m) { m.labels = {{"a=b", "c"}}; }));
  CHECK(refused([](DeviceMetadata& m) {
    for (std::size_t i = 0; i <= catalog::kTermsMax; ++i) m.objections.push_back(std::to_string(i));
  }));
  CHECK(refused([](DeviceMetadata& m) {
    for (std::size_t i = 0; i <= catalog::kLabelsMax; ++i) m.labels[std::to_string(i)] = "x";
  }));
  CHECK(room.index->set({"home", ""}, meter()).code() == StatusCode::InvalidArgument);
  CHECK(room.records() == 0);
  // Every name as long as it may be fits into a key.
  const std::string x(128, 'x');
  DeviceMetadata longest;
  longest.owner = longest.location = x;
  longest.labels[x] = x;
  REQUIRE(room.index->set({x, x}, longest).ok());
  CHECK(room.found({"", "", "", {{x, x}}}) == x + "/" + x + " ");
}

TEST_CASE("devices: the index agrees with what is said, whatever changes") {
  const std::uint64_t seed = test_seed(20251122);
  SeededRandom random(seed);
  Room room;
  std::map<std::string, DeviceMetadata> model;
  const std::string kTerms[] = {"a", "ab", "b"};
  const auto some = [&] {
    std::vector<std::string> terms;
    for (const std::string& term : kTerms) {
      if (random.below(3) == 0) terms.push_back(term);
    }
    return terms;
  };
  for (int step = 0; step < 300; ++step) {
    DeviceMetadata metadata;
    metadata.owner = random.below(2) == 0 ? "" : kTerms[random.below(3)];
    metadata.purposes = some();
    metadata.objections = some();
    for (const std::string& label : some()) metadata.labels[label] = kTerms[random.below(3)];
    const std::string device = kTerms[random.below(3)] + kTerms[random.below(3)];
    room.set(device, metadata);
    model[device] = metadata;
    if (random.below(20) == 0) room.reopen();
    DeviceFilter filter;
    if (random.below(2) == 0) filter.owner = kTerms[random.below(3)];
    if (random.below(2) == 0) filter.purpose = kTerms[random.below(3)];
    if (random.below(2) == 0) filter.objection = kTerms[random.below(3)];
    if (random.below(2) == 0) filter.labels = {{kTerms[random.below(3)], kTerms[random.below(3)]}};
    if (filter.empty()) continue;
    std::string want;
    for (const auto& [name, m] : model) {
      const auto holds = [](const std::vector<std::string>& terms, const std::string& term) {
        return term.empty() || std::find(terms.begin(), terms.end(), term) != terms.end();
      };
      bool all = (filter.owner.empty() || m.owner == filter.owner) &&
                 holds(m.purposes, filter.purpose) && holds(m.objections, filter.objection);
      for (const auto& [label, value] : filter.labels) {
        const auto at = m.labels.find(label);
        all = all && at != m.labels.end() && at->second == value;
      }
      if (all) want += "home/" + name + " ";
    }
    REQUIRE(room.found(filter) == want);
  }
}

TEST_CASE("devices: the bytes of a record, for ever, and how they were before") {
  using namespace std::string_literals;
  const Bytes golden =
      "\2\5alice\6cellar\2\7billing\7heating\1\11marketing\2\5floor\2-1\4kind\5meter"s;
  const Bytes json =
      R"({"version":1,"owner":"alice","purposes":["billing","heating"],"objections":["marketing"],)"
      R"("location":"cellar","labels":{"floor":"-1","kind":"meter"}})";
  CHECK(catalog::encode_metadata(meter()) == golden);
  CHECK(catalog::decode_metadata(golden).value() == meter());
  CHECK(catalog::decode_metadata(json).value() == meter());
  for (std::size_t size = 0; size < golden.size(); ++size) {
    CAPTURE(size);
    CHECK(catalog::decode_metadata(golden.substr(0, size)).status().code() ==
          StatusCode::Corruption);
  }
  CHECK(catalog::decode_metadata(golden + "x").status().code() == StatusCode::Corruption);
  for (std::size_t at = 0; at < golden.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = golden;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      const auto decoded = catalog::decode_metadata(flipped);
      CHECK((!decoded.ok() || *decoded != meter()));
    }
  }
}

TEST_CASE("devices: a damaged record stops the start, a newer one too") {
  for (const auto& [record, want] :
       {std::pair("{}", StatusCode::Corruption), std::pair("", StatusCode::Corruption),
        std::pair("\1", StatusCode::Corruption), std::pair("\4", StatusCode::Unsupported),
        std::pair(R"({"version":2})", StatusCode::Unsupported),
        std::pair(R"({"version":1,"owner":5})", StatusCode::Corruption),
        std::pair(R"({"version":1,"purposes":"x"})", StatusCode::Corruption)}) {
    Room room;
    WriteBatch batch;
    batch.put(room.engine.find_namespace(catalog::kDevicesNamespace)->id,
              std::string("Dhome\0m", 7), record);
    REQUIRE(room.engine.write(batch, Durability::Sync).ok());
    CHECK(DeviceIndex::open(room.engine).status().code() == want);
  }
}

TEST_CASE("devices: many are described at once, or where one is wrong none") {
  Room room;
  room.set("m1", meter());
  std::vector<catalog::DeviceChange> changes;
  for (int i = 0; i < 1'234; ++i) {
    changes.push_back({{"home", "m" + std::to_string(i)},
                       [](DeviceMetadata& said) { said.purposes.emplace_back("lighting"); }});
  }
  // Where a device comes twice the later change sees the earlier one.
  changes.push_back({{"home", "m7"}, [](DeviceMetadata& said) { said.purposes.clear(); }});
  REQUIRE(room.index->update_all(changes).ok());
  for (int round = 0; round < 2; ++round, room.reopen()) {
    CHECK(room.index->find("", {"", "lighting", "", {}})->size() == 1'233);
    CHECK(room.index->metadata({"home", "m1"})->purposes ==
          std::vector<std::string>{"billing", "heating", "lighting"});
    CHECK(room.index->metadata({"home", "m7"})->empty());
  }
  changes = {{{"home", "m2"}, [](DeviceMetadata& said) { said.owner = "carol"; }},
             {{"home", "m3"}, [](DeviceMetadata& said) { said.owner = "a/b"; }}};
  const Status refused = room.index->update_all(changes);
  CHECK(refused.code() == StatusCode::InvalidArgument);
  CHECK(refused.message().find("m3") != std::string::npos);
  CHECK(room.found({"carol", "", "", {}}).empty());
}

TEST_CASE("devices: as many as there may be, and no more") {
  Room room;
  room.index = DeviceIndex::open(room.engine, {.devices = 3}).value();
  for (const char* device : {"a", "b", "c", "a"}) room.set(device, meter());
  CHECK(room.index->set({"home", "d"}, meter()).code() == StatusCode::LimitReached);
  REQUIRE(room.index->set({"home", "a"}, {}).ok());
  room.set("d", meter());
}

TEST_CASE("devices: a long list comes by pages") {
  Room room;
  for (int i = 0; i < 25; ++i) room.set(std::to_string(i), meter());
  REQUIRE(room.index->set({"shop", "1"}, meter()).ok());
  for (const DeviceFilter& filter :
       {DeviceFilter{"alice", "", "", {}}, DeviceFilter{"alice", "billing", "", {}}}) {
    for (const char* space : {"", "home", "shop", "none"}) {
      const auto all = room.index->find(space, filter).value();
      for (const std::size_t limit : {1u, 7u, 26u, 100u}) {
        std::vector<DeviceName> paged;
        catalog::DevicePage page{std::nullopt, limit};
        while (true) {
          const auto names = room.index->find(space, filter, page).value();
          CHECK(names.size() <= limit);
          paged.insert(paged.end(), names.begin(), names.end());
          if (names.size() < limit) break;
          page.after = names.back();
        }
        CHECK(paged == all);
      }
    }
  }
}

TEST_CASE("devices: of a group that is erased ranges without anything between are one") {
  Room room;
  for (const char* name : {"m1", "m2", "m3", "m4", "n1"}) room.set(name, meter());
  const auto ranges = [&](const std::vector<std::string>& names) {
    catalog::Erased erased;
    for (const std::string& name : names) erased.devices.push_back({"home", name, 1, 1});
    std::vector<catalog::KeySpan> spans;
    const MutexLock lock(room.index->change_lock());
    REQUIRE(room.index
                ->plan_erasure(erased,
                               [&](const catalog::KeySpan& span) {
                                 spans.push_back(span);
                                 return ok();
                               })
                .ok());
    const auto scan = room.engine.scan(room.engine.find_namespace("_devices")->id, {}, {}).value();
    std::size_t held = 0;
    for (; scan->valid(); scan->next()) {
      const bool is_meant = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return scan->key().ends_with('\0' + name);
      });
      const bool is_in = std::any_of(spans.begin(), spans.end(), [&](const auto& span) {
        return span.lower <= scan->key() && scan->key() < span.upper;
      });
      CHECK(is_meant == is_in);
      held += is_in ? 1 : 0;
    }
    CHECK(held % names.size() == 0);
    CHECK(held > names.size());
    return spans.size();
  };
  const std::size_t of_one = ranges({"m1"});
  CHECK(of_one >= 5);
  CHECK(ranges({"m3", "m1", "m2"}) == of_one);
  CHECK(ranges({"m1", "m3"}) == 2 * of_one);
  CHECK(ranges({"m1", "m2", "m3", "m4", "n1"}) == 1);
}

TEST_CASE("devices: terms that were taken back go with the device, or before it") {
  for (const bool is_erased : {true, false}) {
    CAPTURE(is_erased);
    Room room;
    room.set("m1", meter());
    for (const char* owner : {"bob", "carol", "alice", "dora"}) {
      DeviceMetadata other = meter();
      other.owner = owner;
      room.set("m1", other);
    }
    CHECK(room.found({"bob", "", "", {}}).empty());
    room.reopen();
    if (is_erased) {
      const catalog::Erased erased{{{"home", "m1", 1, 1}}, {}};
      std::vector<catalog::KeySpan> spans;
      WriteBatch batch;
      {
        const MutexLock lock(room.index->change_lock());
        const Status planned = room.index->plan_erasure(erased, [&](const catalog::KeySpan& span) {
          spans.push_back(span);
          batch.erase_range(span.namespace_id, span.lower, span.upper);
          return ok();
        });
        REQUIRE(planned.ok());
        REQUIRE(room.engine.write(batch, Durability::Sync).ok());
        room.index->forget(erased);
      }
      for (const char* owner : {"alice", "bob", "carol", "dora"}) {
        const Bytes key = std::string("O") + owner + '\0' + "home" + '\0' + "m1";
        CAPTURE(owner);
        CHECK(std::any_of(spans.begin(), spans.end(),
                          [&](const auto& span) { return span.lower <= key && key < span.upper; }));
      }
      CHECK(room.records() == 0);
    } else {
      // Said again meanwhile: it stays.
      room.set("m1", meter());
      REQUIRE(room.index->forget_taken_back().ok());
      CHECK(room.found({"alice", "", "", {}}) == "home/m1 ");
      CHECK(room.records() == 1 + 1 + 2 + 1 + 2);
      REQUIRE(room.index->forget_taken_back().ok());
    }
  }
}

TEST_CASE("devices: notes of what was taken back are bounded, however often terms change" *
          doctest::test_suite("bulk")) {
  Room room;
  constexpr int kDevices = 300;
  for (int round = 0; round < 60; ++round) {
    std::vector<catalog::DeviceChange> changes;
    for (int i = 0; i < kDevices; ++i) {
      changes.push_back({{"home", std::to_string(i)}, [round](DeviceMetadata& said) {
                           said.labels["round"] = std::to_string(round);
                         }});
    }
    REQUIRE(room.index->update_all(changes).ok());
  }
  CHECK(room.records() <= 2 * kDevices + DeviceIndex::kNotesMax + kDevices);
  CHECK(room.found({"", "", "", {{"round", "58"}}}).empty());
  CHECK(room.index->find("", {"", "", "", {{"round", "59"}}})->size() == kDevices);
}

TEST_CASE("devices: what finding looks at grows with the result, not with the strangers" *
          doctest::test_suite("bulk")) {
  const auto looks = [](std::size_t strangers) {
    CountingEngine engine;
    const auto index = DeviceIndex::open(engine).value();
    std::vector<catalog::DeviceChange> changes;
    for (std::size_t i = 0; i < strangers + 12; ++i) {
      const bool is_hers = i % 8 == 0 && i / 8 < 12;
      DeviceMetadata said = meter();
      said.owner = is_hers ? "alice" : "owner" + std::to_string(i);
      said.objections = {is_hers ? "marketing" : "research"};
      changes.push_back({{"home", "d" + std::to_string(100'000 + i)},
                         [said](DeviceMetadata& now) { now = said; }});
    }
    REQUIRE(index->update_all(changes).ok());
    const auto count = [&](const DeviceFilter& filter, const catalog::DevicePage& page,
                           std::size_t wanted) {
      const std::uint64_t before = engine.looks();
      const auto found = index->find("", filter, page);
      REQUIRE(found.ok());
      CHECK(found->size() == wanted);
      return engine.looks() - before;
    };
    DeviceFilter of_all, hers = catalog::owned_by("alice"), objecting, both = hers;
    of_all.purpose = "billing";
    objecting.objection = "marketing";
    both.purpose = "billing";
    both.labels = {{"kind", "meter"}};
    return std::vector<std::uint64_t>{count(hers, {}, 12), count(objecting, {}, 12),
                                      count(both, {}, 12), count(of_all, {{}, 10}, 10),
                                      count(of_all, {DeviceName{"home", "d100050"}, 10}, 10)};
  };
  const std::vector<std::uint64_t> few = looks(100);
  CHECK(looks(10'000) == few);
  for (const std::uint64_t each : few) {
    CHECK(each >= 10);
    CHECK(each <= 100);
  }
}

TEST_CASE("devices: a filter holds for what it would find") {
  DeviceFilter filter;
  filter.owner = "alice";
  filter.purpose = "heating";
  filter.objection = "marketing";
  filter.labels = {{"floor", "-1"}, {"kind", "meter"}};
  CHECK(filter.holds_for(meter()));
  CHECK(DeviceFilter{}.holds_for({}));
  for (auto change : std::vector<void (*)(DeviceFilter&)>{
           [](DeviceFilter& f) { f.owner = "bob"; }, [](DeviceFilter& f) { f.purpose = "sale"; },
           [](DeviceFilter& f) { f.objection = "heating"; },
           [](DeviceFilter& f) { f.labels.emplace_back("floor", "2"); },
           [](DeviceFilter& f) { f.labels.emplace_back("colour", "red"); }}) {
    DeviceFilter other = filter;
    change(other);
    CHECK_FALSE(other.holds_for(meter()));
  }
}
