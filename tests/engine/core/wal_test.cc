// The write-ahead log as a ring: what of it is needed, what is freed, and what a failure leaves.
#include "core/wal.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "edgecase/machine.h"
#include "edgecase/write_batch.h"
#include "file/file_names.h"
#include "log/log.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kSegmentBytes = 16u << 10;
constexpr std::uint64_t kLimitBytes = 8 * kSegmentBytes;

struct LoggedStore {
  LoggedStore() { REQUIRE(wal.adopt({}, {}, 0).ok()); }

  // One record a call, with the next sequence, in the next segment where this one is full.
  Status append(std::size_t bytes) EC_REQUIRES(leading) {
    if (!wal.fits(bytes)) EC_TRY(wal.start_segment(bytes, last, flushed));
    WriteBatch batch;
    batch.put(1, "k", Bytes(bytes - 20, 'p'));
    const ByteView encoded = batch.encoded();
    EC_TRY(wal.append(last + 1, last + 1, {&encoded, 1}));
    ++last;
    return ok();
  }
  void fill(SequenceNumber through) EC_REQUIRES(leading) {
    while (last < through) {
      const Status appended = append(1'000);
      INFO(appended.to_string());
      REQUIRE(appended.ok());
    }
  }
  // Sequences of the records that lie in the files of the log, in order.
  std::vector<SequenceNumber> stored() {
    std::vector<SequenceNumber> found;
    for (const Wal::File& each : wal.files()) {
      auto file = disk.open_file(each.path);
      REQUIRE(file.ok());
      const auto reader = LogReader::open(std::move(file).value());
      REQUIRE(reader.ok());
      for (;;) {
        const auto record = (*reader)->next();
        REQUIRE(record.ok());
        if (!record->has_value()) break;
        found.push_back((*record)->sequence);
      }
    }
    return found;
  }
  static std::vector<SequenceNumber> from_to(SequenceNumber from, SequenceNumber to) {
    std::vector<SequenceNumber> all;
    for (; from <= to; ++from) all.push_back(from);
    return all;
  }
  void flush(SequenceNumber through) {
    flushed = through;
    wal.release_before(wal.oldest_needed(through));
  }

  test::MemoryFileSystem disk{{"/m"}};
  const Status made = disk.create_directory(wal_directory("/m"));
  SeededRandom random{9};
  Wal wal{disk, random, {"/m", StoreId{1, 2, 3}, kSegmentBytes, kLimitBytes, nullptr}};
  SequenceNumber last = 0;
  SequenceNumber flushed = 0;
};

}  // namespace

