#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "catalog/device_index.h"
#include "edgecase/machine.h"
#include "support/model_engine.h"
#include "support/test_seed.h"

namespace edgecase::catalog {

// What readings of devices may be used for, in memory: who has which terms, and what that takes.

namespace {

std::string text_of_purpose(int number) {
  return std::string(100, 'p') + std::to_string(number);
}

// One change of as many devices; each with a set of its own, where they are `apart`.
Status describe(DeviceIndex& index, int first, int count, bool are_apart) {
  std::vector<DeviceChange> changes;
  for (int i = first; i < first + count; ++i) {
    changes.push_back({{"home", "d" + std::to_string(i)}, [=](DeviceMetadata& said) {
                         said.purposes = {text_of_purpose(are_apart ? i : 0)};
                       }});
  }
  return index.update_all(changes);
}

}  // namespace

TEST_CASE("device terms: the hash is SipHash-2-4 with 128 bits") {
  // By openssl mac, with the key of its authors.
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  CHECK(SipHash(key).finish() ==
        std::array<std::uint64_t, 2>{0xe6a825ba047f81a3, 0x930255c71472f66d});
  std::string bytes;
  for (char c = 0; c < 15; ++c) bytes += c;
  SipHash hash(key);
  hash.add(std::string_view(bytes).substr(0, 5));
  hash.add(std::string_view(bytes).substr(5));
  CHECK(hash.finish() == std::array<std::uint64_t, 2>{0x11a8b03399e99354, 0xd9c3cf970fec087e});
}

TEST_CASE("device terms: who has which, as a map would have it, through any changes") {
  const std::uint64_t seed = test::test_seed(20'261'125);
  CAPTURE(seed);
  SeededRandom random(seed);
  DeviceTerms terms(random);
  std::map<std::string, std::vector<std::string>> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string device = "d" + std::to_string(random.below(300));
    if (random.below(3) == 0) {
      terms.remove("home", device);
      model.erase(device);
    } else {
      const std::vector<std::string> purposes(random.below(3), text_of_purpose(step % 7));
      terms.set("home", device, terms_text(purposes, {"sale"}));
      model[device] = purposes;
    }
    REQUIRE(terms.size() == model.size());
    const std::string other = "d" + std::to_string(random.below(300));
    const auto known = model.find(other);
    REQUIRE(terms.contains("home", other) == (known != model.end()));
    CHECK_FALSE(terms.contains("homed", other.substr(1)));
    const TermsView found = terms.find("home", other);
    REQUIRE(found.is_empty() == (known == model.end()));
    if (known == model.end()) continue;
    CHECK(holds_term(found.objections, "sale"));
    CHECK_FALSE(holds_term(found.objections, "sal"));
    CHECK(found.purposes.empty() == known->second.empty());
    for (const std::string& each : known->second) CHECK(holds_term(found.purposes, each));
  }
  for (const auto& each : model) terms.remove("home", each.first);
  CHECK(terms.size() == 0);
  // Nothing is left of sets that nobody has; the table stays as large as it was.
  CHECK(terms.memory_bytes() <= 512 * 16);
}

TEST_CASE("devices: what is kept in memory is set aside in the engine, and has a limit of its own" *
          doctest::test_suite("bulk")) {
  test::ModelEngine engine;
  constexpr std::uint64_t kLimitBytes = 1u << 20;
  const auto index =
      DeviceIndex::open(engine, {.devices = 100'000, .memory_bytes = kLimitBytes}).value();
  // A set that all have is there once.
  REQUIRE(describe(*index, 0, 20'000, false).ok());
  CHECK(index->memory_bytes() <= 32'768 * 16 + 1'000);
  Status refused;
  int described = 0;
  while ((refused = describe(*index, described, 100, true)).ok()) described += 100;
  CHECK(refused.code() == StatusCode::LimitReached);
  CHECK(refused.message().find("storage.memory-limit") != std::string::npos);
  CHECK(described > 1'000);
  CHECK(index->memory_bytes() <= kLimitBytes);
  CHECK(index->memory_bytes() > kLimitBytes / 8 * 7);
  CHECK(engine.stats().set_aside_bytes <= index->memory_bytes() + RecentRecords::kBytesMax);
  CHECK(engine.stats().set_aside_bytes + SetAside::kStepBytes > index->memory_bytes());
  // Devices that were refused have not changed; what takes no more is taken.
  CHECK(index->metadata({"home", "d" + std::to_string(described)})->purposes ==
        std::vector{text_of_purpose(0)});
  CHECK(describe(*index, described, 1'000, false).ok());
  CHECK(describe(*index, 0, described, false).ok());
  CHECK(index->memory_bytes() <= 32'768 * 16 + 1'000);
  CHECK(describe(*index, 0, 100, true).ok());
  const std::uint64_t bytes = index->memory_bytes();
  // A start refuses nothing.
  CHECK(DeviceIndex::open(engine, {.memory_bytes = 1}).value()->memory_bytes() == bytes);
}

TEST_CASE("devices: a group is changed in batches, all of it or where one is wrong none") {
  test::ModelEngine engine;
  const auto index = DeviceIndex::open(engine).value();
  constexpr int kDevices = 1'234;
  REQUIRE(describe(*index, 0, kDevices, false).ok());
  DeviceMetadata own;
  own.purposes = {text_of_purpose(0)};
  REQUIRE(index->set({"_own", "d"}, own).ok());
  DeviceFilter group;
  group.purpose = text_of_purpose(0);
  std::vector<std::string> told;
  const auto change = [&](const std::function<void(DeviceMetadata&)>& how) {
    told.clear();
    return index->update_found("", group, how, {}, [&](const DeviceName& name) {
      told.push_back(name.namespace_name + "/" + name.device);
    });
  };
  int asked = 0;
  CHECK(change([&](DeviceMetadata& said) {
          said.owner = ++asked == kDevices ? "a/b" : "bob";
        }).code() == StatusCode::InvalidArgument);
  CHECK(index->find("", owned_by("bob"))->empty());
  CHECK(told.empty());
  // Nothing that the change takes out of the group is left out.
  CHECK(change([](DeviceMetadata& said) {
          said.owner = "bob";
          said.purposes.clear();
        }).ok());
  CHECK(told.size() == kDevices);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(index->find("", owned_by("bob"))->size() == kDevices);
  CHECK(index->find("", group)->size() == 1);
  CHECK(index->check_purpose("home", "d7", "").ok());
}

}  // namespace edgecase::catalog
