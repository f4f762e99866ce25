#include "mqtt/repeat_filter.h"

#include <doctest/doctest.h>

#include <string>

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
