#include "core/wal.h"

#include <doctest/doctest.h>

#include "file/file_names.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kSlotBytes = 8u << 10;
constexpr SequenceNumber kNothing = UINT64_MAX;

struct Slotted {
  Slotted() { REQUIRE(disk.create_directory(wal_directory("/m")).ok()); }

  // As a segment gives it back: `oldest` is its first record.
  WalSlot used(SequenceNumber oldest) {
    const Result<WalSlot> taken = slots.take(kSlotBytes);
    REQUIRE(taken.ok());
    WalSlot slot = *taken;
    slot.oldest = std::min(slot.oldest, oldest);
    slot.expires_ns = 1'000;
    slot.dirty_bytes = kSlotBytes;
    return slot;
  }
  static WalSlots::Choice holds(SequenceNumber through) {
    return [through](const WalSlot& slot) { return slot.oldest <= through; };
  }

  test::MemoryFileSystem disk{{"/m"}};
  WalSlots slots{disk, "/m", kSlotBytes, 5 * kSlotBytes};
};

}  // namespace

TEST_CASE("log slots: all together never exceed the limit, and a large one takes its room") {
  Slotted log;
  WalSlots& slots = log.slots;
  CHECK(slots.large_max_bytes() == 2 * kSlotBytes);
  CHECK(slots.take(2 * kSlotBytes + 1).status().code() == StatusCode::InvalidArgument);
  CHECK(slots.needs_one());
  REQUIRE(slots.prepare_one().ok());
  CHECK_FALSE(slots.needs_one());
  std::vector<WalSlot> taken;
  for (SequenceNumber i = 1; i <= 5; ++i) taken.push_back(log.used(i));
  CHECK(slots.take(kSlotBytes).status().code() == StatusCode::Busy);
  CHECK_FALSE(slots.needs_one());

  // Two that are free make way for one of their size together.
  slots.give_back(taken[0]);
  CHECK(slots.take(2 * kSlotBytes).status().code() == StatusCode::Busy);
  slots.give_back(taken[1]);
  REQUIRE(slots.take(2 * kSlotBytes).ok());
  CHECK(slots.take(kSlotBytes).status().code() == StatusCode::Busy);
}

TEST_CASE("log slots: the free one with least of what is old is taken first") {
  Slotted log;
  const WalSlot older = log.used(10);
  const WalSlot newer = log.used(20);
  log.slots.give_back(newer);
  log.slots.give_back(older);
  CHECK(log.slots.take(kSlotBytes)->index == newer.index);
}

TEST_CASE("log slots: free ones are overwritten of what is old, and hold nothing then") {
  Slotted log;
  WalSlots& slots = log.slots;
  const WalSlot old = log.used(10);
  slots.give_back(old);
  CHECK(slots.any_free(log.holds(10)));
  CHECK_FALSE(slots.any_free(log.holds(9)));
  REQUIRE(slots.overwrite(log.holds(9)).ok());
  CHECK(slots.overwritten_bytes() == 0);
  REQUIRE(slots.overwrite(log.holds(10)).ok());
  CHECK(slots.overwritten_bytes() == kSlotBytes);
  CHECK_FALSE(slots.any_free(log.holds(kNothing - 1)));

  // What holds nothing never expires, whatever is forgotten.
  slots.forget_expiries();
  CHECK_FALSE(slots.any_free([](const WalSlot& slot) { return slot.expires_ns < 1'000'000; }));
}

TEST_CASE("log slots: what was there at the start has new names, and no more than the limit") {
  Slotted log;
  const std::vector<WalSlot> used{{0, kSlotBytes, 1}, {1, kSlotBytes, 1}, {2, kSlotBytes, 1}};
  std::vector<WalSlot> free;
  for (std::uint64_t i = 3; i < 7; ++i) {
    REQUIRE(log.disk.create_log_file(log.slots.path(i), kSlotBytes).ok());
    free.push_back({i, kSlotBytes, 0});
  }
  REQUIRE(log.slots.adopt(used, free).ok());
  CHECK(log.disk.list_directory(wal_directory("/m"))->size() == 2);
  CHECK_FALSE(log.slots.needs_one());
  REQUIRE(log.slots.take(kSlotBytes).ok());
  REQUIRE(log.slots.take(kSlotBytes).ok());
  CHECK(log.slots.take(kSlotBytes).status().code() == StatusCode::Busy);
}

}  // namespace edgecase::engine
