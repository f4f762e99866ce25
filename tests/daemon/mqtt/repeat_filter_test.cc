#include "mqtt/repeat_filter.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace edgecase;
using mqtt::RepeatFilter;

namespace {

// A broker that counts its packet ids up, as far as trust needs.
void fill(RepeatFilter& filter, std::uint16_t count = mqtt::RedeliveryFilter::kIdsBeforeTrust) {
  for (std::uint16_t id = 1; id <= count; ++id) filter.stored(id, "t", std::to_string(id));
}

}  // namespace

TEST_CASE("repeat filter: knows a redelivery by id and content") {
  RepeatFilter filter;
  fill(filter);
  CHECK(filter.is_redelivery(64, "t", "64"));
  CHECK(filter.is_redelivery(1, "t", "1"));
  CHECK(!filter.is_redelivery(64, "t", "65"));
  CHECK(!filter.is_redelivery(64, "u", "64"));
  CHECK(!filter.is_redelivery(65, "t", "65"));
}

TEST_CASE("repeat filter: stores when in doubt") {
  RepeatFilter few;
  fill(few, mqtt::RedeliveryFilter::kIdsBeforeTrust - 1);
  CHECK(!few.is_redelivery(1, "t", "1"));

  RepeatFilter reusing;  // a broker that takes the lowest free id
  fill(reusing);
  reusing.stored(1, "t", "other");
  CHECK(!reusing.is_redelivery(1, "t", "other"));
  CHECK(!reusing.is_redelivery(64, "t", "64"));

  RepeatFilter forgetting;
  fill(forgetting);
  forgetting.new_session();
  CHECK(!forgetting.is_redelivery(64, "t", "64"));
}

TEST_CASE("repeat filter: remembers so many messages and no more") {
  RepeatFilter filter;
  fill(filter, RepeatFilter::kMessagesMax + 1);
  CHECK(!filter.is_redelivery(1, "t", "1"));
  CHECK(filter.is_redelivery(2, "t", "2"));
}

TEST_CASE("repeat filter: a retained message that equals the last of its topic is none") {
  RepeatFilter filter;
  CHECK(!filter.is_retained_repeat("t", "on"));
  filter.stored(0, "t", "on");
  CHECK(filter.is_retained_repeat("t", "on"));
  filter.stored(0, "t", "off");
  CHECK(!filter.is_retained_repeat("t", "on"));
  for (std::size_t i = 0; i < RepeatFilter::kTopicsMax; ++i) {
    filter.stored(0, "other/" + std::to_string(i), "1");
  }
  CHECK(!filter.is_retained_repeat("t", "off"));
}

namespace {

constexpr std::int64_t kMillisecondNs = 1'000'000;

// What a broker delivers: the payload, through which subscription (0: not told), when.
struct Copies {
  explicit Copies(std::vector<std::string> filters = {"a/+", "+/b"}) {
    copies.set_filters(filters);
  }
  std::string kept(const std::vector<std::pair<const char*, std::uint32_t>>& all,
                   std::int64_t apart_ns = 0) {
    std::string text;
    for (const auto& [payload, id] : all) {
      now_ns += apart_ns;
      mqtt::SubscriptionIds ids;
      if (id != 0) ids.add(id);
      if (!copies.is_copy("a/b", payload, ids, now_ns)) text += payload;
    }
    return text;
  }
  mqtt::CopyFilter copies;
  std::int64_t now_ns = 1;
};

}  // namespace

TEST_CASE("copies: MQTT 5 tells them from messages that say the same") {
  CHECK(Copies().kept({{"1", 1}, {"1", 2}}) == "1");
  CHECK(Copies().kept({{"1", 2}, {"1", 1}, {"2", 1}, {"2", 2}}) == "12");
  CHECK(Copies().kept({{"1", 1}, {"1", 2}, {"1", 1}, {"1", 2}}) == "11");
  CHECK(Copies().kept({{"1", 1}, {"1", 1}, {"1", 2}, {"1", 2}}) == "11");
  CHECK(Copies().kept({{"1", 1}, {"2", 1}, {"2", 2}, {"1", 2}}) == "12");
  CHECK(Copies().kept({{"1", 1}, {"1", 1}, {"1", 1}}) == "111");
  CHECK(Copies().kept({{"1", 1}, {"1", 2}}, 31'000 * kMillisecondNs) == "11");
  CHECK(Copies({"a/+", "+/b", "a/b/#"}).kept({{"1", 1}, {"1", 3}, {"1", 2}, {"1", 1}}) == "11");
  // A broker that sends one, and names all it is for.
  Copies once;
  mqtt::SubscriptionIds both;
  both.add(1);
  both.add(2);
  for (int i = 0; i < 3; ++i) CHECK(!once.copies.is_copy("a/b", "1", both, 1));
}

TEST_CASE("copies: in 3.1.1 they follow each other at once, unless the broker sends none") {
  CHECK(Copies().kept({{"1", 0}, {"1", 0}}) == "1");
  CHECK(Copies().kept({{"1", 0}, {"1", 0}, {"1", 0}, {"1", 0}, {"2", 0}, {"2", 0}}) == "112");
  CHECK(Copies().kept({{"1", 0}, {"1", 0}}, 200 * kMillisecondNs) == "11");
  CHECK(Copies().kept({{"1", 0}, {"2", 0}, {"2", 0}, {"2", 0}}) == "1222");
  Copies learned;
  CHECK(learned.kept({{"1", 0}, {"2", 0}, {"2", 0}}) == "122");
  learned.copies.new_connection();
  CHECK(learned.kept({{"3", 0}, {"3", 0}}) == "3");
}

TEST_CASE("copies: only where filters overlap") {
  Copies apart({"a/+", "c/+", "b/a/#"});
  CHECK(!apart.copies.has_overlaps());
  CHECK(apart.kept({{"1", 1}, {"1", 2}, {"1", 0}, {"1", 0}}) == "1111");
  Copies some({"a/+", "c/+", "+/x"});
  CHECK(some.copies.has_overlaps());
  CHECK(some.kept({{"1", 1}, {"1", 2}, {"1", 0}, {"1", 0}}) == "1111");
}
