// Consents: who said when what readings of a device may be used for.
#include <doctest/doctest.h>

#include "catalog/device_index.h"
#include "support/model_engine.h"

namespace edgecase::catalog {
namespace {

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

TEST_CASE("consents: who said when what readings may be used for, as bytes for ever") {
  using namespace std::string_literals;
  DeviceMetadata metadata = meter();
  metadata.consents = {{1, "uid 0", {"billing"}, {}},
                       {2, "uid 7", metadata.purposes, metadata.objections}};
  const Bytes golden =
      "\3\5alice\6cellar\2\7billing\7heating\1\11marketing\2\5floor\2-1\4kind\5meter"
      "\2\0\0\0\0\0\0\0\1\5uid 0\1\7billing\0\0\0\0\0\0\0\0\2\5uid 7"s;
  CHECK(encode_metadata(metadata) == golden);
  CHECK(decode_metadata(golden).value() == metadata);
  for (std::size_t size = 0; size < golden.size(); ++size) {
    CAPTURE(size);
    CHECK(decode_metadata(golden.substr(0, size)).status().code() == StatusCode::Corruption);
  }
  CHECK(decode_metadata(golden + "x").status().code() == StatusCode::Corruption);
}

TEST_CASE("consents: each consent is kept with who gave it, of one owner, the last ones") {
  test::ModelEngine engine;
  auto index = DeviceIndex::open(engine).value();
  const DeviceName name{"home", "meter"};
  const auto say = [&](std::int64_t time_ns, std::vector<std::string> purposes,
                       const std::string& owner = "alice", const std::string& by = "uid 7") {
    const auto said = index->update(name,
                                    [&](DeviceMetadata& all) {
                                      all = {};  // as set() does
                                      all.owner = owner;
                                      all.purposes = std::move(purposes);
                                    },
                                    {time_ns, by});
    REQUIRE(said.ok());
    return said->consents;
  };
  CHECK(say(1, {"billing"}).size() == 1);
  CHECK(say(2, {"heating", "billing"}).size() == 2);
  CHECK(say(3, {"billing", "heating"}).size() == 2);  // the same
  const std::vector<Consent> consents = say(4, {});
  REQUIRE(consents.size() == 3);
  CHECK(consents[0] == Consent{1, "uid 7", {"billing"}, {}});
  CHECK(consents[1] == Consent{2, "uid 7", {"billing", "heating"}, {}});
  CHECK(consents[2] == Consent{4, "uid 7", {}, {}});
  index = DeviceIndex::open(engine).value();
  CHECK(index->metadata(name)->consents == consents);
  // What does not concern it leaves it as it is.
  CHECK(index->update(name, [](DeviceMetadata& all) { all.location = "attic"; }, {5, "x"})
            ->consents == consents);
  for (int i = 0; i < static_cast<int>(2 * kConsentsMax); ++i)
    CHECK(say(10 + i, {i % 2 == 0 ? "a" : "b"}).size() <= kConsentsMax);
  CHECK(say(100, {}).back().time_ns == 100);
  CHECK(say(101, {"c"}, "alice", std::string(300, 'x')).back().by.size() == kConsentByMaxBytes);
  // The next owner begins anew; what nobody says cannot be told of.
  CHECK(say(102, {"c"}, "bob").size() == 1);
  CHECK(say(103, {"d"}, "bob", "").empty());
  CHECK(index->set(name, {}).ok());
  const NamespaceId records = engine.find_namespace(kDevicesNamespace)->id;
  CHECK(engine.range_stats(records, {}, {})->entries == 0);
}

TEST_CASE("consents: what a backup tells is taken of a device that nothing is said of, alone") {
  test::ModelEngine engine;
  const auto index = DeviceIndex::open(engine).value();
  const DeviceName name{"home", "meter"};
  DeviceMetadata told = meter();
  told.consents = {{1, "uid 7", {"billing"}, {}}, {2, "uid 8", told.purposes, told.objections}};
  REQUIRE(index->set(name, told, {9, "uid 0"}).ok());
  CHECK(index->metadata(name)->consents == told.consents);
  // A device that is there takes none.
  DeviceMetadata other = told;
  other.purposes = {"heating"};
  other.consents = {{5, "nobody", {"heating"}, told.objections}};
  REQUIRE(index->set(name, other, {10, "uid 0"}).ok());
  std::vector<Consent> wanted = told.consents;
  wanted.push_back({10, "uid 0", {"heating"}, told.objections});
  CHECK(index->metadata(name)->consents == wanted);
  // One that does not end with what is said is followed by that.
  const DeviceName second{"home", "tv"};
  told.consents.pop_back();
  REQUIRE(index->set(second, told, {11, "uid 0"}).ok());
  CHECK(index->metadata(second)->consents.size() == 2);
  CHECK(index->metadata(second)->consents.back().time_ns == 11);
  // A consent for a device that nothing is consented to at all is none.
  DeviceMetadata placed;
  placed.location = "attic";
  placed.consents = {{1, "uid 7", {"billing"}, {}}};
  REQUIRE(index->set({"home", "lamp"}, placed, {12, "uid 0"}).ok());
  CHECK(index->metadata({"home", "lamp"})->consents.empty());

  for (const Consent& bad : {Consent{1, std::string(65, 'x'), {}, {}}, Consent{1, "x", {"a/b"}, {}},
                             Consent{1, "x", {}, {std::string(300, 'x')}},
                             Consent{1, "x", std::vector<std::string>(17, "a"), {}}}) {
    told.consents = {bad};
    CHECK(index->set({"home", "new"}, told, {13, "uid 0"}).code() == StatusCode::InvalidArgument);
  }
  told.consents.assign(kConsentsMax + 1, Consent{1, "x", {}, {}});
  CHECK(index->set({"home", "new"}, told, {13, "uid 0"}).code() == StatusCode::InvalidArgument);
}

}  // namespace edgecase::catalog