TEST_CASE("log: records lie in segments one after another, and all of them are found") {
  LoggedStore store;
  const RoleScope leads(leading);
  CHECK_FALSE(store.wal.has_closed());
  CHECK(store.wal.oldest_needed(0) == 0);
  store.fill(40);
  CHECK(store.wal.has_closed());
  CHECK(store.wal.files().size() >= 3);
  CHECK(store.stored() == LoggedStore::from_to(1, 40));
  CHECK(store.wal.record_bytes() >= 40'000);
  CHECK(store.wal.bytes_written() == store.wal.record_bytes());
}

TEST_CASE("log: what tables hold is freed segment by segment, and used again within the limit") {
  LoggedStore store;
  const RoleScope leads(leading);
  // Many times what the limit takes.
  for (int round = 0; round < 20; ++round) {
    store.fill(store.last + 40);
    store.flush(store.last - 5);
    CHECK(store.wal.files().size() <= 2);
    CHECK(store.disk.used_bytes("/m") <= kLimitBytes + kSegmentBytes);
  }
  const auto stored = store.stored();
  REQUIRE(stored.size() >= 5);
  CHECK(stored.back() == store.last);
  CHECK(stored.front() <= store.last - 4);
}

TEST_CASE("log: at its limit it refuses, and takes more once something is in tables") {
  LoggedStore store;
  const RoleScope leads(leading);
  Status refused;
  while ((refused = store.append(1'000)).ok()) REQUIRE(store.last < 1'000);
  CHECK(refused.code() == StatusCode::Busy);
  CHECK(store.last > 80);
  CHECK(store.stored() == LoggedStore::from_to(1, store.last));
  store.flush(store.last / 2);
  CHECK(store.append(1'000).ok());
}

TEST_CASE("log: a batch larger than a segment has one of its own, one larger than the limit none") {
  LoggedStore store;
  const RoleScope leads(leading);
  store.fill(3);
  CHECK(store.append(2 * kSegmentBytes).ok());
  store.fill(6);
  CHECK(store.stored() == LoggedStore::from_to(1, 6));
  CHECK(store.append(2 * kLimitBytes).code() == StatusCode::InvalidArgument);
  CHECK(store.append(1'000).ok());
}

TEST_CASE("log: a sync makes durable what was written before, in whatever segment") {
  for (const bool syncs : {true, false}) {
    CAPTURE(syncs);
    LoggedStore store;
    const RoleScope leads(leading);
    store.fill(30);
    if (syncs) REQUIRE(store.wal.sync().ok());
    CHECK((store.wal.syncs() > 0) == syncs);
    const auto durable = store.disk.durable_contents();
    std::size_t records = 0;
    for (const auto& [path, bytes] : durable)
      for (std::size_t at = bytes.find("pppp"); at != Bytes::npos;
           at = bytes.find("pppp", at + 900))
        ++records;
    CHECK((records >= 30) == syncs);
  }
}

TEST_CASE("log: what was acknowledged is copied behind a write that failed, and nothing is lost") {
  using test::Operation;
  for (const Operation operation : {Operation::LogWrite, Operation::LogSync}) {
    CAPTURE(static_cast<int>(operation));
    LoggedStore store;
    const RoleScope leads(leading);
    store.fill(5);
    REQUIRE(store.wal.sync().ok());
    store.fill(8);
    store.disk.fail_nth(operation, 1, EIO, test::FaultMode::Once);
    const Status failed = operation == Operation::LogWrite ? store.append(1'000) : store.wal.sync();
    CHECK(failed.code() == StatusCode::IoError);
    CHECK_FALSE(store.wal.fits(1));
    store.fill(12);
    REQUIRE(store.wal.sync().ok());
    store.disk.power_cut(1, test::CutPolicy::Any);
    std::vector<SequenceNumber> stored = store.stored();
    stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
    // What failed may lie there once more, in the part that was given up.
    for (const SequenceNumber each : LoggedStore::from_to(1, 12)) {
      CAPTURE(each);
      CHECK(std::count(stored.begin(), stored.end(), each) >= 1);
    }
  }
}

TEST_CASE(
    "log: it knows whether records of a sequence may still lie somewhere, until overwritten") {
  LoggedStore store;
  const RoleScope leads(leading);
  store.fill(40);
  CHECK(store.wal.holds(1));
  CHECK(store.wal.current_holds(store.last));
  CHECK_FALSE(store.wal.current_holds(1));
  store.flush(20);
  CHECK(store.wal.holds(1));  // its slot is free, not blank
  REQUIRE(store.wal.overwrite_free(5).ok());
  CHECK_FALSE(store.wal.holds(1));
  CHECK(store.wal.overwritten_bytes() > 0);
  CHECK(store.wal.holds(store.last));
}

TEST_CASE("log: it knows when the first of its records expires") {
  LoggedStore store;
  const RoleScope leads(leading);
  store.fill(2);
  store.wal.note_expiry(1'000);
  store.wal.note_expiry(5'000);
  CHECK_FALSE(store.wal.needs_expired(1'000));
  CHECK(store.wal.needs_expired(1'001));
  CHECK(store.wal.holds_expired(1'001));
  store.wal.forget_expiries();
  CHECK(store.wal.holds_expired(0));
}

}  // namespace edgecase::engine
