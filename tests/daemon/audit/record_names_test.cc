#include "audit/page.h"

#include <doctest/doctest.h>

namespace edgecase::audit {
namespace {

auth::Pseudonyms with_key(char letter) {
  return auth::Pseudonyms(Bytes(auth::kPseudonymKeyBytes, letter));
}

}  // namespace

TEST_CASE("audit names: of one key the same, of another key or name others") {
  const RecordNames one(with_key('k')), other(with_key('x'));
  CHECK(one.of_device("n", "kitchen") == RecordNames(with_key('k')).of_device("n", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != other.of_device("n", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != one.of_device("m", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != one.of_device("nk", "itchen"));
  CHECK(one.of_text("owner", "alice") != one.of_text("label", "alice"));
}

TEST_CASE("audit names: of a selector only what holds no name is kept as it is") {
  const RecordNames names(with_key('k'));
  struct Case {
    const char* namespace_name;
    const char* text;
    bool is_target, keeps_device, keeps_sensor;
  };
  for (const Case& c :
       {Case{"n", "*/*", false, true, true}, Case{"n", "?*/*", false, true, true},
        Case{"n", "kitchen", true, false, true}, Case{"n", "kitchen/temp", true, false, false},
        Case{"n", "kit*/temp", false, false, false}, Case{"", "kitchen/*", false, false, true},
        Case{"n", "\\*/*", true, false, true}}) {
    CAPTURE(c.text);
    const auto selector = wire::parse_selector(c.text);
    REQUIRE(selector.ok());
    Record record;
    names.describe(c.namespace_name, *selector, record);
    CHECK(record.targets.size() == (c.is_target ? 1 : 0));
    CHECK(record.reaches_more != c.is_target);
    const std::size_t slash = record.selector.find('/');
    CHECK((record.selector.substr(0, slash) == selector->device) == c.keeps_device);
    CHECK((record.selector.substr(slash + 1) == selector->sensor) == c.keeps_sensor);
    CHECK(record.selector.find("kit") == std::string::npos);
    CHECK(record.selector.find("temp") == std::string::npos);
  }
}

TEST_CASE("audit names: several selectors name their devices, or say that they may reach more") {
  const RecordNames names(with_key('k'));
  const auto record_of = [&names](std::vector<wire::Selector> selectors) {
    Record record;
    record.namespace_name = "n";
    names.describe("n", selectors, record);
    return record;
  };
  const Record two = record_of({{"kitchen", "temp"}, {"hall", "*"}});
  CHECK(two.targets.size() == 2);
  CHECK_FALSE(two.reaches_more);
  CHECK(two.selector.find(", ") != std::string::npos);
  CHECK(two.selector.find("kitchen") == std::string::npos);
  const Record more = record_of({{"?", "*"}, {"kitchen", "*"}});
  CHECK(more.targets.empty());
  CHECK(more.reaches_more);
  CHECK(may_reach(more, "n", "kitchen"));
  CHECK(may_reach(record_of({{"?", "*"}, {"???", "*"}}), "n", "hat"));
  CHECK_FALSE(may_reach(record_of({{"?", "*"}, {"??", "*"}}), "n", "hat"));
  const Record many = record_of(std::vector<wire::Selector>(kTargetsMax + 1, {"kitchen", "*"}));
  CHECK(many.targets.empty());
  CHECK(many.selector == "*/*");
  CHECK(may_reach(many, "n", "kitchen"));
}

TEST_CASE("audit names: a device's records are those that name it, or may reach it") {
  const RecordNames names(with_key('k'));
  const std::uint64_t kitchen = names.of_device("n", "kitchen");
  const auto is_found = [&](const char* namespace_name, const char* text) {
    Record record;
    record.namespace_name = *namespace_name == '\0' ? "*" : namespace_name;
    names.describe(namespace_name, wire::parse_selector(text).value(), record);
    return concerns(record, kitchen, "n", "kitchen");
  };
  CHECK(is_found("n", "kitchen/temp"));
  CHECK(is_found("n", "*/*"));
  CHECK(is_found("", "*/*"));
  CHECK(is_found("", "kitchen/temp"));
  CHECK(is_found("n", "kit*/*"));
  CHECK_FALSE(is_found("n", "shed/*"));
  CHECK_FALSE(is_found("n", "?/*"));
  CHECK_FALSE(is_found("m", "kitchen/temp"));
  CHECK_FALSE(is_found("m", "*/*"));
}

TEST_CASE("audit names: a pseudonym begins like that of a certificate, remembered or not") {
  const RecordNames names(with_key('k'));
  const std::string whole = auth::hex_text(auth::view_of(with_key('k').of_device("n", "kitchen")));
  for (int i = 0; i < 2; ++i) {
    CHECK(pseudonym_text(names.of_device("n", "kitchen")) == whole.substr(0, 16));
  }
  const std::string owner = auth::hex_text(auth::view_of(with_key('k').of_owner("alice")));
  CHECK(names.of_text("owner", "alice") == "~" + owner.substr(0, 16));
  for (std::size_t i = 0; i < 2 * RecordNames::kRememberedMax; ++i) {
    static_cast<void>(names.of_device("n", std::to_string(i)));
  }
  CHECK(pseudonym_text(names.of_device("n", "kitchen")) == whole.substr(0, 16));
}

}  // namespace edgecase::audit
