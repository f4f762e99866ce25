#include "table/bucket_files.h"

#include <doctest/doctest.h>

#include "base/entry.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;
constexpr std::size_t kGroupBytes = 1'000;

ItemExpiry item_of(std::int64_t time_ns, std::int64_t retention_ns) {
  ItemExpiry item;
  item.bucket = bucket_of(time_ns, retention_ns);
  item.expiry_min_ns = expiry_of(time_ns, retention_ns);
  item.expiry_max_ns = item.expiry_min_ns;
  item.time_min_ns = time_ns;
  item.time_max_ns = time_ns;
  return item;
}

Bytes key_at(std::uint64_t ordinal) {
  Bytes key = make_full_key(1, "devisens");
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
  return key;
}

// An entry goes to the group that is said to be its own.
SeriesGathering::Group& add(SeriesGathering& gathering, std::uint64_t ordinal,
                            const ItemExpiry& item, ByteView value = "v") {
  SeriesGathering::Group& group = gathering.group_for(item);
  const bool is_first = group.columns->empty();
  const Bytes key = key_at(ordinal);
  REQUIRE(group.columns->add({key, ordinal, EntryKind::Put, value}));
  group.expiry = is_first ? item : group.expiry;
  group.expiry.add(item);
  return group;
}

std::size_t groups_of(SeriesGathering& gathering) {
  std::size_t count = 0;
  CHECK(gathering
            .for_each([&](const SeriesGathering::Group&) {
              ++count;
              return ok();
            })
            .ok());
  return count;
}

}  // namespace

TEST_CASE("an item's expiry grows with what is added to it") {
  ItemExpiry item = item_of(10 * kDayNs, kDayNs);
  const ItemExpiry later = item_of(12 * kDayNs, kDayNs), earlier = item_of(9 * kDayNs, kDayNs);
  item.add(later);
  item.add(earlier);
  CHECK(item.bucket == later.bucket);
  CHECK(item.expiry_min_ns == 10 * kDayNs);
  CHECK(item.expiry_max_ns == 13 * kDayNs);
  CHECK(item.time_min_ns == 9 * kDayNs);
  CHECK(item.time_max_ns == 12 * kDayNs);
}

TEST_CASE("a scope is left with the first key that begins otherwise") {
  SeriesGathering gathering(kGroupBytes, 100, 0, false);
  gathering.begin(4);
  CHECK(gathering.leaves_scope(key_at(1)));
  gathering.enter_scope(key_at(1));
  CHECK_FALSE(gathering.leaves_scope(key_at(2)));
  CHECK_FALSE(gathering.leaves_scope(make_full_key(1, "deviother")));
  CHECK(gathering.leaves_scope(make_full_key(1, "elsewhere")));
  CHECK(gathering.leaves_scope(make_full_key(2, "devisens")));
  gathering.begin(0);
  gathering.enter_scope(key_at(1));
  CHECK_FALSE(gathering.leaves_scope(make_full_key(1, "elsewhere")));
}

TEST_CASE("entries that last about as long are gathered together, others apart while few came") {
  SeriesGathering gathering(kGroupBytes, 100, 0, false);
  gathering.begin(4);
  gathering.enter_scope(key_at(1));
  const ItemExpiry soon = item_of(kDayNs, kDayNs);
  const ItemExpiry late = item_of(kDayNs, 1'000 * kDayNs);
  REQUIRE(life_class_of(soon.bucket) < life_class_of(late.bucket));
  SeriesGathering::Group& main = add(gathering, 1, late);
  CHECK(&main == &gathering.main());
  CHECK(&add(gathering, 2, late) == &gathering.main());
  SeriesGathering::Group& apart = add(gathering, 3, soon);
  CHECK(&apart != &gathering.main());
  CHECK(apart.life == life_class_of(soon.bucket));
  CHECK(&add(gathering, 4, soon) == &apart);
  CHECK(&add(gathering, 5, late) == &gathering.main());
  CHECK(groups_of(gathering) == 2);
}

TEST_CASE("what expires sooner and came first makes room for what lasts") {
  SeriesGathering gathering(kGroupBytes, 100, 0, false);
  gathering.begin(4);
  gathering.enter_scope(key_at(1));
  const ItemExpiry soon = item_of(kDayNs, kDayNs);
  const ItemExpiry late = item_of(kDayNs, 1'000 * kDayNs);
  CHECK(&add(gathering, 1, soon) == &gathering.main());
  CHECK(&add(gathering, 2, late) == &gathering.main());
  CHECK(gathering.main().expiry.bucket == late.bucket);
  SeriesGathering::Group& apart = add(gathering, 3, soon);
  CHECK(&apart != &gathering.main());
  CHECK(apart.columns->raw_bytes() > gathering.main().columns->raw_bytes());  // two, one
  CHECK(groups_of(gathering) == 2);
}

TEST_CASE("a group that is half full is worth its record") {
  SeriesGathering gathering(kGroupBytes, 100, 0, false);
  gathering.begin(4);
  gathering.enter_scope(key_at(1));
  const Bytes half(kGroupBytes / 2, 'h');
  add(gathering, 1, item_of(kDayNs, 1'000 * kDayNs), half);
  CHECK(&gathering.group_for(item_of(kDayNs, kDayNs)) == &gathering.main());
}

TEST_CASE("the first group that cannot be written ends it") {
  SeriesGathering gathering(kGroupBytes, 100, 0, false);
  gathering.begin(4);
  CHECK(groups_of(gathering) == 0);
  gathering.enter_scope(key_at(1));
  add(gathering, 1, item_of(kDayNs, 1'000 * kDayNs));
  add(gathering, 2, item_of(kDayNs, kDayNs));
  int asked = 0;
  const Status status = gathering.for_each([&](const SeriesGathering::Group&) {
    ++asked;
    return io_error("the drive is away");
  });
  CHECK(status.code() == StatusCode::IoError);
  CHECK(asked == 1);
}

}  // namespace edgecase::engine
